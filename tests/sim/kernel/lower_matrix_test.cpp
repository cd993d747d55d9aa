// SPDX-License-Identifier: MIT
#include <cmath>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cost/gemm_choice.hpp"
#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

/// Remembers the problem it was asked about and answers with one tile.
struct FixedChoice final : kernel::LibraryChoice {
  kernel::GemmTile tile;
  mutable kernel::GemmProblem seen;
  kernel::GemmTile choose(const kernel::GemmProblem& p) const override {
    seen = p;
    return tile;
  }
  kernel::ConvKernel choose(const kernel::ConvProblem&) const override { return {}; }
};

struct Fixture {
  graph::OpGraph g;
  FixedChoice choice;
  arch::ResolvedGpu gpu = arch::resolve_gpu("a100-sxm4-40gb");

  kernel::Lowered lower(graph::OpType op, std::vector<graph::Shape> inputs, graph::Attributes attributes = {},
                        DataType math = DataType::fp32, kernel::Framework framework = kernel::Framework::eager) {
    graph::Node node;
    node.id = "n";
    node.op = op;
    node.compute = math;
    node.attributes = std::move(attributes);
    for (auto& shape : inputs) {
      graph::Tensor t;
      t.name = "t" + std::to_string(g.tensors().size());
      t.shape = std::move(shape);
      t.dtype = math == DataType::fp16 ? DataType::fp16 : DataType::fp32;
      node.inputs.push_back(g.add_tensor(std::move(t)));
    }
    const std::vector<std::string> out{"y" + std::to_string(g.tensors().size())};
    const auto id = graph::append(g, std::move(node), out);
    return kernel::lower(g, g.node(id), {gpu.spec, choice, framework});
  }
};

graph::Attributes flags(std::initializer_list<const char*> names) {
  graph::Attributes a;
  for (const char* n : names) a.set(n, std::int64_t{1});
  return a;
}

}  // namespace

TEST_CASE("leading dims of a linear layer are rows of one product, its bias an epilogue", "[kernel][matrix]") {
  Fixture f;
  const auto l = f.lower(graph::OpType::linear, {{8, 512, 1024}, {4096, 1024}, {4096}});
  REQUIRE(l.launches.size() == 1);
  CHECK(f.choice.seen.m == 4096);
  CHECK(f.choice.seen.n == 4096);
  CHECK(f.choice.seen.k == 1024);
  CHECK(f.choice.seen.linear);
  CHECK(f.choice.seen.transpose_b);
  CHECK(l.host == kernel::HostClass::linear);
  const auto& work = l.launches[0].work;
  CHECK(work.mac == 4096.0 * 4096 * 1024);
  CHECK(work.other_flop == 4096.0 * 4096);
  CHECK(work.read.value == 4.0 * (4096.0 * 1024 + 4096.0 * 1024 + 4096));
  CHECK(work.written.value == 4.0 * 4096 * 4096);
  CHECK(l.launches[0].family == "gemm_simt");
  // Tile 128 x 128: 32 x 32 CTAs.
  CHECK(l.launches[0].grid[0] == 32);
  CHECK(l.launches[0].grid[1] == 32);
  CHECK(l.launches[0].name == "ampere_sgemm_128x128_tn");
}

TEST_CASE("a batched product keeps its batch, a shared right operand folds it into rows", "[kernel][matrix]") {
  Fixture f;
  auto l = f.lower(graph::OpType::matmul, {{16, 12, 512, 64}, {16, 12, 512, 64}}, flags({"transpose_b"}));
  CHECK(f.choice.seen.batch == 192);
  CHECK(f.choice.seen.m == 512);
  CHECK(f.choice.seen.n == 512);
  CHECK(f.choice.seen.k == 64);
  CHECK_FALSE(f.choice.seen.linear);
  CHECK(l.host == kernel::HostClass::matmul);
  CHECK(l.launches.at(0).family == "gemm_simt_batched");
  CHECK(l.launches.at(0).grid[2] == 192);

  f.lower(graph::OpType::matmul, {{16, 128, 64}, {64, 32}});
  CHECK(f.choice.seen.batch == 1);
  CHECK(f.choice.seen.m == 2048);
  CHECK(f.choice.seen.linear);
}

TEST_CASE("experts run as one batched product", "[kernel][matrix]") {
  Fixture f;
  f.lower(graph::OpType::grouped_linear, {{8, 256, 1024}, {8, 4096, 1024}}, {}, DataType::fp16);
  CHECK(f.choice.seen.batch == 8);
  CHECK(f.choice.seen.m == 256);
  CHECK(f.choice.seen.n == 4096);
  CHECK(f.choice.seen.a_bytes == 2);
}

