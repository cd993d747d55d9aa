// SPDX-License-Identifier: MIT
// Kernels that a compiler generates for fused nodes: bytes, re-reads, names.
#include <string>
#include <vector>

#include "arch/loader.hpp"
#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using graph::OpType;
using graph::Shape;
using kernel::Framework;
using kernel::VectorKernel;
using kernel::VectorKind;

namespace {

class NoLibrary final : public kernel::LibraryChoice {
 public:
  kernel::GemmTile choose(const kernel::GemmProblem&) const override { return {}; }
  kernel::ConvKernel choose(const kernel::ConvProblem&) const override { return {}; }
};

/// The one kernel of a fused node.
struct Fused {
  OpType op = OpType::fused_pointwise;
  std::string functions;
  std::vector<Shape> inputs;
  Shape shape;
  std::int64_t cols = 0, row_inputs = 0;

  kernel::Launch launch(Framework framework = Framework::compiled) const {
    static const arch::ResolvedGpu gpu = arch::resolve_gpu("a100-sxm4-40gb");
    static const NoLibrary library;
    graph::OpGraph g;
    graph::Node node;
    node.id = "n";
    node.op = op;
    for (const Shape& s : inputs) {
      graph::Tensor t;
      t.name = "x" + std::to_string(node.inputs.size());
      t.shape = s;
      node.inputs.push_back(g.add_tensor(t));
    }
    node.attributes.set("functions", functions);
    node.attributes.set("shape", shape);
    if (cols > 0) node.attributes.set("cols", cols);
    if (row_inputs > 0) node.attributes.set("row_inputs", row_inputs);
    const std::vector<std::string> names{"y"};
    const auto id = graph::append(g, node, names);
    const auto lowered = kernel::lower(g, g.node(id), {gpu.spec, library, framework});
    REQUIRE(lowered.launches.size() == 1);
    return lowered.launches.front();
  }
};

const VectorKernel& detail(const kernel::Launch& launch) {
  return std::get<VectorKernel>(launch.detail);
}

}  // namespace

TEST_CASE("a fused softmax reads scores and mask at their own size and writes once", "[kernel][fusion]") {
  const Fused f{OpType::fused_softmax, "div_scalar,add,softmax", {{2, 4, 8, 512}, {2, 1, 1, 512}}, {2, 4, 8, 512}, 512};
  const kernel::Launch launch = f.launch();
  CHECK(launch.work.read.value == (32768 + 1024) * 4.0);
  CHECK(launch.work.written.value == 32768 * 4.0);
  CHECK(launch.work.other_flop == 32768 * 7.0);
  CHECK(launch.name == "triton_per_fused_div_scalar_add_softmax");
  CHECK(launch.library == "Triton");
  CHECK(detail(launch).kind == VectorKind::softmax_warp);
  CHECK(detail(launch).rows == 64);
  CHECK(detail(launch).fused == std::vector<std::string_view>{"div_scalar", "add"});
}

TEST_CASE("rows beyond the registers are computed anew in each pass", "[kernel][fusion]") {
  Fused f{OpType::fused_softmax, "add,softmax,mul", {{64, 2048}, {2048}, {64, 2048}}, {64, 2048}, 2048, 2};
  // Twice more the scores; not the vector, and not what follows the rows.
  CHECK(detail(f.launch()).reread_bytes == 2 * 64 * 2048 * 4.0);
  CHECK(detail(f.launch()).kind == VectorKind::softmax_block);
  f.functions = "dropout_backward,softmax_backward";
  f.row_inputs = 3;
  CHECK(detail(f.launch()).reread_bytes == 2 * 64 * 2048 * 4.0);  // Once more, two operands.
}

TEST_CASE("a fused norm reads its sum's operands once while registers hold the row", "[kernel][fusion]") {
  Fused f{OpType::fused_norm, "add,layer_norm", {{64, 1024}, {64, 1024}, {1024}, {1024}}, {64, 1024}, 1024};
  const kernel::Launch held = f.launch();
  CHECK(held.work.traffic().value == (3 * 65536 + 2048) * 4.0);
  CHECK(detail(held).reread_bytes == 0);
  CHECK(detail(held).tensor_inputs == 2);
  CHECK(held.name == "triton_per_fused_add_layer_norm");
  f = {OpType::fused_norm, "add,layer_norm", {{64, 1280}, {64, 1280}, {1280}, {1280}}, {64, 1280}, 1280};
  CHECK(detail(f.launch()).reread_bytes == 2 * 64 * 1280 * 4.0);
  CHECK(f.launch().name == "triton_red_fused_add_layer_norm");
  CHECK(f.launch(Framework::tensorrt).library == "TensorRT");
}

TEST_CASE("a lookup inside a kernel reads one row per index, not its table", "[kernel][fusion]") {
  const Fused f{OpType::fused_pointwise, "embedding,embedding,add", {{64}, {1000, 256}, {2, 256}}, {64, 256}};
  CHECK(f.launch().work.read.value == (64 + 64 * 256 + 2 * 256) * 4.0);
  CHECK(detail(f.launch()).kind == VectorKind::elementwise_broadcast);
}

TEST_CASE("a fused node never computes or moves less for more rows", "[kernel][fusion]") {
  double before = 0;
  for (const std::int64_t rows : {1, 2, 7, 64, 1000}) {
    const Fused f{OpType::fused_softmax, "add,softmax", {{rows, 300}, {300}}, {rows, 300}, 300};
    const kernel::Launch launch = f.launch();
    CHECK(launch.work.traffic().value > before);
    before = launch.work.traffic().value;
    CHECK(launch.ctas() >= 1);
  }
}

TEST_CASE("odd words and odd sizes in a fused node do no harm", "[kernel][fusion]") {
  const Fused words{OpType::fused_norm, ",,nonsense,add,", {{4, 8}}, {4, 8}, 8, 99};
  CHECK(words.launch().work.read.value == 128);
  const Fused one{OpType::fused_softmax, "softmax", {{1}}, {1}, 1};
  CHECK(one.launch().ctas() == 1);
  const Fused bad{OpType::fused_softmax, "softmax", {{4, 8}}, {4, 8}, 7};
  CHECK_THROWS(bad.launch());
}
