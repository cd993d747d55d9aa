// SPDX-License-Identifier: MIT
// Small graphs for the tests of passes, and what must hold of any graph.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/passes.hpp"
#include "sim/graph/shape_rules.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::graph::test {

/// Writes a graph line by line: `auto h = g.op(OpType::linear, "fc1", {x, w, b});`
struct Sketch {
  OpGraph graph;

  TensorId add(std::string name, Shape shape, TensorRole role, DataType dtype = DataType::fp32) {
    return graph.add_tensor({.name = std::move(name), .shape = std::move(shape), .dtype = dtype, .role = role});
  }
  TensorId input(std::string name, Shape shape, DataType dtype = DataType::fp32) {
    return add(std::move(name), std::move(shape), TensorRole::input, dtype);
  }
  TensorId parameter(std::string name, Shape shape) {
    return add(std::move(name), std::move(shape), TensorRole::parameter);
  }

  TensorId op(OpType type, std::string id, std::vector<TensorId> inputs,
              std::vector<std::pair<std::string, Attributes::Value>> attributes = {}, std::size_t outputs = 1) {
    Node node;
    node.id = id;
    node.op = type;
    node.inputs = std::move(inputs);
    for (auto& [name, value] : attributes) node.attributes.set(name, value);
    std::vector<std::string> names{id + ".y"};
    for (std::size_t i = 1; i < outputs; ++i) names.push_back(id + ".y" + std::to_string(i));
    const NodeId n = append(graph, std::move(node), names);
    return graph.node(n).outputs[0];
  }
};

inline std::vector<const Node*> nodes_of(const OpGraph& graph, Phase phase) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes()) {
    if (node.phase == phase) found.push_back(&node);
  }
  return found;
}

inline int count_ops(const OpGraph& graph, OpType op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) { return n.op == op; }));
}

inline const Node& find_node(const OpGraph& graph, std::string_view id) {
  for (const Node& node : graph.nodes()) {
    if (node.id == id) return node;
  }
  FAIL("no node '" << id << "'");
  return graph.nodes()[0];
}

inline const Tensor& find_tensor(const OpGraph& graph, std::string_view name) {
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.name == name) return tensor;
  }
  FAIL("no tensor '" << name << "'");
  return graph.tensors()[0];
}

inline const Tensor& output_of(const OpGraph& graph, std::string_view id) {
  return graph.tensor(find_node(graph, id).outputs.at(0));
}

/// Producers stand before readers, ids are unique, and every output has the shape that the operation's rule gives.
inline void check_sound(const OpGraph& graph, bool shapes = true) {
  std::set<std::string> ids;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(n);
    INFO("node " << node.id);
    CHECK(ids.insert(node.id).second);
    std::vector<TensorType> types;
    for (const TensorId t : node.inputs) {
      const Tensor& tensor = graph.tensor(t);
      CHECK((tensor.producer == kNoNode || tensor.producer < n));
      types.push_back({tensor.shape, tensor.dtype});
    }
    for (const TensorId t : node.outputs) CHECK(graph.tensor(t).producer == n);
    if (node.forward_of != kNoNode) CHECK(node.forward_of < graph.nodes().size());
    if (!shapes || node.outputs.empty()) continue;
    std::vector<TensorType> inferred;
    try {
      inferred = infer(node.op, node.attributes, types);
    } catch (const ShapeError& error) {
      FAIL_CHECK(error.what());
      continue;
    }
    for (std::size_t i = 0; i < std::min(inferred.size(), node.outputs.size()); ++i) {
      CHECK(to_string(graph.tensor(node.outputs[i]).shape) == to_string(inferred[i].shape));
    }
  }
}