TEST_CASE("products without elements launch nothing", "[kernel][matrix]") {
  Fixture f;
  CHECK(f.lower(graph::OpType::linear, {{0, 1024}, {64, 1024}}).launches.empty());
  CHECK(f.lower(graph::OpType::matmul, {{4, 8, 0}, {4, 0, 8}}).launches.empty());
}

TEST_CASE("a split k loop conserves work and adds a reduction up to the workspace", "[kernel][matrix]") {
  const auto gpu = arch::resolve_gpu("a100-sxm4-40gb");
  kernel::GemmProblem p;
  p.m = 64;
  p.n = 64;
  p.k = 4096;
  kernel::GemmTile tile;
  tile.split_k = 8;
  // Partial sums: 4 x 8 x 64 x 64 = 128 KiB, below 1 MiB.
  const auto small = kernel::gemm_launches(p, tile, gpu.spec);
  REQUIRE(small.size() == 2);
  CHECK(small[0].work.mac + small[1].work.mac == 64.0 * 64 * 4096);
  CHECK(small[0].grid[2] == 8);
  CHECK(small[1].name == "splitKreduce_kernel");
  p.m = 4096;
  CHECK(kernel::gemm_launches(p, tile, gpu.spec).size() == 1);
  tile.tensor_cores = true;
  CHECK(kernel::gemm_launches(p, tile, gpu.spec).size() == 2);
}

TEST_CASE("a compiler streams the weights of one 16-bit row, which L2 never holds", "[kernel][matrix]") {
  using kernel::Framework;
  const auto launch = [](std::int64_t rows, DataType math, Framework framework) {
    Fixture f;
    return f.lower(graph::OpType::linear, {{rows, 4096}, {1024, 4096}}, {}, math, framework).launches.at(0);
  };
  for (const Framework compiler : {Framework::compiled, Framework::compiled_graph}) {
    const kernel::Launch one = launch(1, DataType::fp16, compiler);
    CHECK(one.name == "triton_red_fused_mul_sum");
    CHECK(one.work.mac == 4096.0 * 1024);
    CHECK(one.work.read.value == 2.0 * (4096.0 * 1024 + 4096));
    CHECK(one.work.written.value == 2.0 * 1024);
    const auto cost = cost::make_engine(cost::EngineKind::analytic, arch::resolve_gpu("a100-sxm4-40gb"))->cost(one);
    CHECK(cost.dram_traffic.value == one.work.traffic().value);  // 8 MB of 40 MB, and cold all the same
    CHECK(std::holds_alternative<kernel::GemmKernel>(launch(2, DataType::fp16, compiler).detail));
    CHECK(std::holds_alternative<kernel::GemmKernel>(launch(1, DataType::fp32, compiler).detail));
  }
  CHECK(std::holds_alternative<kernel::GemmKernel>(launch(1, DataType::fp16, Framework::eager).detail));
  CHECK(std::holds_alternative<kernel::GemmKernel>(launch(1, DataType::fp16, Framework::tensorrt).detail));
}

TEST_CASE("an epilogue counts the operations of its activation", "[kernel][matrix]") {
  Fixture f;
  graph::Attributes a;
  a.set("epilogue", std::string("gelu"));
  const auto l = f.lower(graph::OpType::linear, {{8, 64}, {32, 64}, {32}}, a);
  CHECK(l.launches.at(0).work.other_flop == 2.0 * 8 * 32);
  CHECK(l.launches.at(0).name.ends_with("_gelu"));
}

TEST_CASE("types that a GPU cannot multiply are refused with what it has", "[kernel][matrix]") {
  const auto v100 = arch::resolve_gpu("v100-sxm2-16gb");
  const cost::GemmChoice choice(v100);
  kernel::GemmProblem p;
  p.m = p.n = p.k = 512;
  for (const DataType t : {DataType::bf16, DataType::tf32, DataType::fp8, DataType::int4}) {
    p.math = t;
    std::string message;
    try {
      choice(p);
    } catch (const UnsupportedError& e) {
      message = e.what();
    }
    CHECK(message.find("v100-sxm2-16gb") != std::string::npos);
    CHECK(message.find("fp16 (tensor cores)") != std::string::npos);
  }
  p.math = DataType::int8;
  CHECK_FALSE(choice(p).tensor_cores);
}
