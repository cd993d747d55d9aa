// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// Forward graph of one operation on parameter x (and others), differentiated from its output.
Sketch single(OpType op, const std::vector<Shape>& shapes,
              std::vector<std::pair<std::string, Attributes::Value>> attributes = {}) {
  Sketch g;
  std::vector<TensorId> inputs;
  for (const Shape& shape : shapes) inputs.push_back(g.input("x" + std::to_string(inputs.size()), shape));
  g.graph.outputs = {g.op(op, "op", inputs, std::move(attributes))};
  append_backward(g.graph);
  return g;
}

std::vector<std::string> backward_ops(const OpGraph& graph) {
  std::vector<std::string> ops;
  for (const Node* node : nodes_of(graph, Phase::backward)) ops.emplace_back(to_string(node->op));
  return ops;
}

}  // namespace

TEST_CASE("a two-layer network has the gradient kernels counted by hand", "[graph][backward]") {
  Sketch g = mlp();
  append_backward(g.graph);
  check_sound(g.graph);
  // seed, loss; fc2: dgrad, wgrad, bgrad; relu; fc1: wgrad, bgrad (no dgrad: x is the network's input).
  CHECK(backward_ops(g.graph) == std::vector<std::string>{"fill", "cross_entropy_backward", "matmul", "matmul",
                                                          "reduce_sum", "pointwise_backward", "matmul", "reduce_sum"});
  CHECK(output_of(g.graph, "fc2.backward.dgrad").shape == Shape{8, 32});
  CHECK(find_tensor(g.graph, "w2.grad").shape == Shape{4, 32});
  CHECK(find_tensor(g.graph, "w1.grad").shape == Shape{32, 16});
  CHECK(find_tensor(g.graph, "b1.grad").shape == Shape{32});
  const Node& wgrad = find_node(g.graph, "fc1.backward.wgrad");
  CHECK(wgrad.attributes.flag("linear"));
  CHECK(wgrad.attributes.flag("transpose_a"));
  CHECK_FALSE(wgrad.attributes.flag("transpose_b"));
  CHECK(g.graph.node(wgrad.forward_of).id == "fc1");
  CHECK(wgrad.layer == "fc1");
  CHECK(wgrad.phase == Phase::backward);
}

TEST_CASE("both gradients of a dense layer cost its forward multiply-adds each", "[graph][backward]") {
  for (const bool transposed : {false, true}) {
    Sketch g;
    const TensorId x = g.parameter("x", {2, 8, 16});
    const TensorId w = g.parameter("w", transposed ? Shape{16, 32} : Shape{32, 16});
    g.graph.outputs = {g.op(OpType::linear, "fc", {x, w}, {{"transposed_weight", std::int64_t{transposed}}})};
    append_backward(g.graph);
    check_sound(g.graph);
    double backward = 0;
    for (const Node* node : nodes_of(g.graph, Phase::backward)) backward += count(g.graph, *node).flop();
    // 2 * 16 rows * 16 * 32 forward.
    CHECK(count(g.graph, g.graph.node(0)).flop() == 2.0 * 16 * 16 * 32);
    CHECK(backward == 2 * 2.0 * 16 * 16 * 32);
    // [T, out] x w and, for [in, out] weights, [T, out] x w^T; dw = dy^T x or x^T dy.
    CHECK(find_node(g.graph, "fc.backward.dgrad").attributes.flag("transpose_b") == transposed);
    CHECK(find_node(g.graph, "fc.backward.wgrad").attributes.flag("transpose_a"));
    CHECK(find_tensor(g.graph, "w.grad").shape == g.graph.tensor(w).shape);
  }
}

TEST_CASE("matrix products are differentiated in every layout", "[graph][backward]") {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Sketch g;
      const TensorId a = g.parameter("a", ta ? Shape{6, 5, 3} : Shape{6, 3, 5});
      const TensorId b = g.parameter("b", tb ? Shape{6, 7, 5} : Shape{6, 5, 7});
      g.graph.outputs = {
          g.op(OpType::matmul, "mm", {a, b}, {{"transpose_a", std::int64_t{ta}}, {"transpose_b", std::int64_t{tb}}})};
      append_backward(g.graph);
      check_sound(g.graph);
      CHECK(find_tensor(g.graph, "a.grad").shape == g.graph.tensor(a).shape);
      CHECK(find_tensor(g.graph, "b.grad").shape == g.graph.tensor(b).shape);
      CHECK(backward_ops(g.graph) == std::vector<std::string>{"matmul", "matmul"});
    }
  }
}

