// SPDX-License-Identifier: MIT
// Fusion as graph compilers do it: pointwise operations over the same elements become one kernel; a softmax or norm
// takes in the chain that makes its rows and the chain that its rows go through. A kernel holds one such reduction,
// which is computed once.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/graph/detail/fusion.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

using detail::FusionGroup;
using detail::ViewMap;

/// Copies are pointwise where their result is an intermediate; a cache is written for its own sake.
bool is_plain_copy(const OpGraph& graph, const Node& node) {
  if (node.op != OpType::contiguous && node.op != OpType::copy) return false;
  const TensorRole role = graph.tensor(node.outputs[0]).role;
  return role == TensorRole::activation || role == TensorRole::gradient;
}

/// One thread per element could compute it: a batch norm with known statistics and a table lookup too.
bool is_pointwise(const OpGraph& graph, const Node& node) {
  if (node.outputs.empty()) return false;
  const OpFamily f = family(node.op);
  if (f == OpFamily::pointwise || f == OpFamily::random || node.op == OpType::embedding) return true;
  if (node.op == OpType::batch_norm) return !node.attributes.flag("training");
  return is_plain_copy(graph, node);
}

bool reduces_last_axis(const OpGraph& graph, const Node& node) {
  const auto rank = static_cast<std::int64_t>(graph.tensor(node.outputs[0]).shape.size());
  const std::int64_t axis = node.attributes.integer("axis", -1);
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

/// Each row of the result depends on the same row of the inputs only.
bool is_row_reduction(const OpGraph& graph, const Node& node) {
  if (node.outputs.empty()) return false;
  switch (node.op) {
    case OpType::fused_softmax:
    case OpType::fused_norm:
    case OpType::layer_norm:
    case OpType::rms_norm:
    case OpType::layer_norm_backward:
    case OpType::rms_norm_backward: return true;
    default: return family(node.op) == OpFamily::softmax && reduces_last_axis(graph, node);
  }
}

std::int64_t columns(const OpGraph& graph, const Node& node) {
  if (node.attributes.has("cols")) return node.attributes.integer("cols", 1);
  const Shape& shape = graph.tensor(node.outputs[0]).shape;
  const bool norm = family(node.op) == OpFamily::normalization;
  const std::int64_t axes = norm ? node.attributes.integer("axes", 1) : 1;
  const auto kept = std::clamp<std::int64_t>(axes, 0, static_cast<std::int64_t>(shape.size()));
  return elements(Shape(shape.end() - kept, shape.end()));
}

/// Operations in one kernel run over the same elements.
bool same_elements(const OpGraph& graph, NodeId a, NodeId b) {
  const Node& first = graph.node(a);
  const Node& second = graph.node(b);
  const std::int64_t n = graph.tensor(first.outputs[0]).elements();
  return first.phase == second.phase && n > 0 && n == graph.tensor(second.outputs[0]).elements();
}

std::string functions_of(const OpGraph& graph, const FusionGroup& group) {
  std::string functions;
  for (const NodeId m : group.members) {
    const Node& member = graph.node(m);
    if (!functions.empty()) functions += ',';
    const std::string_view own = to_string(member.op);
    functions += member.attributes.has("functions") ? member.attributes.word("functions", "") : std::string(own);
  }
  return functions;
}

void append_distinct(std::vector<TensorId>& list, std::span<const TensorId> more) {
  for (const TensorId t : more) {
    if (std::find(list.begin(), list.end(), t) == list.end()) list.push_back(t);
  }
}

/// What all fused nodes have in common; `named` lends its place in the program.
Node fused_node(const OpGraph& graph, const FusionGroup& group, NodeId named) {
  const Node& lender = graph.node(named);
  Node node;
  node.id = lender.id;
  node.phase = lender.phase;
  node.compute = lender.compute;
  node.forward_of = lender.forward_of;
  node.outputs = group.outputs;
  for (const NodeId m : group.members) node.extra_host_calls += graph.node(m).extra_host_calls;
  node.attributes.set("functions", functions_of(graph, group));
  node.attributes.set("shape", graph.tensor(lender.outputs[0]).shape);
  return node;
}

Node fused_pointwise(const OpGraph& graph, const FusionGroup& group) {
  Node node = fused_node(graph, group, group.members.back());
  const Node& head = graph.node(group.members.front());
  node.op = OpType::fused_pointwise;
  node.compute = head.compute;
  node.layer = head.layer.empty() ? head.id : head.layer;
  node.forward_of = head.forward_of;
  for (const auto& inputs : group.inputs) node.inputs.insert(node.inputs.end(), inputs.begin(), inputs.end());
  std::sort(node.inputs.begin(), node.inputs.end());
  node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
  return node;
}

/// Inputs of the rows come first: a reduction of long rows reads those more than once.
Node fused_rows(const OpGraph& graph, const FusionGroup& group) {
  const auto is_row = [&](NodeId m) { return is_row_reduction(graph, graph.node(m)); };
  const auto at = std::find_if(group.members.begin(), group.members.end(), is_row) - group.members.begin();
  const NodeId row = group.members[static_cast<std::size_t>(at)];
  const Node& reduction = graph.node(row);
  Node node = fused_node(graph, group, row);
  node.op = family(reduction.op) == OpFamily::softmax ? OpType::fused_softmax : OpType::fused_norm;
  node.layer = reduction.layer.empty() ? reduction.id : reduction.layer;
  for (std::size_t i = 0; i < static_cast<std::size_t>(at); ++i) append_distinct(node.inputs, group.inputs[i]);
  // Of a reduction that is fused already, what follows its rows stays behind.
  const auto of_rows = static_cast<std::size_t>(
      reduction.attributes.integer("row_inputs", static_cast<std::int64_t>(reduction.inputs.size())));
  const std::span<const TensorId> own(reduction.inputs);
  for (const TensorId t : own.first(std::min(of_rows, own.size()))) {
    const auto& outside = group.inputs[static_cast<std::size_t>(at)];
    if (std::find(outside.begin(), outside.end(), t) != outside.end()) append_distinct(node.inputs, {&t, 1});
  }
  node.attributes.set("row_inputs", static_cast<std::int64_t>(node.inputs.size()));
  for (std::size_t i = static_cast<std::size_t>(at); i < group.inputs.size(); ++i) {
    append_distinct(node.inputs, group.inputs[i]);
  }
  node.attributes.set("cols", columns(graph, reduction));
  const bool affine = reduction.op == OpType::layer_norm || reduction.op == OpType::rms_norm;
  const auto parameters = affine ? static_cast<std::int64_t>(reduction.inputs.size()) - 1 : 0;
  node.attributes.set("parameters", reduction.attributes.integer("parameters", parameters));
  return node;
}

std::int64_t fuse_chains(OpGraph& graph) {
  const auto may_join = [&graph](NodeId producer, NodeId reader) {
    const Node& second = graph.node(reader);
    if (second.op == OpType::embedding) return false;  // It reads an index and a table.
    return is_pointwise(graph, graph.node(producer)) && is_pointwise(graph, second) &&
           same_elements(graph, producer, reader);
  };
  return detail::merge_nodes(graph, may_join, fused_pointwise);
}

/// A chain joins the first reduction that reads it.
std::int64_t fuse_into_rows(OpGraph& graph) {
  const ViewMap views(graph);
  std::vector<NodeId> row_of(graph.nodes().size(), kNoNode);
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    if (!is_row_reduction(graph, graph.node(n))) continue;
    for (const TensorId t : graph.node(n).inputs) {
      const NodeId p = views.maker[t];
      if (p == kNoNode || !views.whole[t] || row_of[p] != kNoNode) continue;
      if (is_pointwise(graph, graph.node(p)) && same_elements(graph, p, n)) row_of[p] = n;
    }
  }
  const auto may_join = [&](NodeId producer, NodeId reader) { return row_of[producer] == reader; };
  return detail::merge_nodes(graph, may_join, fused_rows);
}

