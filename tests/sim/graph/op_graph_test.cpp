// SPDX-License-Identifier: MIT
#include "sim/graph/op_graph.hpp"

#include <array>
#include <string>
#include <unordered_set>
#include <utility>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::graph;

namespace {

TensorId input(OpGraph& graph, const std::string& name, Shape shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.role = TensorRole::input;
  return graph.add_tensor(std::move(tensor));
}

TensorId unary(OpGraph& graph, OpType op, const std::string& id, TensorId x) {
  Node node;
  node.id = id;
  node.op = op;
  node.inputs = {x};
  const std::array names{id + ".out"};
  return graph.node(append(graph, std::move(node), names)).outputs[0];
}

}  // namespace

TEST_CASE("operation names are unique and parse back", "[graph][operation]") {
  std::unordered_set<std::string_view> names;
  for (const OpType op : all_ops()) {
    CHECK(names.insert(to_string(op)).second);
    CHECK(parse_op(to_string(op)) == op);
    CHECK_FALSE(to_string(family(op)).empty());
  }
  CHECK(all_ops().back() == OpType::send_recv);
  CHECK(family(OpType::send_recv) == OpFamily::collective);
  CHECK(to_string(OpFamily::gather_scatter) == "gather_scatter");
  CHECK_FALSE(parse_op("lineal").has_value());
}

TEST_CASE("attributes are kept sorted and fall back on other kinds", "[graph][operation]") {
  Attributes a;
  a.set("stride", std::int64_t{2});
  a.set("axis", std::int64_t{-1});
  a.set("p", 0.5);
  a.set("stride", std::vector<std::int64_t>{1, 2});
  CHECK(a.entries().size() == 3);
  CHECK(a.entries()[0].first == "axis");
  CHECK(a.integers("stride") == std::vector<std::int64_t>{1, 2});
  CHECK(a.integers("axis") == std::vector<std::int64_t>{-1});
  CHECK(a.integer("stride", 7) == 7);
  CHECK(a.number("axis", 0) == -1);
  CHECK(a.integer("p", 3) == 3);
  CHECK(a.word("p", "none") == "none");
  CHECK_FALSE(a.has("pad"));
}

TEST_CASE("append infers shapes and links the producer", "[graph]") {
  OpGraph graph;
  const TensorId x = input(graph, "x", {32, 784});
  const TensorId w = input(graph, "w", {10, 784});
  Node node;
  node.id = "fc";
  node.op = OpType::linear;
  node.inputs = {x, w};
  const std::array names{std::string("y")};
  const NodeId id = append(graph, node, names);
  const TensorId y = graph.node(id).outputs.at(0);
  CHECK(graph.tensor(y).shape == Shape{32, 10});
  CHECK(graph.tensor(y).producer == id);
  CHECK(graph.tensor(y).bytes() == 1280);

  node.inputs = {x, input(graph, "v", {32, 700})};
  CHECK_THROWS_WITH(append(graph, node, names),
                    "node 'fc': inputs/1: linear: expected in features 784 in dimension 1, got [32, 700]");
}

TEST_CASE("append refuses output names that the operation has no outputs for", "[graph]") {
  OpGraph graph;
  const TensorId x = input(graph, "x", {4});
  Node node;
  node.id = "d";
  node.op = OpType::dropout;
  node.inputs = {x};
  const std::array both{std::string("y"), std::string("mask")};
  CHECK(graph.node(append(graph, node, both)).outputs.size() == 2);
  CHECK(graph.node(append(graph, node, std::span(both).first(1))).outputs.size() == 1);
  node.op = OpType::relu;
  CHECK_THROWS_WITH(append(graph, node, both, "net.json: /nodes/0"),
                    "net.json: /nodes/0/outputs: relu: expected 1 output, got 2");
}

TEST_CASE("ids out of range are broken invariants", "[graph]") {
  OpGraph graph;
  Node node;
  node.inputs = {3};
  CHECK_THROWS_AS(graph.add_node(node), InternalError);
  node.inputs = {};
  node.outputs = {0};
  CHECK_THROWS_AS(graph.add_node(node), InternalError);
  CHECK_THROWS_AS(graph.tensor(0), InternalError);
  CHECK_THROWS_AS(graph.node(0), InternalError);
}

TEST_CASE("copies of a graph are independent", "[graph]") {
  OpGraph graph;
  graph.name = "a";
  unary(graph, OpType::relu, "r", input(graph, "x", {4}));
  OpGraph copy = graph;
  copy.name = "b";
  copy.node(0).id = "other";
  CHECK(graph.node(0).id == "r");
  CHECK(graph.name == "a");
  const OpGraph moved = std::move(copy);
  CHECK(moved.nodes().size() == 1);
}