TEST_CASE("a broadcast operand's gradient is summed over the broadcast dimensions", "[graph][backward]") {
  Sketch g;
  const TensorId a = g.parameter("a", {4, 1, 3, 5});
  const TensorId b = g.parameter("b", {4, 6, 5, 7});
  g.graph.outputs = {g.op(OpType::matmul, "mm", {a, b})};
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(output_of(g.graph, "mm.backward.da").shape == Shape{4, 6, 3, 5});
  CHECK(find_node(g.graph, "mm.backward.sum").attributes.integers("axes") == std::vector<std::int64_t>{1});
  CHECK(find_tensor(g.graph, "a.grad").shape == Shape{4, 1, 3, 5});
}

TEST_CASE("a transformer layer's backward graph is sound and complete", "[graph][backward]") {
  Sketch g = transformer();
  const std::size_t forward = g.graph.nodes().size();
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(g.graph.nodes().size() > 2 * forward);
  for (const Tensor& tensor : g.graph.tensors()) {
    if (tensor.role != TensorRole::parameter) continue;
    INFO(tensor.name);
    const Tensor& gradient = find_tensor(g.graph, tensor.name + ".grad");
    CHECK(gradient.role == TensorRole::parameter_gradient);
    CHECK(gradient.shape == tensor.shape);
  }
  // Heads are merged from strided gradients by copies: q, k, v and the context, as the eager framework does.
  int copies = 0;
  for (const Node* node : nodes_of(g.graph, Phase::backward)) copies += node->op == OpType::contiguous ? 1 : 0;
  CHECK(copies == 4);
  // Unfused attention: a product per operand; dQ reads K itself, not its transposed view.
  CHECK(find_node(g.graph, "scores.backward.da").inputs[1] == find_node(g.graph, "k.c").outputs[0]);
}

TEST_CASE("a table tied to the output layer gets one gradient, the sum of two", "[graph][backward]") {
  Sketch g = transformer();
  append_backward(g.graph);
  const Tensor& gradient = find_tensor(g.graph, "table.grad");
  const Node& sum = g.graph.node(gradient.producer);
  CHECK(sum.op == OpType::add);
  CHECK(g.graph.node(g.graph.tensor(sum.inputs[0]).producer).id == "head.backward.wgrad");
  CHECK(g.graph.node(g.graph.tensor(sum.inputs[1]).producer).op == OpType::embedding_backward);
}

TEST_CASE("convolution gradients leave out the network's input", "[graph][backward]") {
  Sketch g;
  const TensorId x = g.input("x", {2, 3, 8, 8});
  const std::pair<std::string, Attributes::Value> pad{"padding", std::int64_t{1}};
  const TensorId c1 =
      g.op(OpType::conv2d, "conv1", {x, g.parameter("w1", {4, 3, 3, 3}), g.parameter("b1", {4})}, {pad});
  const TensorId bn = g.op(OpType::batch_norm, "bn", {c1, g.parameter("bn.w", {4}), g.parameter("bn.b", {4})},
                           {{"training", std::int64_t{1}}});
  const TensorId c2 =
      g.op(OpType::conv_transpose2d, "conv2", {bn, g.parameter("w2", {4, 5, 2, 2})}, {{"stride", std::int64_t{2}}});
  const TensorId pool = g.op(OpType::max_pool2d, "pool", {c2}, {{"kernel", std::int64_t{2}}});
  const TensorId resized = g.op(OpType::resize, "up", {pool}, {{"scale", 2.0}});
  g.graph.outputs = {g.op(OpType::global_avg_pool2d, "gap", {resized})};
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(backward_ops(g.graph) == std::vector<std::string>{"expand", "div_scalar", "resize_backward", "pool_backward",
                                                          "conv_dgrad", "conv_wgrad", "batch_norm_backward",
                                                          "conv_wgrad", "reduce_sum"});
  CHECK(find_tensor(g.graph, "w1.grad").shape == Shape{4, 3, 3, 3});
  CHECK(count(g.graph, find_node(g.graph, "conv1.backward.wgrad")).mac ==
        count(g.graph, find_node(g.graph, "conv1")).mac);
}