/// Two dense layers with a ReLU and a loss: x[8, 16] -> 32 -> 4.
inline Sketch mlp() {
  Sketch g;
  const TensorId x = g.input("x", {8, 16});
  const TensorId labels = g.input("labels", {8}, DataType::int64);
  const TensorId h = g.op(OpType::linear, "fc1", {x, g.parameter("w1", {32, 16}), g.parameter("b1", {32})});
  const TensorId a = g.op(OpType::relu, "act", {h});
  const TensorId y = g.op(OpType::linear, "fc2", {a, g.parameter("w2", {4, 32}), g.parameter("b2", {4})});
  g.graph.loss = g.op(OpType::cross_entropy, "loss", {y, labels});
  g.graph.outputs = {y};
  return g;
}

/// One pre-norm transformer layer with unfused attention, [B 2, S 8, D 32], 4 heads, dropout, tied embedding of 64
/// words.
inline Sketch transformer() {
  Sketch g;
  const std::int64_t b = 2, s = 8, d = 32, heads = 4;
  const TensorId ids = g.input("ids", {b, s}, DataType::int64);
  const TensorId labels = g.input("labels", {b * s}, DataType::int64);
  const TensorId table = g.parameter("table", {64, d});
  const TensorId x = g.op(OpType::embedding, "embed", {ids, table});
  const TensorId n = g.op(OpType::layer_norm, "ln", {x, g.parameter("ln.w", {d}), g.parameter("ln.b", {d})});
  const auto head = [&](const std::string& name) {
    const TensorId p = g.op(OpType::linear, name, {n, g.parameter(name + ".w", {d, d}), g.parameter(name + ".b", {d})});
    const TensorId v =
        g.op(OpType::reshape, name + ".view", {p}, {{"shape", std::vector<std::int64_t>{b, s, heads, d / heads}}});
    const TensorId t = g.op(OpType::transpose, name + ".t", {v}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
    return g.op(OpType::contiguous, name + ".c", {t});
  };
  const TensorId q = head("q"), k = head("k"), v = head("v");
  const TensorId kt = g.op(OpType::transpose, "kt", {k}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}});
  const TensorId scores = g.op(OpType::matmul, "scores", {q, kt});
  const TensorId scaled = g.op(OpType::div_scalar, "scale", {scores}, {{"value", 2.83}});
  const TensorId mask = g.input("mask", {b, 1, 1, s});
  const TensorId masked = g.op(OpType::add, "masked", {scaled, mask});
  const TensorId p = g.op(OpType::softmax, "softmax", {masked});
  const TensorId dropped = g.op(OpType::dropout, "dropout", {p}, {{"p", 0.1}}, 2);
  const TensorId context = g.op(OpType::matmul, "context", {dropped, v});
  const TensorId back = g.op(OpType::transpose, "back", {context}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  const TensorId packed = g.op(OpType::contiguous, "packed", {back});
  const TensorId merged = g.op(OpType::reshape, "merged", {packed}, {{"shape", std::vector<std::int64_t>{b, s, d}}});
  const TensorId o = g.op(OpType::linear, "o", {merged, g.parameter("o.w", {d, d}), g.parameter("o.b", {d})});
  const TensorId hidden_drop = g.op(OpType::dropout, "hidden_dropout", {o}, {{"p", 0.1}}, 2);
  const TensorId residual = g.op(OpType::add, "residual", {hidden_drop, x});
  const TensorId up =
      g.op(OpType::linear, "up", {residual, g.parameter("up.w", {4 * d, d}), g.parameter("up.b", {4 * d})});
  const TensorId act = g.op(OpType::gelu, "gelu", {up});
  const TensorId down =
      g.op(OpType::linear, "down", {act, g.parameter("down.w", {d, 4 * d}), g.parameter("down.b", {d})});
  const TensorId flat = g.op(OpType::reshape, "flat", {down}, {{"shape", std::vector<std::int64_t>{b * s, d}}});
  const TensorId logits = g.op(OpType::linear, "head", {flat, table});
  g.graph.loss = g.op(OpType::cross_entropy, "loss", {logits, labels});
  g.graph.outputs = {logits};
  return g;
}

}  // namespace voltaic::graph::test
