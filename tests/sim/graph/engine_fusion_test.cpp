// SPDX-License-Identifier: MIT
#include "sim/graph/engine_fusion.hpp"

#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// A post-norm encoder layer with fused attention over rows [B 2, S 8, D 32], two heads of 16.
Sketch encoder_layer() {
  Sketch g;
  const std::int64_t b = 2, s = 8, d = 32, heads = 2;
  const TensorId ids = g.input("ids", {b, s}, DataType::int64);
  const TensorId x0 = g.op(OpType::embedding, "embed", {ids, g.parameter("table", {64, d})});
  const TensorId x = g.op(OpType::layer_norm, "ln0", {x0, g.parameter("ln0.w", {d}), g.parameter("ln0.b", {d})});
  const auto head = [&](const std::string& name) {
    const TensorId p = g.op(OpType::linear, name, {x, g.parameter(name + ".w", {d, d}), g.parameter(name + ".b", {d})});
    const TensorId v =
        g.op(OpType::reshape, name + ".view", {p}, {{"shape", std::vector<std::int64_t>{b, s, heads, d / heads}}});
    return g.op(OpType::transpose, name + ".heads", {v}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  };
  const TensorId q = head("q"), k = head("k"), v = head("v");
  const TensorId a = g.op(OpType::attention, "attention", {q, k, v});
  const TensorId t = g.op(OpType::transpose, "tokens", {a}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  const TensorId m = g.op(OpType::reshape, "merged", {t}, {{"shape", std::vector<std::int64_t>{b, s, d}}});
  const TensorId o = g.op(OpType::linear, "o", {m, g.parameter("o.w", {d, d}), g.parameter("o.b", {d})});
  const TensorId r = g.op(OpType::add, "residual", {o, x});
  const TensorId n = g.op(OpType::layer_norm, "ln1", {r, g.parameter("ln1.w", {d}), g.parameter("ln1.b", {d})});
  const TensorId up = g.op(OpType::linear, "up", {n, g.parameter("up.w", {4 * d, d}), g.parameter("up.b", {4 * d})});
  const TensorId act = g.op(OpType::gelu, "gelu", {up});
  const TensorId y = g.op(OpType::linear, "down", {act, g.parameter("down.w", {2, 4 * d}), g.parameter("down.b", {2})});
  g.graph.outputs = {y};
  return g;
}

OpCount total(const OpGraph& graph) {
  OpCount sum;
  for (const Node& node : graph.nodes()) {
    const OpCount c = count(graph, node);
    sum.mac += c.mac;
    sum.other_flop += c.other_flop;
  }
  return sum;
}

}  // namespace

TEST_CASE("dense layers that read one tensor become one product over weights side by side", "[graph][engine]") {
  OpGraph g = encoder_layer().graph;
  const OpCount before = total(g);
  const std::int64_t parameters = parameter_count(g);
  const double weights = static_cast<double>(plan_memory(g).weights);
  CHECK(join_linears(g) == 2);
  check_sound(g);
  const Node& joined = find_node(g, "q+k+v");
  CHECK(g.tensor(joined.inputs.at(1)).shape == Shape{96, 32});
  CHECK(g.tensor(joined.inputs.at(2)).shape == Shape{96});
  CHECK(find_node(g, "q+k+v.split").outputs.size() == 3);
  CHECK(output_of(g, "attention").shape == Shape{2, 2, 8, 16});
  CHECK(total(g).mac == before.mac);
  CHECK(total(g).other_flop == before.other_flop);
  CHECK(parameter_count(g) == parameters);
  CHECK(static_cast<double>(plan_memory(g).weights) <= weights);
  CHECK(join_linears(g) == 0);
}

TEST_CASE("weights that something else reads and layers of other kinds stay apart", "[graph][engine]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 16});
  const TensorId shared = g.parameter("shared", {16, 16});
  const TensorId a = g.op(OpType::linear, "a", {x, shared});
  const TensorId b = g.op(OpType::linear, "b", {x, shared});
  const TensorId c = g.op(OpType::linear, "c", {x, g.parameter("c.w", {16, 16}), g.parameter("c.b", {16})});
  const TensorId d = g.op(OpType::linear, "d", {x, g.parameter("d.w", {16, 16})});
  const TensorId e = g.op(OpType::linear, "e", {d, g.parameter("e.w", {16, 16})});
  g.graph.outputs = {a, b, c, d, e};
  CHECK(join_linears(g.graph) == 0);
  CHECK(g.graph.nodes().size() == 5);
}

TEST_CASE("products of different layers of the network stay apart", "[graph][engine]") {
  OpGraph g = encoder_layer().graph;
  for (NodeId n = 0; n < g.nodes().size(); ++n) {
    if (g.node(n).id == "q") g.node(n).layer = "queries";
  }
  CHECK(join_linears(g) == 1);
  check_sound(g);
  CHECK(find_node(g, "k+v").op == OpType::linear);
}

TEST_CASE("an activation that alone reads a dense layer runs in its epilogue", "[graph][engine]") {
  OpGraph g = encoder_layer().graph;
  const OpCount before = total(g);
  OpGraph volta = g;
  CHECK(fuse_epilogues(volta, false) == 0);
  CHECK(fuse_epilogues(g) == 1);
  check_sound(g);
  CHECK(count_ops(g, OpType::gelu) == 0);
  CHECK(find_node(g, "up").attributes.word("epilogue", "") == "gelu");
  CHECK(total(g).mac == before.mac);
  CHECK(total(g).other_flop == before.other_flop);
}

TEST_CASE("a result, or a tensor that two operations read, keeps its activation outside", "[graph][engine]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 16});
  const TensorId a = g.op(OpType::linear, "a", {x, g.parameter("a.w", {16, 16})});
  const TensorId b = g.op(OpType::linear, "b", {x, g.parameter("b.w", {16, 16})});
  const TensorId ra = g.op(OpType::relu, "ra", {a});
  const TensorId rb = g.op(OpType::relu, "rb", {b});
  g.graph.outputs = {a, g.op(OpType::add, "sum", {ra, g.op(OpType::mul, "product", {rb, b})})};
  CHECK(fuse_epilogues(g.graph) == 0);
}

TEST_CASE("tensors between the kernels of a quantised engine stay in one byte", "[graph][engine]") {
  OpGraph g = encoder_layer().graph;
  assign_precision(g, Precision::int8);
  CHECK(count_ops(g, OpType::cast) == 4);  // x, merged, n, act
  CHECK(keep_quantised(g) == 4);
  check_sound(g);
  CHECK(count_ops(g, OpType::cast) == 0);
  for (const char* id : {"ln0", "q", "q.heads", "attention", "merged", "o", "ln1", "up", "gelu"}) {
    INFO(id);
    CHECK(output_of(g, id).dtype == DataType::int8);
  }
  CHECK(output_of(g, "embed").dtype == DataType::fp16);
  CHECK(output_of(g, "down").dtype == DataType::fp16);  // the result
  CHECK(find_node(g, "attention").compute == DataType::fp16);
}

TEST_CASE("a given tensor, and one that a lookup reads, is quantised by a kernel of its own", "[graph][engine]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 16});
  const TensorId a = g.op(OpType::linear, "a", {x, g.parameter("a.w", {16, 16})});
  const TensorId mean = g.op(OpType::reduce_mean, "mean", {a}, {{"axis", std::int64_t{-1}}});
  const TensorId b = g.op(OpType::linear, "b", {a, g.parameter("b.w", {16, 16})});
  g.graph.outputs = {mean, b};
  assign_precision(g.graph, Precision::int8);
  CHECK(count_ops(g.graph, OpType::cast) == 2);
  CHECK(keep_quantised(g.graph) == 0);
  CHECK(output_of(g.graph, "a").dtype == DataType::fp16);
}

TEST_CASE("an engine's passes leave other precisions and plain graphs alone", "[graph][engine]") {
  OpGraph g = encoder_layer().graph;
  assign_precision(g, Precision::fp16);
  const std::size_t nodes = g.nodes().size();
  CHECK(keep_quantised(g) == 0);
  CHECK(g.nodes().size() == nodes);
  OpGraph none;
  CHECK(keep_quantised(none) == 0);
  CHECK(join_linears(none) == 0);
  CHECK(fuse_epilogues(none) == 0);
}
