// SPDX-License-Identifier: MIT
#include <numeric>

#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// Bytes that kernels move when each reads its inputs and writes its outputs once.
double bytes_moved(const OpGraph& graph) {
  double bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (family(node.op) == OpFamily::view) continue;
    for (const TensorId t : node.inputs) bytes += graph.tensor(t).bytes();
    for (const TensorId t : node.outputs) bytes += graph.tensor(t).bytes();
  }
  return bytes;
}

std::vector<std::string> output_shapes(const OpGraph& graph) {
  std::vector<std::string> shapes;
  for (const TensorId t : graph.outputs) shapes.push_back(graph.tensor(t).name + to_string(graph.tensor(t).shape));
  return shapes;
}

void check_outputs_are_made(const OpGraph& graph) {
  for (const TensorId t : graph.outputs) CHECK(graph.tensor(t).producer != kNoNode);
  for (const Node& node : graph.nodes()) {
    for (const TensorId t : node.inputs) {
      const Tensor& tensor = graph.tensor(t);
      const bool made_inside = tensor.role == TensorRole::activation || tensor.role == TensorRole::parameter_gradient;
      if (made_inside) CHECK(tensor.producer != kNoNode);
    }
  }
}

/// A random program of pointwise operations and products over a few square matrices.
Sketch random_program(unsigned seed) {
  Sketch g;
  unsigned state = seed * 2654435761U + 1;
  const auto pick = [&](std::size_t n) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::size_t>(state >> 16) % n;
  };
  std::vector<TensorId> square{g.input("x", {8, 8}), g.parameter("w", {8, 8})};
  std::vector<TensorId> row{g.parameter("r", {8})};
  for (int i = 0; i < 40; ++i) {
    const std::string id = "n" + std::to_string(i);
    const TensorId a = square[pick(square.size())];
    switch (pick(6)) {
      case 0: square.push_back(g.op(OpType::relu, id, {a})); break;
      case 1: square.push_back(g.op(OpType::add, id, {a, square[pick(square.size())]})); break;
      case 2: square.push_back(g.op(OpType::mul, id, {a, row[pick(row.size())]})); break;
      case 3: square.push_back(g.op(OpType::matmul, id, {a, square[pick(square.size())]})); break;
      case 4: row.push_back(g.op(OpType::exp, id, {row[pick(row.size())]})); break;
      default: square.push_back(g.op(OpType::dropout, id, {a}, {}, 2)); break;
    }
  }
  g.graph.outputs = {square.back(), row.back()};
  return g;
}

}  // namespace

TEST_CASE("a chain of pointwise operations becomes one kernel", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {4, 8});
  const TensorId b = g.parameter("b", {8});
  const TensorId y = g.op(OpType::gelu, "gelu", {g.op(OpType::add, "bias", {x, b})});
  g.graph.outputs = {g.op(OpType::mul, "scale", {y, x})};
  CHECK(fuse_pointwise(g.graph) == 2);
  check_sound(g.graph);
  REQUIRE(g.graph.nodes().size() == 1);
  const Node& fused = g.graph.node(0);
  CHECK(fused.attributes.word("functions", "") == "add,gelu,mul");
  CHECK(fused.inputs == std::vector<TensorId>{x, b});  // x once.
  CHECK(fused.outputs == g.graph.outputs);
  // Read x and b, write y: (32 + 8 + 32) * 4 bytes.
  CHECK(bytes_moved(g.graph) == 72.0 * 4);
}

TEST_CASE("no path leaves a fused kernel and comes back", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 8});
  const TensorId a = g.op(OpType::relu, "relu", {x});
  const TensorId m = g.op(OpType::matmul, "mm", {a, a});
  g.graph.outputs = {g.op(OpType::add, "add", {m, a})};
  CHECK(fuse_pointwise(g.graph) == 0);  // relu and add together would wait for themselves.
}

TEST_CASE("a branch that waits for a product still joins the only kernel that reads it", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 8});
  const TensorId early = g.op(OpType::exp, "exp", {g.op(OpType::neg, "neg", {x})});
  const TensorId m = g.op(OpType::matmul, "mm", {x, x});
  g.graph.outputs = {g.op(OpType::mul, "mul", {g.op(OpType::tanh, "tanh", {m}), early})};
  CHECK(fuse_pointwise(g.graph) == 3);
  check_sound(g.graph);
  CHECK(g.graph.node(1).attributes.word("functions", "") == "neg,exp,tanh,mul");
}

TEST_CASE("values read elsewhere stay outputs of the fused kernel", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 8});
  const TensorId a = g.op(OpType::relu, "a", {x});
  const TensorId b = g.op(OpType::exp, "b", {a});
  const TensorId m = g.op(OpType::matmul, "mm", {a, b});
  g.graph.outputs = {m};
  CHECK(fuse_pointwise(g.graph) == 1);
  CHECK(g.graph.node(0).outputs == std::vector<TensorId>{a, b});
}

TEST_CASE("other shapes and other phases are not fused", "[graph][fusion]") {
  Sketch g;
  const TensorId r = g.op(OpType::exp, "row", {g.parameter("r", {8})});
  g.graph.outputs = {g.op(OpType::mul, "mul", {g.input("x", {4, 8}), r})};
  CHECK(fuse_pointwise(g.graph) == 0);
  Sketch h;
  h.graph.outputs = {h.op(OpType::gelu, "gelu", {h.parameter("x", {4, 8})})};
  append_backward(h.graph);
  CHECK(fuse_pointwise(h.graph) == 0);  // gelu_backward reads nothing that gelu made, and is of another phase.
}

TEST_CASE("fusion keeps outputs, order and meaning, and never adds bytes", "[graph][fusion]") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    Sketch g = random_program(seed);
    if (seed % 2 == 1) append_backward(g.graph);
    const double before = bytes_moved(g.graph);
    const auto shapes = output_shapes(g.graph);
    const auto nodes = static_cast<std::int64_t>(g.graph.nodes().size());
    const std::int64_t gone = fuse_pointwise(g.graph);
    CHECK(static_cast<std::int64_t>(g.graph.nodes().size()) == nodes - gone);
    check_sound(g.graph, false);
    check_outputs_are_made(g.graph);
    CHECK(g.graph.reorder().empty());
    CHECK(output_shapes(g.graph) == shapes);
    CHECK(bytes_moved(g.graph) <= before);
    CHECK(fuse_pointwise(g.graph) == 0);  // Nothing is left to fuse.
  }
}

TEST_CASE("a training step of a transformer layer fuses its activation and residual chains", "[graph][fusion]") {
  for (const auto precision : {Precision::fp32, Precision::mixed_fp16}) {
    Sketch g = transformer();
    assign_precision(g.graph, precision);
    append_backward(g.graph);
    append_optimizer(g.graph, Optimizer::adam, precision);
    const double before = bytes_moved(g.graph);
    CHECK(fuse_pointwise(g.graph) > 0);
    check_sound(g.graph, false);
    check_outputs_are_made(g.graph);
    CHECK(bytes_moved(g.graph) < before);
    for (const Node& node : g.graph.nodes()) {
      if (node.forward_of != kNoNode) CHECK(g.graph.node(node.forward_of).phase == Phase::forward);
    }
  }
}
