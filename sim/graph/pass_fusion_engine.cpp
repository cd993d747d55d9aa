// SPDX-License-Identifier: MIT
// Products of an engine: dense layers that read the same tensor become one; residuals and activations run in epilogues.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/engine_fusion.hpp"

namespace voltaic::graph {
namespace {

using Consumers = std::vector<std::vector<NodeId>>;

bool is_result(const OpGraph& graph, TensorId t) {
  return t == graph.loss || std::find(graph.outputs.begin(), graph.outputs.end(), t) != graph.outputs.end();
}

/// A parameter that this node alone reads.
bool is_own_parameter(const OpGraph& graph, const Consumers& readers, TensorId t) {
  return graph.tensor(t).role == TensorRole::parameter && readers[t].size() == 1 && !is_result(graph, t);
}

bool may_join(const OpGraph& graph, const Consumers& readers, const Node& node) {
  if (node.op != OpType::linear || node.inputs.size() < 2 || node.outputs.size() != 1) return false;
  if (node.phase != Phase::forward || node.attributes.has("epilogue")) return false;
  if (graph.tensor(node.inputs[1]).shape.size() != 2) return false;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (!is_own_parameter(graph, readers, node.inputs[i])) return false;
  }
  return true;
}

/// What dense layers must share beside what they read.
auto traits(const OpGraph& graph, const Node& node) {
  const Tensor& w = graph.tensor(node.inputs[1]);
  return std::tuple(node.inputs[0], node.inputs.size(), node.compute, node.attributes.flag("transposed_weight"),
                    w.dtype, w.sparse, graph.tensor(node.outputs[0]).dtype, node.layer);
}

/// "layer.attention.query" and "layer.attention.key" give "layer.attention.query+key".
std::string joined_name(const OpGraph& graph, const std::vector<NodeId>& parts) {
  std::string name = graph.node(parts.front()).id;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& id = graph.node(parts[i]).id;
    const std::size_t dot = id.rfind('.');
    name += '+' + (dot == std::string::npos ? id : id.substr(dot + 1));
  }
  return name;
}

/// Parameters of the parts side by side along `axis`; the old ones hold nothing any more.
TensorId side_by_side(OpGraph& graph, const std::vector<NodeId>& parts, std::size_t input, std::size_t axis,
                      const std::string& name) {
  Tensor whole = graph.tensor(graph.node(parts.front()).inputs[input]);
  whole.name = name;
  whole.shape[axis] = 0;
  for (const NodeId n : parts) {
    Tensor& part = graph.tensor(graph.node(n).inputs[input]);
    whole.shape[axis] += part.shape[axis];
    part.shape[axis] = 0;
  }
  return graph.add_tensor(std::move(whole));
}

struct Joined {
  Node product, split;
};

Joined join(OpGraph& graph, const std::vector<NodeId>& parts) {
  Joined out;
  Node& product = out.product;
  product = graph.node(parts.front());
  product.id = joined_name(graph, parts);
  product.extra_host_calls = 0;
  std::vector<std::int64_t> sizes;
  std::int64_t width = 0;
  for (const NodeId n : parts) {
    const Node& part = graph.node(n);
    sizes.push_back(graph.tensor(part.outputs[0]).shape.back());
    width += sizes.back();
    product.extra_host_calls += part.extra_host_calls;
    out.split.outputs.push_back(part.outputs[0]);
  }
  const std::size_t outputs_axis = product.attributes.flag("transposed_weight") ? 1 : 0;
  product.inputs[1] = side_by_side(graph, parts, 1, outputs_axis, product.id + ".weight");
  if (product.inputs.size() > 2) product.inputs[2] = side_by_side(graph, parts, 2, 0, product.id + ".bias");
  Tensor y = graph.tensor(product.outputs[0]);
  y.name = product.id + ".y";
  y.shape.back() = width;
  y.producer = kNoNode;
  product.outputs = {graph.add_tensor(std::move(y))};
  out.split.id = product.id + ".split";
  out.split.op = OpType::split;
  out.split.attributes.set("axis", std::int64_t{-1});
  out.split.attributes.set("sizes", std::move(sizes));
  out.split.inputs = product.outputs;
  out.split.compute = product.compute;
  out.split.layer = product.layer;
  return out;
}

bool is_activation(OpType op, bool gelu) {
  switch (op) {
    case OpType::gelu:
    case OpType::gelu_tanh: return gelu;
    case OpType::relu:
    case OpType::relu6:
    case OpType::silu:
    case OpType::tanh:
    case OpType::sigmoid: return true;
    default: return false;
  }
}

bool is_convolution(const Node& node) {
  return family(node.op) == OpFamily::convolution && node.op != OpType::conv_dgrad && node.op != OpType::conv_wgrad;
}

/// Residuals and activations move into the kernels that make what they read.
class Epilogues {
 public:
  Epilogues(OpGraph& graph, bool gelu)
      : graph_(graph), gelu_(gelu), readers_(graph.consumers()), dropped_(graph.nodes().size(), false) {}

