// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

TEST_CASE("precision names are read as they are written", "[graph][precision]") {
  for (const Precision p : all_precisions()) CHECK(parse_precision(to_string(p)) == p);
  CHECK(to_string(Precision::mixed_bf16) == "mixed-bf16");
  CHECK_FALSE(parse_precision("mixed"));
  CHECK(all_precisions().size() == 12);
}

TEST_CASE("fp32 never means TF32, and TF32 changes products only", "[graph][precision]") {
  Sketch g = transformer();
  assign_precision(g.graph, Precision::fp32);
  for (const Node& node : g.graph.nodes()) CHECK(node.compute == DataType::fp32);
  assign_precision(g.graph, Precision::tf32);
  for (const Tensor& tensor : g.graph.tensors()) CHECK((tensor.dtype == DataType::fp32 || !is_floating(tensor.dtype)));
  CHECK(find_node(g.graph, "up").compute == DataType::tf32);
  CHECK(find_node(g.graph, "scores").compute == DataType::tf32);
  CHECK(find_node(g.graph, "gelu").compute == DataType::fp32);
}

TEST_CASE("plain 16-bit converts parameters and activations and leaves integers", "[graph][precision]") {
  Sketch g = transformer();
  const std::size_t nodes = g.graph.nodes().size();
  assign_precision(g.graph, Precision::bf16);
  CHECK(g.graph.nodes().size() == nodes);
  CHECK(find_tensor(g.graph, "up.w").dtype == DataType::bf16);
  CHECK(find_tensor(g.graph, "gelu.y").dtype == DataType::bf16);
  CHECK(find_tensor(g.graph, "ids").dtype == DataType::int64);
  CHECK(find_tensor(g.graph, "dropout.y1").dtype == DataType::boolean);
  CHECK(find_node(g.graph, "up").compute == DataType::bf16);
}

TEST_CASE("autocast casts each weight once and each activation where it is used", "[graph][precision]") {
  Sketch g = transformer();
  assign_precision(g.graph, Precision::mixed_fp16);
  check_sound(g.graph);
  CHECK(find_tensor(g.graph, "up.w").dtype == DataType::fp32);
  CHECK(find_node(g.graph, "q").compute == DataType::fp16);
  CHECK(find_tensor(g.graph, "q.y").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "ln.y").dtype == DataType::fp32);  // The embedding gave fp32 already.
  CHECK(find_tensor(g.graph, "scale.y").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "masked.y").dtype == DataType::fp32);    // The mask is fp32: widest wins.
  CHECK(find_tensor(g.graph, "residual.y").dtype == DataType::fp32);  // fp16 plus an fp32 residual.
  CHECK(find_tensor(g.graph, "gelu.y").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "loss.y").dtype == DataType::fp32);
  // Casts: q, k, v: input, weight, bias each; context: probabilities; o: weight, bias; up: input, weight, bias;
  // down: weight, bias; head: the table; loss: logits.
  CHECK(count_ops(g.graph, OpType::cast) == 9 + 1 + 2 + 3 + 2 + 1 + 1);
}

TEST_CASE("a weight used twice is cast once per step", "[graph][precision]") {
  Sketch g;
  const TensorId x = g.input("x", {4, 8});
  const TensorId w = g.parameter("w", {8, 8});
  g.graph.outputs = {g.op(OpType::linear, "b", {g.op(OpType::linear, "a", {x, w}), w})};
  assign_precision(g.graph, Precision::mixed_bf16);
  CHECK(count_ops(g.graph, OpType::cast) == 2);  // x and w.
  CHECK(find_node(g.graph, "a").inputs[1] == find_node(g.graph, "b").inputs[1]);
}

TEST_CASE("softmax reads fp16 itself and bf16 through a cast", "[graph][precision]") {
  for (const auto precision : {Precision::mixed_fp16, Precision::mixed_bf16}) {
    Sketch g;
    const TensorId y = g.op(OpType::linear, "fc", {g.input("x", {4, 8}), g.parameter("w", {8, 8})});
    g.graph.outputs = {g.op(OpType::softmax, "p", {y})};
    assign_precision(g.graph, precision);
    CHECK(find_tensor(g.graph, "p.y").dtype == DataType::fp32);
    CHECK(count_ops(g.graph, OpType::cast) == (precision == Precision::mixed_fp16 ? 2 : 3));
  }
}

TEST_CASE("mixed precision trains fp32 parameters with fp32 gradients through 16-bit products",
          "[graph][precision][backward]") {
  Sketch g = transformer();
  assign_precision(g.graph, Precision::mixed_fp16);
  append_backward(g.graph);
  check_sound(g.graph);
  const Node& wgrad = find_node(g.graph, "up.backward.wgrad");
  CHECK(wgrad.compute == DataType::fp16);
  CHECK(g.graph.tensor(wgrad.outputs[0]).dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "up.w.grad").dtype == DataType::fp32);
  for (const Node& node : g.graph.nodes()) {
    if (node.op != OpType::matmul && node.op != OpType::linear) continue;
    for (const TensorId t : node.inputs) CHECK(g.graph.tensor(t).dtype == DataType::fp16);
  }
}

TEST_CASE("quantised products read one byte per element and write fp16", "[graph][precision]") {
  Sketch g = transformer();
  assign_precision(g.graph, Precision::int8);
  check_sound(g.graph);
  CHECK(find_tensor(g.graph, "up.w").dtype == DataType::int8);
  CHECK(find_tensor(g.graph, "up.b").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "up.y").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "table").dtype == DataType::int8);
  CHECK(find_tensor(g.graph, "embed.y").dtype == DataType::fp16);
  const Node& up = find_node(g.graph, "up");
  CHECK(up.compute == DataType::int8);
  CHECK(g.graph.tensor(up.inputs[0]).dtype == DataType::int8);
  CHECK(find_node(g.graph, "softmax").compute == DataType::fp16);
  // q, k, v share the quantised layer norm; then q, k^T, probabilities, v, context, residual, gelu, logits' input.
  CHECK(count_ops(g.graph, OpType::cast) == 1 + 2 + 2 + 1 + 1 + 1 + 1);
  CHECK_THROWS_AS(append_backward(g.graph), UnsupportedError);
}

TEST_CASE("int4 stores half a byte and fp8 one", "[graph][precision]") {
  Sketch g = mlp();
  assign_precision(g.graph, Precision::int4);
  CHECK(find_tensor(g.graph, "w1").bytes() == 32 * 16 / 2.0);
  Sketch h = mlp();
  assign_precision(h.graph, Precision::fp8);
  CHECK(find_tensor(h.graph, "w1").bytes() == 32.0 * 16);
  CHECK_THROWS_AS(append_backward(h.graph), UnsupportedError);
}

TEST_CASE("an explicit cast keeps its target and a view its source's type", "[graph][precision]") {
  Sketch g;
  const TensorId c = g.op(OpType::cast, "up", {g.input("x", {4, 8})}, {{"to", std::string("fp32")}});
  const TensorId v = g.op(OpType::reshape, "view", {c}, {{"shape", std::vector<std::int64_t>{32}}});
  g.graph.outputs = {g.op(OpType::exp, "exp", {v})};
  assign_precision(g.graph, Precision::fp16);
  CHECK(find_tensor(g.graph, "x").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "view.y").dtype == DataType::fp32);
  CHECK(find_tensor(g.graph, "exp.y").dtype == DataType::fp16);
}
