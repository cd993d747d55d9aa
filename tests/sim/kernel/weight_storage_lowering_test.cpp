// SPDX-License-Identifier: MIT
#include "arch/loader.hpp"
#include "sim/kernel/gemm.hpp"
#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::GemmProblem;

namespace {

/// One tensor-core tile, whatever is asked.
struct OneTile final : kernel::LibraryChoice {
  mutable GemmProblem seen;
  kernel::GemmTile choose(const GemmProblem& p) const override {
    seen = p;
    kernel::GemmTile tile{"128x128", 128, 128, 32, 4, 3, 1, 1, true};
    return tile;
  }
  kernel::ConvKernel choose(const kernel::ConvProblem&) const override { return {}; }
};

struct Layer {
  std::int64_t m = 64, n = 256, k = 512;
  DataType activation = DataType::fp16, weight = DataType::fp16, compute = DataType::fp16;
  bool sparse = false;
};

kernel::Launch lower(const Layer& l, OneTile& choice, const char* gpu = "a100-sxm4-80gb", bool sparse_weights = true) {
  graph::OpGraph g;
  const auto x = g.add_tensor({"x", {l.m, l.k}, l.activation, graph::TensorRole::input, graph::kNoNode, true});
  const auto w =
      g.add_tensor({"w", {l.n, l.k}, l.weight, graph::TensorRole::parameter, graph::kNoNode, true, l.sparse});
  graph::Node node;
  node.id = "fc";
  node.op = graph::OpType::linear;
  node.compute = l.compute;
  node.inputs = {x, w};
  const std::vector<std::string> out{"y"};
  const auto id = graph::append(g, std::move(node), out);
  g.tensor(g.node(id).outputs[0]).dtype = DataType::fp16;
  const arch::ResolvedGpu resolved = arch::resolve_gpu(gpu);
  const auto lowered = kernel::lower(g, g.node(id), {resolved.spec, choice, kernel::Framework::eager, sparse_weights});
  REQUIRE(lowered.launches.size() == 1);
  return lowered.launches[0];
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("integer weights of an fp16 product are expanded in the kernel, with their scales", "[kernel][matrix]") {
  OneTile choice;
  Layer l;
  l.weight = DataType::int4;
  const auto launch = lower(l, choice);
  CHECK(choice.seen.dequantise);
  CHECK(choice.seen.math == DataType::fp16);
  CHECK(choice.seen.a_bytes == 2);
  CHECK(choice.seen.b_bytes == 0.5 + 2.0 / 128);
  CHECK(launch.library == "CUTLASS");
  CHECK(contains(launch.name, "fpA_intB_gemm_fp16_int4"));
  CHECK(launch.work.read.value == 2.0 * 64 * 512 + (0.5 + 2.0 / 128) * 256 * 512);
  l.weight = DataType::int8;
  CHECK(contains(lower(l, choice).name, "fp16_int8"));
  CHECK(choice.seen.b_bytes == 1 + 2.0 / 512);
}

TEST_CASE("int8 by int8 is no weight-only product", "[kernel][matrix]") {
  OneTile choice;
  Layer l;
  l.activation = l.weight = l.compute = DataType::int8;
  CHECK(lower(l, choice).library == "cuBLAS");
  CHECK_FALSE(choice.seen.dequantise);
  CHECK(choice.seen.b_bytes == 1);
}

TEST_CASE("sparse weights run on the sparse path where there is one and dense kernels are not asked for",
          "[kernel][matrix]") {
  OneTile choice;
  Layer l;
  l.sparse = true;
  const auto launch = lower(l, choice);
  CHECK(choice.seen.sparse);
  CHECK(choice.seen.b_bytes == 1.125);
  CHECK(launch.sparse);
  CHECK(launch.library == "cuSPARSELt");
  CHECK(contains(launch.name, "sparse"));
  CHECK(launch.work.mac == 64.0 * 256 * 512);  // Of the dense product, as peaks with sparsity are stated.
  const auto dense = lower(l, choice, "a100-sxm4-80gb", false);
  CHECK_FALSE(choice.seen.sparse);
  CHECK(choice.seen.b_bytes == 2);
  CHECK_FALSE(dense.sparse);
  CHECK(dense.library == "cuBLAS");
  CHECK_FALSE(lower(l, choice, "t4").sparse);
}

TEST_CASE("rows off 16-byte boundaries are named", "[kernel][matrix]") {
  OneTile choice;
  Layer l;
  CHECK_FALSE(contains(lower(l, choice).name, "align"));
  l.k = 27;
  CHECK(contains(lower(l, choice).name, "_align1"));
  l.k = 28;
  CHECK(contains(lower(l, choice).name, "_align4"));
  l.k = 512;
  l.n = 50257;
  CHECK(contains(lower(l, choice).name, "_align1"));
  l.n = 50258;
  CHECK(contains(lower(l, choice).name, "_align2"));
  l.m = 7;  // Rows of neither operand.
  l.n = 256;
  CHECK_FALSE(contains(lower(l, choice).name, "align"));
}

TEST_CASE("alignment is the least of what the three matrices allow", "[kernel][matrix]") {
  GemmProblem p;
  p.math = DataType::fp16;
  p.a_bytes = p.b_bytes = p.c_bytes = 2;
  p.m = 64;
  p.n = 64;
  p.k = 64;
  p.transpose_b = true;
  CHECK(kernel::alignment(p) == 8);
  p.k = 66;
  CHECK(kernel::alignment(p) == 2);
  p.transpose_a = true;  // A stored [k, m], B [k, n]: k is no row.
  p.transpose_b = false;
  CHECK(kernel::alignment(p) == 8);
  p.math = DataType::int8;
  p.a_bytes = p.b_bytes = 1;
  CHECK(kernel::alignment(p) == 16);
  p.n = 8;  // Eight bytes of B, sixteen of an fp16 output.
  CHECK(kernel::alignment(p) == 8);
  p.math = DataType::fp64;
  p.a_bytes = p.b_bytes = p.c_bytes = 8;
  p.n = 7;
  CHECK(kernel::alignment(p) == 1);
}