TEST_CASE("reorder puts producers first and keeps file order elsewhere", "[graph][dag]") {
  OpGraph graph;
  const TensorId x = input(graph, "x", {4});
  std::array<TensorId, 4> t{};
  for (int i = 0; i < 4; ++i) t[static_cast<std::size_t>(i)] = input(graph, "t" + std::to_string(i), {4});
  const auto node = [&](const char* id, TensorId from, TensorId to) {
    Node n;
    n.id = id;
    n.op = OpType::relu;
    n.inputs = {from};
    n.outputs = {to};
    return graph.add_node(std::move(n));
  };
  node("late", t[1], t[2]);  // Needs "early".
  node("free", x, t[3]);
  const NodeId early = node("early", t[0], t[1]);
  node("first", x, t[0]);
  graph.node(0).forward_of = early;
  CHECK(graph.reorder().empty());
  std::string order;
  for (const Node& n : graph.nodes()) order += n.id + " ";
  CHECK(order == "free first early late ");
  CHECK(graph.tensor(t[1]).producer == 2);
  CHECK(graph.node(3).forward_of == 2);
}

TEST_CASE("a cycle is reported by the ids on it and nothing moves", "[graph][dag]") {
  OpGraph graph;
  const TensorId a = input(graph, "a", {4});
  const TensorId b = input(graph, "b", {4});
  const TensorId c = input(graph, "c", {4});
  const auto node = [&](const char* id, std::vector<TensorId> from, TensorId to) {
    Node n;
    n.id = id;
    n.op = OpType::add;
    n.inputs = std::move(from);
    n.outputs = {to};
    graph.add_node(std::move(n));
  };
  node("down", {b}, c);
  node("p", {a, b}, a);  // A loop onto itself.
  node("q", {a}, b);     // p -> q -> p.
  CHECK(graph.reorder() == std::vector<std::string>{"p"});
  graph.node(1).inputs = {b};
  CHECK(graph.reorder() == std::vector<std::string>{"p", "q"});
  CHECK(graph.node(0).id == "down");
}

TEST_CASE("the critical path is the heaviest, not the one with most nodes", "[graph][dag]") {
  OpGraph graph;
  const TensorId x = input(graph, "x", {4});
  const TensorId a = unary(graph, OpType::relu, "a", x);  // 0
  const TensorId b = unary(graph, OpType::relu, "b", a);  // 1
  const TensorId c = unary(graph, OpType::relu, "c", b);  // 2
  const TensorId d = unary(graph, OpType::gelu, "d", x);  // 3
  Node join;
  join.id = "join";
  join.op = OpType::add;
  join.inputs = {c, d};
  const std::array names{std::string("y")};
  append(graph, join, names);  // 4
  CHECK(graph.critical_path(std::array{1.0, 1.0, 1.0, 5.0, 1.0}) == std::vector<NodeId>{3, 4});
  CHECK(graph.critical_path(std::array{1.0, 1.0, 4.0, 5.0, 1.0}) == std::vector<NodeId>{0, 1, 2, 4});
  CHECK(graph.critical_path(std::array{0.0, 0.0, 0.0, 0.0, 0.0}).empty() == false);
  CHECK_THROWS_AS(graph.critical_path(std::array{1.0}), InternalError);
  CHECK(OpGraph().critical_path({}).empty());
}

TEST_CASE("consumers list each reader once", "[graph]") {
  OpGraph graph;
  const TensorId x = input(graph, "x", {4});
  Node square;
  square.id = "sq";
  square.op = OpType::mul;
  square.inputs = {x, x};
  const std::array names{std::string("y")};
  append(graph, square, names);
  unary(graph, OpType::relu, "r", x);
  CHECK(graph.consumers()[x] == std::vector<NodeId>{0, 1});
}

TEST_CASE("a chain of 100,000 nodes is ordered and measured without recursion", "[graph][dag]") {
  OpGraph graph;
  constexpr std::size_t kNodes = 100'000;
  TensorId last = input(graph, "x", {4});
  for (std::size_t i = 0; i < kNodes; ++i) last = unary(graph, OpType::relu, std::to_string(i), last);
  CHECK(graph.reorder().empty());
  CHECK(graph.critical_path(std::vector<double>(kNodes, 1.0)).size() == kNodes);
  graph.node(0).inputs = {last};
  CHECK(graph.reorder().size() == kNodes);
}