/// A chain joins the last reduction whose rows it reads.
std::int64_t fuse_out_of_rows(OpGraph& graph) {
  const ViewMap views(graph);
  std::vector<NodeId> row_of(graph.nodes().size(), kNoNode);
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(n);
    if (!is_pointwise(graph, node) || node.op == OpType::embedding) continue;
    for (const TensorId t : node.inputs) {
      const NodeId p = views.maker[t];
      if (p == kNoNode || !views.whole[t] || !is_row_reduction(graph, graph.node(p))) continue;
      if (same_elements(graph, p, n) && (row_of[n] == kNoNode || row_of[n] < p)) row_of[n] = p;
    }
  }
  const auto may_join = [&](NodeId producer, NodeId reader) { return row_of[reader] == producer; };
  return detail::merge_nodes(graph, may_join, fused_rows);
}

}  // namespace

std::int64_t fuse_pointwise(OpGraph& graph, bool rows) {
  constexpr int kRounds = 8;  // Two are usual: the second finds nothing.
  std::int64_t gone = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t before = gone;
    gone += fuse_chains(graph);
    if (rows) gone += fuse_into_rows(graph);
    if (rows) gone += fuse_out_of_rows(graph);
    if (gone == before) break;
  }
  return gone;
}

}  // namespace voltaic::graph