TEST_CASE("pointwise gradients run the kernels of the eager framework", "[graph][backward]") {
  using Ops = std::vector<std::string>;
  const Shape s{4, 8};
  const std::vector<std::pair<std::string, Attributes::Value>> two{{"value", 2.0}};
  CHECK(backward_ops(single(OpType::add, {s, s}).graph).empty());  // Both operands have dy itself.
  CHECK(backward_ops(single(OpType::add, {s, {8}}).graph) == Ops{"reduce_sum"});
  CHECK(backward_ops(single(OpType::sub, {s, s}).graph) == Ops{"neg"});
  CHECK(backward_ops(single(OpType::mul, {s, s}).graph) == Ops{"mul", "mul"});
  CHECK(backward_ops(single(OpType::div, {s, s}).graph) == Ops{"div", "div", "neg", "mul"});
  CHECK(backward_ops(single(OpType::div_scalar, {s}, two).graph) == Ops{"div_scalar"});
  CHECK(backward_ops(single(OpType::add_scalar, {s}, two).graph).empty());
  CHECK(backward_ops(single(OpType::pow_scalar, {s}, two).graph) == Ops{"pow_scalar", "mul_scalar", "mul"});
  CHECK(backward_ops(single(OpType::gelu, {s}).graph) == Ops{"pointwise_backward"});
  CHECK(backward_ops(single(OpType::softmax, {s}).graph) == Ops{"softmax_backward"});
  CHECK(backward_ops(single(OpType::reduce_mean, {s}).graph) == Ops{"reshape", "expand", "div_scalar"});

  const Sketch relu = single(OpType::relu, {s});
  CHECK(find_node(relu.graph, "op.backward.grad").inputs[1] ==
        find_node(relu.graph, "op").outputs[0]);  // Saves its output.
  const Sketch gelu = single(OpType::gelu, {s});
  CHECK(find_node(gelu.graph, "op.backward.grad").inputs[1] ==
        find_node(gelu.graph, "op").inputs[0]);  // Saves its input.
}

TEST_CASE("every pointwise function that has a gradient gives one of its own shape", "[graph][backward]") {
  for (const OpType op : all_ops()) {
    if (family(op) != OpFamily::pointwise || op == OpType::pointwise_backward || op == OpType::fused_pointwise)
      continue;
    const bool integer_result = op == OpType::compare || op == OpType::compare_scalar || op == OpType::logical_not;
    INFO(to_string(op));
    std::vector<std::pair<std::string, Attributes::Value>> attributes{{"value", 2.0}, {"relation", std::string("lt")}};
    if (op == OpType::cast) attributes = {{"to", std::string("fp16")}};
    Sketch g;
    const TensorId x = g.parameter("x", {4, 8});
    std::vector<TensorId> inputs{x};
    if (op == OpType::where) inputs = {g.input("c", {4, 1}, DataType::boolean), x, g.parameter("z", {8})};
    if (op == OpType::masked_fill) inputs.push_back(g.input("m", {8}, DataType::boolean));
    if (op == OpType::silu_mul || op == OpType::gelu_mul) inputs.push_back(g.parameter("z", {4, 8}));
    if (op == OpType::add || op == OpType::sub || op == OpType::mul || op == OpType::div || op == OpType::pow ||
        op == OpType::maximum || op == OpType::minimum || op == OpType::compare) {
      inputs.push_back(g.parameter("z", {8}));
    }
    g.graph.outputs = {g.op(op, "op", inputs, attributes)};
    append_backward(g.graph);
    check_sound(g.graph);
    if (integer_result) {
      CHECK(nodes_of(g.graph, Phase::backward).empty());
    } else {
      CHECK(find_tensor(g.graph, "x.grad").shape == Shape{4, 8});
      CHECK(find_tensor(g.graph, "x.grad").dtype == DataType::fp32);
    }
  }
}

TEST_CASE("views and movements are undone", "[graph][backward]") {
  Sketch g;
  const TensorId x = g.parameter("x", {4, 6});
  const TensorId first =
      g.op(OpType::split, "split", {x}, {{"axis", std::int64_t{1}}, {"sizes", std::vector<std::int64_t>{2, 4}}}, 2);
  const TensorId second = first + 1;
  const TensorId sliced = g.op(OpType::slice, "slice", {second},
                               {{"axis", std::int64_t{1}}, {"start", std::int64_t{1}}, {"end", std::int64_t{3}}});
  const TensorId joined = g.op(OpType::concat, "concat", {first, sliced}, {{"axis", std::int64_t{0}}});
  const TensorId padded = g.op(OpType::pad, "pad", {joined}, {{"pads", std::vector<std::int64_t>{1, 0, 0, 2}}});
  const TensorId wide = g.op(OpType::reshape, "wide", {padded}, {{"shape", std::vector<std::int64_t>{9, 1, 4}}});
  const TensorId expanded = g.op(OpType::expand, "expand", {wide}, {{"shape", std::vector<std::int64_t>{9, 5, 4}}});
  g.graph.outputs = {g.op(OpType::transpose, "t", {expanded}, {{"perm", std::vector<std::int64_t>{2, 0, 1}}})};
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(find_node(g.graph, "split.backward.concat").outputs.size() == 1);
  CHECK(find_tensor(g.graph, "x.grad").shape == Shape{4, 6});
}