  std::int64_t run() {
    for (NodeId n = 0; n < graph_.nodes().size(); ++n) {
      if (graph_.node(n).outputs.size() != 1) continue;
      if (is_activation(graph_.node(n).op, gelu_)) {
        take_activation(n);
      } else if (graph_.node(n).op == OpType::add) {
        take_residual(n);
      }
    }
    return detail::drop_nodes(graph_, dropped_, [](Node&) {});
  }

 private:
  /// The node that makes `t` for one reader alone.
  NodeId lone_maker(TensorId t) const {
    return readers_[t].size() == 1 && !is_result(graph_, t) ? graph_.tensor(t).producer : kNoNode;
  }

  void take_activation(NodeId n) {
    const Node& activation = graph_.node(n);
    if (activation.inputs.size() != 1) return;
    const NodeId maker = lone_maker(activation.inputs[0]);
    if (maker == kNoNode) return;
    const Node& layer = graph_.node(maker);
    const bool product = layer.op == OpType::linear || is_convolution(layer);
    const std::string epilogue = layer.attributes.word("epilogue", "");
    if (product && layer.phase == activation.phase && layer.outputs.size() == 1 &&
        (epilogue.empty() || epilogue == "add"))
      merge(maker, n);
  }

  /// Of two convolutions that are added the later one takes the other's result in.
  void take_residual(NodeId n) {
    const Node& sum = graph_.node(n);
    if (sum.inputs.size() != 2 || sum.inputs[0] == sum.inputs[1]) return;
    for (const std::size_t side : {0U, 1U}) {
      const TensorId other = sum.inputs[1 - side];
      const NodeId maker = lone_maker(sum.inputs[side]);
      const NodeId other_maker = graph_.tensor(other).producer;
      if (maker == kNoNode || (other_maker != kNoNode && other_maker > maker)) continue;
      Node& layer = graph_.node(maker);
      constexpr std::size_t kWithBias = 3;
      const bool same = graph_.tensor(other).shape == graph_.tensor(sum.inputs[side]).shape;
      if (!is_convolution(layer) || layer.phase != sum.phase || layer.inputs.size() != kWithBias || !same ||
          layer.attributes.has("epilogue"))
        continue;
      layer.inputs.push_back(other);
      layer.attributes.set("residual", std::int64_t{1});
      merge(maker, n);
      return;
    }
  }

  void merge(NodeId into, NodeId n) {
    Node& layer = graph_.node(into);
    const Node& taken = graph_.node(n);
    const std::string before = layer.attributes.word("epilogue", "");
    const std::string function(to_string(taken.op));
    layer.attributes.set("epilogue", before.empty() ? function : before + "," + function);
    layer.extra_host_calls += taken.extra_host_calls;
    layer.outputs[0] = taken.outputs[0];
    graph_.tensor(layer.outputs[0]).producer = into;
    dropped_[n] = true;
  }

  OpGraph& graph_;
  bool gelu_;
  const Consumers readers_;
  std::vector<bool> dropped_;
};

}  // namespace

std::int64_t join_linears(OpGraph& graph) {
  const Consumers readers = graph.consumers();
  std::vector<bool> seen(graph.nodes().size(), false);
  std::vector<std::vector<NodeId>> groups;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    if (seen[n] || !may_join(graph, readers, graph.node(n))) continue;
    std::vector<NodeId> parts{n};
    for (const NodeId m : readers[graph.node(n).inputs[0]]) {
      if (m <= n || seen[m] || !may_join(graph, readers, graph.node(m))) continue;
      if (traits(graph, graph.node(m)) != traits(graph, graph.node(n))) continue;
      seen[m] = true;
      parts.push_back(m);
    }
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    if (parts.size() > 1) groups.push_back(std::move(parts));
  }
  if (groups.empty()) return 0;
  std::vector<bool> dropped(graph.nodes().size(), false);
  std::vector<std::pair<NodeId, Joined>> joined;  // Each stands where its first part stood.
  std::int64_t gone = 0;
  for (const auto& parts : groups) {
    joined.emplace_back(parts.front(), join(graph, parts));
    for (const NodeId n : parts) dropped[n] = true;
    gone += static_cast<std::int64_t>(parts.size()) - 1;
  }
  auto next = joined.begin();
  const auto insert = [&](NodeId at, OpGraph& fresh) {
    if (next == joined.end() || next->first != at) return;
    fresh.add_node(std::move(next->second.product));
    fresh.add_node(std::move(next->second.split));
    ++next;
  };
  detail::drop_nodes(
      graph, dropped, [](Node&) {}, insert);
  return gone;
}

std::int64_t fuse_epilogues(OpGraph& graph, bool gelu) {
  return Epilogues(graph, gelu).run();
}

}  // namespace voltaic::graph
