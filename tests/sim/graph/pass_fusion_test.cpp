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

double flop(const OpGraph& graph) {
  double sum = 0;
  for (const Node& node : graph.nodes()) sum += count(graph, node).flop();
  return sum;
}

/// A random program of pointwise operations, row reductions, views, copies, lookups and products over square matrices.
Sketch random_program(unsigned seed, std::size_t kinds) {
  Sketch g;
  unsigned state = seed * 2654435761U + 1;
  const auto pick = [&](std::size_t n) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::size_t>(state >> 16) % n;
  };
  std::vector<TensorId> square{g.input("x", {8, 8}), g.parameter("w", {8, 8})};
  std::vector<TensorId> row{g.op(OpType::neg, "neg", {g.parameter("r", {8})})};
  const TensorId ids = g.input("ids", {8}, DataType::int64);
  const TensorId weight = g.parameter("norm.w", {8}), bias = g.parameter("norm.b", {8});
  const std::vector<std::pair<std::string, Attributes::Value>> long_shape{{"shape", std::vector<std::int64_t>{2, 32}}};
  const std::vector<std::pair<std::string, Attributes::Value>> square_shape{{"shape", std::vector<std::int64_t>{8, 8}}};
  for (int i = 0; i < 40; ++i) {
    const std::string id = "n" + std::to_string(i);
    const TensorId a = square[pick(square.size())];
    switch (pick(kinds)) {
      case 0: square.push_back(g.op(OpType::relu, id, {a})); break;
      case 1: square.push_back(g.op(OpType::add, id, {a, square[pick(square.size())]})); break;
      case 2: square.push_back(g.op(OpType::mul, id, {a, row[pick(row.size())]})); break;
      case 3: square.push_back(g.op(OpType::matmul, id, {a, square[pick(square.size())]})); break;
      case 4: row.push_back(g.op(OpType::exp, id, {row[pick(row.size())]})); break;
      case 5: square.push_back(g.op(OpType::dropout, id, {a}, {}, 2)); break;
      case 6: square.push_back(g.op(OpType::softmax, id, {a})); break;
      case 7: square.push_back(g.op(OpType::layer_norm, id, {a, weight, bias})); break;
      case 8: square.push_back(g.op(OpType::transpose, id, {a})); break;
      case 9: square.push_back(g.op(OpType::contiguous, id, {a})); break;
      case 10: square.push_back(g.op(OpType::embedding, id, {ids, g.parameter(id + ".table", {8, 8})})); break;
      default:
        square.push_back(g.op(OpType::reshape, id,
                              {g.op(OpType::exp, id + ".exp", {g.op(OpType::reshape, id + ".view", {a}, long_shape)})},
                              square_shape));
        break;
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
  for (unsigned seed = 0; seed < 240; ++seed) {
    INFO("seed " << seed);
    Sketch g = random_program(seed, seed < 60 ? 6 : 12);
    if (seed % 2 == 1) append_backward(g.graph);
    const double before = bytes_moved(g.graph);
    const double work = flop(g.graph);
    const auto shapes = output_shapes(g.graph);
    const auto nodes = static_cast<std::int64_t>(g.graph.nodes().size());
    const std::int64_t gone = fuse_pointwise(g.graph);
    CHECK(static_cast<std::int64_t>(g.graph.nodes().size()) == nodes - gone);
    check_sound(g.graph, false);
    check_outputs_are_made(g.graph);
    CHECK(g.graph.reorder().empty());
    CHECK(output_shapes(g.graph) == shapes);
    CHECK(bytes_moved(g.graph) <= before);
    CHECK(flop(g.graph) == work);
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

TEST_CASE("scale, mask and softmax are one kernel that writes once", "[graph][fusion]") {
  Sketch g;
  const TensorId scores = g.input("scores", {2, 4, 8, 16});
  const TensorId mask = g.input("mask", {2, 1, 1, 16});
  const TensorId scaled = g.op(OpType::div_scalar, "scale", {scores}, {{"value", 8.0}});
  const TensorId p = g.op(OpType::softmax, "softmax", {g.op(OpType::add, "masked", {scaled, mask})});
  g.graph.outputs = {g.op(OpType::dropout, "dropout", {p}, {}, 2)};
  CHECK(fuse_pointwise(g.graph) == 3);
  check_sound(g.graph);
  REQUIRE(g.graph.nodes().size() == 1);
  const Node& fused = g.graph.node(0);
  CHECK(fused.id == "softmax");
  CHECK(fused.op == OpType::fused_softmax);
  CHECK(fused.attributes.word("functions", "") == "div_scalar,add,softmax,dropout");
  CHECK(fused.attributes.integer("cols", 0) == 16);
  CHECK(bytes_moved(g.graph) == (1024 + 32 + 1024) * 4.0);  // Scores and mask at their own size, one result.
  CHECK(count(g.graph, fused).other_flop == 1024 * (1 + 1 + 5 + 2.0));
}

TEST_CASE("a residual sum goes into its layer norm and is written for its other reader", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {4, 8});
  const TensorId y = g.op(OpType::matmul, "mm", {x, g.parameter("w", {8, 8})});
  const TensorId sum = g.op(OpType::add, "sum", {y, x});
  const TensorId n = g.op(OpType::layer_norm, "norm", {sum, g.parameter("n.w", {8}), g.parameter("n.b", {8})});
  const TensorId z = g.op(OpType::matmul, "next", {n, g.parameter("v", {8, 8})});
  g.graph.outputs = {g.op(OpType::add, "residual", {z, sum})};
  CHECK(fuse_pointwise(g.graph) == 1);
  check_sound(g.graph, false);
  const Node& fused = find_node(g.graph, "norm");
  CHECK(fused.op == OpType::fused_norm);
  CHECK(fused.outputs == std::vector<TensorId>{sum, n});
  CHECK(count(g.graph, fused).other_flop == 32 * (1 + 5 + 2.0));  // Sum, norm, weight and bias.
}

TEST_CASE("a kernel computes one reduction, and none twice", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {4, 8});
  const TensorId first = g.op(OpType::softmax, "first", {x});
  g.graph.outputs = {g.op(OpType::softmax, "second", {g.op(OpType::exp, "exp", {first})})};
  CHECK(fuse_pointwise(g.graph) == 1);
  CHECK(find_node(g.graph, "first").op == OpType::softmax);
  CHECK(find_node(g.graph, "second").attributes.word("functions", "") == "exp,softmax");
  Sketch h;  // Two norms of one sum: the sum goes into the first and is written for the second.
  const TensorId sum = h.op(OpType::neg, "neg", {h.input("x", {4, 8})});
  h.graph.outputs = {h.op(OpType::layer_norm, "a", {sum}), h.op(OpType::layer_norm, "b", {sum})};
  CHECK(fuse_pointwise(h.graph) == 1);
  CHECK(find_node(h.graph, "a").outputs.size() == 2);
  CHECK(find_node(h.graph, "b").op == OpType::layer_norm);
}

TEST_CASE("what follows the rows is no part of their inputs", "[graph][fusion]") {
  Sketch g;
  const TensorId x = g.input("x", {4, 8});
  const TensorId other = g.input("other", {4, 8});
  const TensorId n = g.op(OpType::rms_norm, "norm", {x, g.parameter("w", {8})});
  g.graph.outputs = {g.op(OpType::add, "add", {n, other})};
  CHECK(fuse_pointwise(g.graph) == 1);
  const Node& fused = find_node(g.graph, "norm");
  CHECK(fused.attributes.integer("row_inputs", 0) == 2);
  CHECK(fused.inputs == std::vector<TensorId>{x, find_node(g.graph, "norm").inputs[1], other});
}

TEST_CASE("a softmax across rows keeps its own kernel", "[graph][fusion]") {
  Sketch g;
  const TensorId e = g.op(OpType::exp, "exp", {g.input("x", {4, 8})});
  g.graph.outputs = {g.op(OpType::softmax, "softmax", {e}, {{"axis", std::int64_t{0}}})};
  CHECK(fuse_pointwise(g.graph) == 0);
}

TEST_CASE("views inside a kernel vanish, and packing is a strided read", "[graph][fusion]") {
  Sketch g;
  const TensorId y = g.op(OpType::matmul, "mm", {g.input("x", {8, 8}), g.parameter("w", {8, 8})});
  const TensorId t = g.op(OpType::transpose, "t", {g.op(OpType::gelu, "gelu", {y})});
  const TensorId packed = g.op(OpType::contiguous, "packed", {t});
  g.graph.outputs = {g.op(OpType::matmul, "next", {packed, y})};
  CHECK(fuse_pointwise(g.graph) == 2);
  check_sound(g.graph);
  CHECK(g.graph.nodes().size() == 3);
  CHECK(find_node(g.graph, "packed").attributes.word("functions", "") == "gelu,contiguous");
  Sketch h;  // A view that others read stays, and so does its source.
  const TensorId a = h.op(OpType::relu, "relu", {h.input("x", {8, 8})});
  const TensorId v = h.op(OpType::transpose, "v", {a});
  h.graph.outputs = {h.op(OpType::exp, "exp", {v}), h.op(OpType::matmul, "mm", {v, v})};
  CHECK(fuse_pointwise(h.graph) == 1);
  check_sound(h.graph);
  CHECK(find_node(h.graph, "exp").outputs.size() == 2);
  CHECK(find_node(h.graph, "mm").inputs[0] == v);
}

TEST_CASE("a part of a tensor is not the same elements", "[graph][fusion]") {
  Sketch g;
  const TensorId a = g.op(OpType::relu, "relu", {g.input("x", {8, 8})});
  const TensorId half = g.op(OpType::slice, "half", {a}, {{"axis", std::int64_t{0}}, {"end", std::int64_t{1}}});
  const TensorId all = g.op(OpType::expand, "all", {half}, {{"shape", std::vector<std::int64_t>{8, 8}}});
  g.graph.outputs = {g.op(OpType::exp, "exp", {all})};
  CHECK(fuse_pointwise(g.graph) == 0);  // Each element of relu would be computed eight times.
}

TEST_CASE("lookups, their sums and the norm of an embedding are one kernel", "[graph][fusion]") {
  Sketch g;
  const TensorId ids = g.input("ids", {2, 8}, DataType::int64);
  const TensorId word = g.op(OpType::embedding, "word", {ids, g.parameter("words", {1000, 16})});
  const TensorId type = g.op(OpType::embedding, "type", {ids, g.parameter("types", {2, 16})});
  const TensorId sum = g.op(OpType::add, "sum", {word, type});
  g.graph.outputs = {g.op(OpType::layer_norm, "norm", {sum, g.parameter("n.w", {16}), g.parameter("n.b", {16})})};
  CHECK(fuse_pointwise(g.graph) == 3);
  check_sound(g.graph);
  CHECK(g.graph.node(0).attributes.word("functions", "") == "embedding,embedding,add,layer_norm");
}

TEST_CASE("a cache is written for its own sake", "[graph][fusion]") {
  Sketch g;
  const TensorId k = g.op(OpType::mul_scalar, "key", {g.input("x", {4, 8})});
  const TensorId cached = g.op(OpType::copy, "cache", {k});
  g.graph.tensor(cached).role = TensorRole::buffer;
  g.graph.outputs = {k};
  CHECK(fuse_pointwise(g.graph) == 0);
}

TEST_CASE("the gradient of a softmax takes in the dropout before it and the scale after it", "[graph][fusion]") {
  Sketch g = transformer();
  append_backward(g.graph);
  fuse_pointwise(g.graph);
  const Node& grad = find_node(g.graph, "softmax.backward.grad");
  CHECK(grad.op == OpType::fused_softmax);
  CHECK(grad.attributes.word("functions", "") == "dropout_backward,softmax_backward,div_scalar");
  CHECK(g.graph.node(grad.forward_of).attributes.word("functions", "") == "div_scalar,add,softmax,dropout");
  CHECK(find_node(g.graph, "softmax").outputs.size() == 3);  // Probabilities, dropped ones and the mask.
}