TEST_CASE("a mixture of experts is differentiated through its routing weights", "[graph][backward]") {
  Sketch g;
  const TensorId x = g.input("x", {16, 8});
  const TensorId logits = g.op(OpType::linear, "router", {x, g.parameter("gate", {4, 8})});
  const TensorId weight =
      g.op(OpType::topk, "topk", {g.op(OpType::softmax, "p", {logits})}, {{"k", std::int64_t{2}}}, 2);
  const TensorId index = weight + 1;
  const TensorId sent = g.op(OpType::moe_dispatch, "dispatch", {x, index}, {{"experts", std::int64_t{4}}});
  const TensorId up = g.op(OpType::grouped_linear, "up", {sent, g.parameter("w1", {4, 16, 8})});
  const TensorId act = g.op(OpType::silu_mul, "act",
                            {up, g.op(OpType::grouped_linear, "gate_up", {sent, g.parameter("w3", {4, 16, 8})})});
  const TensorId down = g.op(OpType::grouped_linear, "down", {act, g.parameter("w2", {4, 16, 8})},
                             {{"transposed_weight", std::int64_t{1}}});
  g.graph.outputs = {g.op(OpType::moe_combine, "combine", {down, index, weight})};
  append_backward(g.graph);
  check_sound(g.graph, false);
  for (const char* name : {"gate", "w1", "w2", "w3"})
    CHECK(find_tensor(g.graph, std::string(name) + ".grad").shape == find_tensor(g.graph, name).shape);
}

TEST_CASE("an operation without a rule is refused by name", "[graph][backward]") {
  Sketch g;
  const TensorId x = g.parameter("x", {4, 2, 8});
  g.graph.outputs = {g.op(OpType::all_reduce, "sum", {x})};
  CHECK_THROWS_WITH(append_backward(g.graph),
                    Catch::Matchers::Equals("node 'sum': operation all_reduce has no backward rule"));
  CHECK(g.graph.nodes().size() == 1);  // And the graph is as it was.
}

TEST_CASE("a parameter's gradient is a tensor of its own", "[graph][backward]") {
  Sketch g;
  g.graph.outputs = {g.op(OpType::add, "sum", {g.parameter("a", {4}), g.parameter("b", {4})})};
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(backward_ops(g.graph) == std::vector<std::string>{"copy", "copy"});  // dy is given from outside and shared.
}

TEST_CASE("accumulation over micro-steps reads gradient and total once per parameter", "[graph][backward]") {
  Sketch g = mlp();
  append_backward(g.graph, {.accumulate_gradients = true});
  check_sound(g.graph);
  CHECK(count_ops(g.graph, OpType::grad_accumulate) == 4);
  CHECK(find_tensor(g.graph, "w1.grad").producer == kNoNode);
}

TEST_CASE("frozen parameters and what lies before them cost nothing", "[graph][backward]") {
  Sketch g = mlp();
  for (TensorId t = 0; t < g.graph.tensors().size(); ++t) {
    const std::string& name = g.graph.tensor(t).name;
    if (name == "w1" || name == "b1") g.graph.tensor(t).trainable = false;
  }
  append_backward(g.graph);
  CHECK(backward_ops(g.graph) == std::vector<std::string>{"fill", "cross_entropy_backward", "matmul", "reduce_sum"});
}

TEST_CASE("gradients too large to count are refused", "[graph][backward]") {
  Sketch g;
  const std::int64_t n = std::int64_t{1} << 31;
  g.graph.outputs = {g.op(OpType::matmul, "mm", {g.parameter("a", {1, n, n}), g.parameter("b", {n, n, 1})})};
  CHECK_THROWS_AS(append_backward(g.graph), UnsupportedError);
}
