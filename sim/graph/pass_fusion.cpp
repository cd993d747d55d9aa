// SPDX-License-Identifier: MIT
// Pointwise fusion: connected pointwise operations of one output shape become one kernel, as graph compilers make them.
//
// A group must be convex: no path may leave and re-enter it. Each node gets a stage, the largest number of fusion
// borders on any path to it; an edge is a border unless both ends could fuse. Stages never fall along a path and rise
// at a border, so nodes that fusable edges connect within one stage are convex. Then a group whose results only one
// later group reads joins that group, which is convex too: every path out of the first leads into the second, and none
// leads back.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

constexpr NodeId kNone = kNoNode;

bool is_fusable(const Node& node) {
  const OpFamily f = family(node.op);
  return (f == OpFamily::pointwise || f == OpFamily::random) && !node.outputs.empty();
}

/// Groups of nodes, merged by pointing at a representative.
class Groups {
 public:
  explicit Groups(std::size_t nodes) : parent_(nodes) {
    for (NodeId n = 0; n < nodes; ++n) parent_[n] = n;
  }
  NodeId find(NodeId n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }
  void merge(NodeId a, NodeId b) {
    a = find(a);
    b = find(b);
    parent_[std::min(a, b)] = std::max(a, b);  // The last node in program order stands for the group.
  }

 private:
  std::vector<NodeId> parent_;
};

class Fuser {
 public:
  explicit Fuser(OpGraph& graph) : graph_(graph), groups_(graph.nodes().size()) {
    fusable_.reserve(graph.nodes().size());
    for (const Node& node : graph.nodes()) fusable_.push_back(is_fusable(node));
    find_readers();
    result_.assign(graph.tensors().size(), false);
    for (const TensorId t : graph.outputs) result_[t] = true;
    if (graph.loss < result_.size()) result_[graph.loss] = true;
  }

  std::int64_t run() {
    group_by_stage();
    join_single_readers();
    return rebuild();
  }

 private:
  void find_readers();
  bool could_fuse(NodeId a, NodeId b) const;
  void group_by_stage();
  void join_single_readers();
  std::int64_t rebuild();
  std::vector<NodeId> emission_order(const std::vector<std::vector<NodeId>>& members);
  Node fused(const std::vector<NodeId>& members);
  bool read_outside(TensorId t, NodeId group);

  OpGraph& graph_;
  Groups groups_;
  std::vector<bool> fusable_;
  std::vector<bool> result_;            ///< Tensors that the graph gives out.
  std::vector<std::uint32_t> offsets_;  ///< Readers of tensor t: readers_[offsets_[t] .. offsets_[t + 1]).
  std::vector<NodeId> readers_;
};

void Fuser::find_readers() {
  const auto nodes = graph_.nodes();
  offsets_.assign(graph_.tensors().size() + 1, 0);
  for (const Node& node : nodes) {
    for (const TensorId t : node.inputs) ++offsets_[t + 1];
  }
  for (std::size_t t = 1; t < offsets_.size(); ++t) offsets_[t] += offsets_[t - 1];
  readers_.resize(offsets_.back());
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    for (const TensorId t : nodes[n].inputs) readers_[next[t]++] = n;
  }
}

bool Fuser::could_fuse(NodeId a, NodeId b) const {
  if (!fusable_[a] || !fusable_[b]) return false;
  const auto nodes = graph_.nodes();
  return nodes[a].phase == nodes[b].phase &&
         graph_.tensors()[nodes[a].outputs[0]].shape == graph_.tensors()[nodes[b].outputs[0]].shape;
}

void Fuser::group_by_stage() {
  const auto nodes = graph_.nodes();
  std::vector<std::uint32_t> stage(nodes.size(), 0);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    for (const TensorId t : nodes[n].inputs) {
      const NodeId p = graph_.tensors()[t].producer;
      if (p != kNone) stage[n] = std::max(stage[n], stage[p] + (could_fuse(p, n) ? 0U : 1U));
    }
    for (const TensorId t : nodes[n].inputs) {
      const NodeId p = graph_.tensors()[t].producer;
      if (p != kNone && stage[p] == stage[n]) groups_.merge(p, n);
    }
  }
}

