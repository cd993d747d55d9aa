// SPDX-License-Identifier: MIT
// Lowering of everything that is no matrix product: which kernels, which grids, which bytes.
#include <string>
#include <vector>

#include "arch/loader.hpp"
#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using graph::OpType;
using kernel::Framework;
using kernel::HostClass;
using kernel::Lowered;
using kernel::VectorKernel;
using kernel::VectorKind;

namespace {

class NoLibrary final : public kernel::LibraryChoice {
 public:
  kernel::GemmTile choose(const kernel::GemmProblem&) const override { return {}; }
  kernel::ConvKernel choose(const kernel::ConvProblem&) const override { return {}; }
};

struct Input {
  graph::Shape shape;
  DataType dtype = DataType::fp32;
};

/// A graph with one node to lower on an A100; outputs follow from the shape rules.
struct Bench {
  graph::OpGraph g;
  arch::ResolvedGpu gpu = arch::resolve_gpu("a100-sxm4-40gb");
  NoLibrary library;

  graph::TensorId input(const Input& in) {
    graph::Tensor t;
    t.name = "x" + std::to_string(g.tensors().size());
    t.shape = in.shape;
    t.dtype = in.dtype;
    return g.add_tensor(t);
  }
  graph::NodeId add(OpType op, std::vector<graph::TensorId> inputs, graph::Attributes attributes = {},
                    int outputs = 1) {
    graph::Node node;
    node.id = "n" + std::to_string(g.nodes().size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    std::vector<std::string> names;
    for (int i = 0; i < outputs; ++i) names.push_back(node.id + "_" + std::to_string(i));
    return graph::append(g, node, names);
  }
  Lowered lower(graph::NodeId id, Framework framework = Framework::eager) const {
    return kernel::lower(g, g.node(id), {gpu.spec, library, framework});
  }
  Lowered lower(OpType op, const std::vector<Input>& inputs, graph::Attributes attributes = {}, int outputs = 1,
                Framework framework = Framework::eager) {
    std::vector<graph::TensorId> ids;
    for (const auto& in : inputs) ids.push_back(input(in));
    return lower(add(op, ids, std::move(attributes), outputs), framework);
  }
};

const VectorKernel& detail(const kernel::Launch& launch) {
  return std::get<VectorKernel>(launch.detail);
}

double traffic(const Lowered& lowered) {
  double bytes = 0;
  for (const auto& launch : lowered.launches) bytes += launch.work.traffic().value;
  return bytes;
}

graph::Attributes with(std::string_view name, graph::Attributes::Value value) {
  graph::Attributes a;
  a.set(name, std::move(value));
  return a;
}

}  // namespace

TEST_CASE("a pointwise kernel covers 512 elements per CTA and moves each operand once", "[kernel][pointwise]") {
  Bench b;
  const Lowered l = b.lower(OpType::add, {{{16384, 768}}, {{16384, 768}}});
  REQUIRE(l.launches.size() == 1);
  CHECK(l.launches[0].grid[0] == 24576);  // As recorded for this shape [NEUDATA].
  CHECK(l.launches[0].name == "vectorized_elementwise_kernel<4>");
  CHECK(l.launches[0].work.read.value == 2.0 * 4 * 16384 * 768);
  CHECK(l.host == HostClass::pointwise);
}

TEST_CASE("an operand named twice is read once", "[kernel][pointwise]") {
  Bench b;
  const auto x = b.input({{1000}});
  CHECK(b.lower(b.add(OpType::mul, {x, x})).launches[0].work.read.value == 4000);
}

TEST_CASE("empty tensors launch nothing", "[kernel]") {
  Bench b;
  CHECK(b.lower(OpType::relu, {{{0, 5}}}).launches.empty());
  CHECK(b.lower(OpType::softmax, {{{0, 5}}}).launches.empty());
  CHECK(b.lower(OpType::layer_norm, {{{0, 8}}, {{8}}, {{8}}}).launches.empty());
  CHECK(b.lower(OpType::reduce_sum, {{{0, 8}}}, with("axes", std::vector<std::int64_t>{1})).launches.empty());
}

TEST_CASE("a broadcast operand counts its own bytes and remembers what passes between two reads",
          "[kernel][pointwise]") {
  Bench b;
  const Lowered l = b.lower(OpType::add, {{{4, 32, 64, 64}}, {{4, 1, 64, 64}}});
  const double n = 4 * 32 * 64 * 64;
  CHECK(l.launches[0].work.read.value == 4 * n + 4 * 4 * 64 * 64);
  CHECK(detail(l.launches[0]).kind == VectorKind::elementwise_broadcast);
  CHECK(detail(l.launches[0]).reread_bytes == 4 * n - 4 * 4 * 64 * 64);
  CHECK(detail(l.launches[0]).reuse_bytes > 64 * 64 * 12);
}

TEST_CASE("an expanded view holds no more bytes than its source", "[kernel][pointwise]") {
  Bench b;
  const auto small = b.input({{1, 128}});
  const auto big = b.input({{1000, 128}});
  const auto view =
      b.g.node(b.add(OpType::expand, {small}, with("shape", std::vector<std::int64_t>{1000, 128}))).outputs[0];
  CHECK(b.lower(b.add(OpType::add, {big, view})).launches[0].work.read.value == 4.0 * 1001 * 128);
}

TEST_CASE("powers with a small whole exponent are products", "[kernel][pointwise]") {
  Bench b;
  CHECK(detail(b.lower(OpType::pow_scalar, {{{64}}}, with("value", 3.0)).launches[0]).function == "square");
  CHECK(detail(b.lower(OpType::pow_scalar, {{{64}}}, with("value", 2.5)).launches[0]).function == "pow_scalar");
}

TEST_CASE("a cast to the same type is no kernel, to another one reads and writes both widths", "[kernel][pointwise]") {
  Bench b;
  CHECK(b.lower(OpType::cast, {{{100}}}, with("to", std::string("fp32"))).launches.empty());
  CHECK(traffic(b.lower(OpType::cast, {{{100}}}, with("to", std::string("fp16")))) == 600);
}

TEST_CASE("masked fill copies first in eager code only", "[kernel][pointwise]") {
  Bench b;
  const std::vector<Input> in{{{100}}, {{100}, DataType::boolean}};
  CHECK(b.lower(OpType::masked_fill, in).launches.size() == 2);
  CHECK(b.lower(OpType::masked_fill, in, {}, 1, Framework::compiled).launches.size() == 1);
}

TEST_CASE("softmax takes the warp kernel up to 1024 columns, then the block kernel", "[kernel][softmax]") {
  Bench b;
  const Lowered warp = b.lower(OpType::softmax, {{{8192, 768}}});
  REQUIRE(warp.launches.size() == 1);
  CHECK(warp.launches[0].name == "softmax_warp_forward<10>");
  CHECK(warp.launches[0].grid[0] == 2048);  // As recorded for this shape [NEUDATA].
  const Lowered block = b.lower(OpType::softmax, {{{8192, 1280}}});
  CHECK(block.launches[0].name == "cunn_SoftMaxForward<4>");
  CHECK(block.launches[0].grid[0] == 8192);
  CHECK(block.launches[0].cta.threads == 256);
  CHECK(detail(block.launches[0]).reread_bytes == 2.0 * 4 * 8192 * 1280);
  CHECK(b.lower(OpType::softmax, {{{16, 4096}}}).launches[0].cta.threads == 512);
}

TEST_CASE("the gradient of softmax multiplies first, that of log-softmax does not", "[kernel][softmax]") {
  Bench b;
  const double bytes = 4.0 * 512 * 512;
  const Lowered l = b.lower(OpType::softmax_backward, {{{512, 512}}, {{512, 512}}});
  REQUIRE(l.launches.size() == 2);
  CHECK(traffic(l) == 6 * bytes);
  CHECK(b.lower(OpType::log_softmax_backward, {{{512, 512}}, {{512, 512}}}).launches.size() == 1);
}

TEST_CASE("layer norm reads its rows twice, one CTA each", "[kernel][norm]") {
  Bench b;
  const Lowered l = b.lower(OpType::layer_norm, {{{8192, 1280}}, {{1280}}, {{1280}}});
  REQUIRE(l.launches.size() == 1);
  CHECK(l.launches[0].grid[0] == 8192);  // As recorded for this shape [NEUDATA].
  CHECK(l.launches[0].cta.threads == 128);
  CHECK(detail(l.launches[0]).reread_bytes == 4.0 * 8192 * 1280);
  CHECK(b.lower(OpType::layer_norm, {{{64, 1279}}, {{1279}}, {{1279}}}).launches.size() == 2);
}

TEST_CASE("RMS norm is a chain of kernels in eager code and one when compiled", "[kernel][norm]") {
  Bench b;
  const std::vector<Input> in{{{128, 4096}, DataType::fp16}, {{4096}, DataType::fp16}};
  const Lowered eager = b.lower(OpType::rms_norm, in);
  CHECK(eager.launches.size() == 8);
  CHECK(eager.host_calls == 8);
  CHECK(b.lower(OpType::rms_norm, in, {}, 1, Framework::compiled).launches.size() == 1);
}

TEST_CASE("batch norm reads twice in training, once in inference", "[kernel][norm]") {
  Bench b;
  const std::vector<Input> in{{{8, 64, 16, 16}}, {{64}}, {{64}}, {{64}}, {{64}}};
  const double bytes = 4.0 * 8 * 64 * 16 * 16;
  const Lowered training = b.lower(OpType::batch_norm, in, with("training", std::int64_t{1}));
  CHECK(detail(training.launches[0]).reread_bytes == bytes);
  CHECK(detail(b.lower(OpType::batch_norm, in).launches[0]).reread_bytes == 0);
}

TEST_CASE("dropout writes a byte of mask per element; without a probability it vanishes", "[kernel][random]") {
  Bench b;
  const Lowered l = b.lower(OpType::dropout, {{{1000}}}, with("p", 0.1), 2);
  REQUIRE(l.launches.size() == 1);
  CHECK(traffic(l) == 9000);
  const Lowered none = b.lower(OpType::dropout, {{{1000}}}, with("p", 0.0), 2);
  CHECK(none.launches.empty());
  CHECK(none.host == HostClass::view);
}

TEST_CASE("packing a permuted view copies, packing packed memory does nothing", "[kernel][copy]") {
  Bench b;
  const auto x = b.input({{2, 16, 128, 64}});
  CHECK(b.lower(b.add(OpType::contiguous, {x})).launches.empty());
  const auto swapped =
      b.g.node(b.add(OpType::transpose, {x}, with("perm", std::vector<std::int64_t>{0, 2, 1, 3}))).outputs[0];
  const Lowered rows = b.lower(b.add(OpType::contiguous, {swapped}));
  REQUIRE(rows.launches.size() == 1);
  CHECK(detail(rows.launches[0]).kind == VectorKind::copy_strided);
  CHECK(detail(rows.launches[0]).cols == 64);
  const auto turned =
      b.g.node(b.add(OpType::transpose, {x}, with("perm", std::vector<std::int64_t>{0, 1, 3, 2}))).outputs[0];
  CHECK(detail(b.lower(b.add(OpType::contiguous, {turned})).launches[0]).cols == 1);
}

TEST_CASE("views launch nothing", "[kernel][copy]") {
  Bench b;
  const Lowered l = b.lower(OpType::transpose, {{{4, 8}}});
  CHECK(l.launches.empty());
  CHECK(l.host == HostClass::view);
}

TEST_CASE("the gradient of an embedding is dense and is zeroed first; many indices are sorted", "[kernel][embedding]") {
  Bench b;
  const auto rows = with("rows", std::int64_t{30522});
  const Lowered few = b.lower(OpType::embedding_backward, {{{1024, 64}}, {{1024}, DataType::int64}}, rows);
  REQUIRE(few.launches.size() == 2);
  CHECK(few.launches[0].work.written.value == 4.0 * 30522 * 64);
  const Lowered many = b.lower(OpType::embedding_backward, {{{8192, 64}}, {{8192}, DataType::int64}}, rows);
  CHECK(many.launches.size() > 4);
}

TEST_CASE("max pooling keeps 64-bit positions", "[kernel][pooling]") {
  Bench b;
  graph::Attributes a;
  a.set("kernel", std::int64_t{2});
  const Lowered l = b.lower(OpType::max_pool2d, {{{1, 1, 8, 8}}}, a);
  REQUIRE(l.launches.size() == 1);
  CHECK(l.launches[0].work.written.value == 16 * (4 + 8));
}

TEST_CASE("cross entropy is a log-softmax and a pick; its gradient zeroes, picks and differentiates",
          "[kernel][loss]") {
  Bench b;
  const std::vector<Input> in{{{512, 30522}}, {{512}, DataType::int64}};
  CHECK(b.lower(OpType::cross_entropy, in).launches.size() == 2);
  CHECK(b.lower(OpType::cross_entropy_backward, in).launches.size() == 3);
}

TEST_CASE("an Adam step reads weight, gradient and moments and writes all but the gradient", "[kernel][optimizer]") {
  Bench b;
  graph::Node node;
  node.id = "step";
  node.op = OpType::optimizer_step;
  node.attributes.set("optimizer", std::string("adam"));
  node.attributes.set("elements", std::int64_t{1000000});
  const auto id = b.g.add_node(node);
  CHECK(traffic(b.lower(id)) == 28e6);
}

TEST_CASE("copies over the host link are transfers", "[kernel][transfer]") {
  Bench b;
  const Lowered l = b.lower(OpType::host_to_device, {{{1000}}});
  REQUIRE(l.launches.size() == 1);
  CHECK(std::get<kernel::TransferKernel>(l.launches[0].detail).bytes.value == 4000);
}

TEST_CASE("a compiler transposes in tiles, so that no run is short", "[kernel][fusion]") {
  Bench b;
  const auto x = b.input({{64, 64}});
  const auto t = b.g.node(b.add(OpType::transpose, {x})).outputs[0];
  const auto copy = b.add(OpType::contiguous, {t});
  CHECK(detail(b.lower(copy).launches.at(0)).cols == 1);
  CHECK(detail(b.lower(copy, Framework::compiled).launches.at(0)).cols == 32);
  CHECK(traffic(b.lower(copy)) == traffic(b.lower(copy, Framework::compiled)));
}