/// Backwards, so that a chain of groups collapses in one sweep. All readers of a group are known at its first member.
void Fuser::join_single_readers() {
  const auto nodes = graph_.nodes();
  std::vector<NodeId> only_reader(nodes.size(), kNone);  // By group representative; the group itself: several readers.
  std::vector<NodeId> left(nodes.size(), 0);             // Members not yet visited.
  std::vector<NodeId> stage_group(nodes.size());
  for (NodeId n = 0; n < nodes.size(); ++n) {
    stage_group[n] = groups_.find(n);
    ++left[stage_group[n]];
  }
  for (auto n = static_cast<NodeId>(nodes.size()); n-- > 0;) {
    if (!fusable_[n]) continue;
    const NodeId group = stage_group[n];
    for (const TensorId t : nodes[n].outputs) {
      if (result_[t]) only_reader[group] = group;
      for (std::uint32_t i = offsets_[t]; i < offsets_[t + 1]; ++i) {
        if (stage_group[readers_[i]] == group) continue;
        const NodeId reader = groups_.find(readers_[i]);
        NodeId& only = only_reader[group];
        if (only == kNone) only = reader;
        if (only != group && groups_.find(only) != reader) only = group;
      }
    }
    if (--left[group] > 0 || only_reader[group] == kNone || only_reader[group] == group) continue;
    const NodeId reader = groups_.find(only_reader[group]);
    if (could_fuse(group, reader)) groups_.merge(group, reader);
  }
}

bool Fuser::read_outside(TensorId t, NodeId group) {
  if (result_[t]) return true;
  for (std::uint32_t i = offsets_[t]; i < offsets_[t + 1]; ++i) {
    if (groups_.find(readers_[i]) != group) return true;
  }
  return false;
}

/// Groups in an order that respects every edge, close to program order: a group follows whatever it reads.
std::vector<NodeId> Fuser::emission_order(const std::vector<std::vector<NodeId>>& members) {
  const auto nodes = graph_.nodes();
  std::vector<NodeId> order;
  std::vector<std::uint8_t> state(nodes.size(), 0);  // 0: unseen, 1: waits for what it reads, 2: done.
  std::vector<NodeId> stack;
  for (NodeId start = 0; start < nodes.size(); ++start) {
    stack.push_back(groups_.find(start));
    while (!stack.empty()) {
      const NodeId group = stack.back();
      if (state[group] != 0) {
        stack.pop_back();
        if (state[group] == 1) order.push_back(group);
        state[group] = 2;
        continue;
      }
      state[group] = 1;
      for (const NodeId m : members[group]) {
        for (const TensorId t : nodes[m].inputs) {
          const NodeId p = graph_.tensors()[t].producer;
          if (p != kNone && state[groups_.find(p)] == 0) stack.push_back(groups_.find(p));
        }
      }
    }
  }
  return order;
}

Node Fuser::fused(const std::vector<NodeId>& members) {
  const NodeId group = members.back();
  const Node& head = graph_.node(members.front());
  Node node;
  node.id = graph_.node(group).id;
  node.op = OpType::fused_pointwise;
  node.phase = head.phase;
  node.compute = head.compute;
  node.layer = head.layer.empty() ? head.id : head.layer;
  node.forward_of = head.forward_of;
  std::string functions;
  for (const NodeId m : members) {
    const Node& member = graph_.node(m);
    if (!functions.empty()) functions += ',';
    functions += member.op == OpType::fused_pointwise ? member.attributes.word("functions", "")
                                                      : std::string(to_string(member.op));
    node.extra_host_calls += member.extra_host_calls;
    for (const TensorId t : member.inputs) {
      const NodeId p = graph_.tensor(t).producer;
      if (p == kNone || groups_.find(p) != group) node.inputs.push_back(t);
    }
    // A result that nobody reads stays when it is what its operation is for; a mask does not.
    for (const TensorId t : member.outputs) {
      const bool unread = offsets_[t] == offsets_[t + 1] && t == member.outputs[0];
      if (unread || read_outside(t, group)) node.outputs.push_back(t);
    }
  }
  std::sort(node.inputs.begin(), node.inputs.end());
  node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
  node.attributes.set("functions", std::move(functions));
  return node;
}

std::int64_t Fuser::rebuild() {
  const std::size_t count = graph_.nodes().size();
  std::vector<std::vector<NodeId>> members(count);
  for (NodeId n = 0; n < count; ++n) members[groups_.find(n)].push_back(n);
  const std::vector<NodeId> order = emission_order(members);
  if (order.size() == count) return 0;

  std::vector<Node> nodes;
  std::vector<NodeId> new_id(count);
  nodes.reserve(order.size());
  for (const NodeId group : order) {
    for (const NodeId m : members[group]) new_id[m] = static_cast<NodeId>(nodes.size());
    nodes.push_back(members[group].size() > 1 ? fused(members[group]) : std::move(graph_.node(group)));
  }
  OpGraph result = detail::without_nodes(graph_);
  for (Node& node : nodes) {
    if (node.forward_of != kNone) node.forward_of = new_id[node.forward_of];
    result.add_node(std::move(node));
  }
  graph_ = std::move(result);
  return static_cast<std::int64_t>(count - order.size());
}

}  // namespace

std::int64_t fuse_pointwise(OpGraph& graph) {
  return Fuser(graph).run();
}

}  // namespace voltaic::graph
