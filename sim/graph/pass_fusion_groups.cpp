// SPDX-License-Identifier: MIT
// A group must be convex: no path may leave and re-enter it. Each node gets a stage, the largest number of fusion
// borders on any path to it; an edge is a border unless both ends may join. Stages never fall along a path and rise
// at a border, so nodes that joining edges connect within one stage are convex. Then a group whose results only one
// later group reads joins that group, which is convex too: every path out of the first leads into the second, and none
// leads back. Views compute nothing, so edges run through them.
#include <algorithm>
#include <utility>

#include "sim/graph/detail/fusion.hpp"
#include "sim/graph/detail/rebuild.hpp"

namespace voltaic::graph::detail {
namespace {

bool is_view(const Node& node) {
  return family(node.op) == OpFamily::view && !node.inputs.empty();
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

struct Reading {
  NodeId node = kNoNode;
  TensorId as = 0;  ///< The tensor itself or a view of it.
};

class Merger {
 public:
  Merger(OpGraph& graph, const MayJoin& may_join, const MakeNode& make)
      : graph_(graph), may_join_(may_join), make_(make), views_(graph), groups_(graph.nodes().size()) {
    find_results();
    find_readers();
  }

  std::int64_t run() {
    group_by_stage();
    join_single_readers();
    return rebuild();
  }

 private:
  void find_results();
  void find_readers();
  bool joins(TensorId read, NodeId reader) const;
  void group_by_stage();
  void join_single_readers();
  void keep_needed_views();
  bool inside(TensorId t, NodeId group) {
    const NodeId maker = views_.maker[t];
    return maker != kNoNode && groups_.find(maker) == group;
  }
  bool needed_outside(TensorId t, NodeId group);
  FusionGroup describe(std::vector<NodeId> members);
  std::vector<NodeId> emission_order(const std::vector<std::vector<NodeId>>& members);
  std::int64_t rebuild();

  OpGraph& graph_;
  const MayJoin& may_join_;
  const MakeNode& make_;
  ViewMap views_;
  Groups groups_;
  std::vector<bool> result_;            ///< By source: tensors that must be written, by view or not.
  std::vector<std::uint32_t> offsets_;  ///< Readers of source t: readings_[offsets_[t] .. offsets_[t + 1]).
  std::vector<Reading> readings_;
  std::vector<bool> kept_;  ///< Views that something outside the group of their source needs.
};

void Merger::find_results() {
  const auto nodes = graph_.nodes();
  std::vector<bool> read(graph_.tensors().size(), false);
  for (const Node& node : nodes) {
    for (const TensorId t : node.inputs) read[t] = true;
  }
  result_.assign(graph_.tensors().size(), false);
  for (const TensorId t : graph_.outputs) result_[t] = result_[views_.source[t]] = true;
  if (graph_.loss < result_.size()) result_[graph_.loss] = result_[views_.source[graph_.loss]] = true;
  for (const Node& node : nodes) {
    if (!is_view(node)) continue;
    for (const TensorId t : node.outputs) {
      if (!read[t]) result_[t] = result_[views_.source[t]] = true;  // Whoever made it may want it.
    }
  }
}

void Merger::find_readers() {
  const auto nodes = graph_.nodes();
  offsets_.assign(graph_.tensors().size() + 1, 0);
  for (const Node& node : nodes) {
    if (is_view(node)) continue;
    for (const TensorId t : node.inputs) ++offsets_[views_.source[t] + 1];
  }
  for (std::size_t t = 1; t < offsets_.size(); ++t) offsets_[t] += offsets_[t - 1];
  readings_.resize(offsets_.back());
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (is_view(nodes[n])) continue;
    for (const TensorId t : nodes[n].inputs) readings_[next[views_.source[t]]++] = {n, t};
  }
}

bool Merger::joins(TensorId read, NodeId reader) const {
  return views_.whole[read] && may_join_(views_.maker[read], reader);
}

void Merger::group_by_stage() {
  const auto nodes = graph_.nodes();
  std::vector<std::uint32_t> stage(nodes.size(), 0);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (is_view(nodes[n])) continue;
    for (const TensorId t : nodes[n].inputs) {
      const NodeId p = views_.maker[t];
      if (p != kNoNode) stage[n] = std::max(stage[n], stage[p] + (joins(t, n) ? 0U : 1U));
    }
    for (const TensorId t : nodes[n].inputs) {
      const NodeId p = views_.maker[t];
      if (p != kNoNode && stage[p] == stage[n]) groups_.merge(p, n);
    }
  }
}

/// Backwards, so that a chain of groups collapses in one sweep. All readers of a group are known at its first member.
void Merger::join_single_readers() {
  const auto nodes = graph_.nodes();
  std::vector<NodeId> only_reader(nodes.size(), kNoNode);  // By representative; the group itself: it may not join.
  std::vector<Reading> joint(nodes.size());                // One reading that would join the two.
  std::vector<NodeId> left(nodes.size(), 0);               // Members not yet visited.
  std::vector<NodeId> stage_group(nodes.size());
  for (NodeId n = 0; n < nodes.size(); ++n) {
    stage_group[n] = groups_.find(n);
    ++left[stage_group[n]];
  }
  for (auto n = static_cast<NodeId>(nodes.size()); n-- > 0;) {
    if (is_view(nodes[n])) continue;
    const NodeId group = stage_group[n];
    for (const TensorId t : nodes[n].outputs) {
      if (result_[t]) only_reader[group] = group;
      for (std::uint32_t i = offsets_[t]; i < offsets_[t + 1]; ++i) {
        if (stage_group[readings_[i].node] == group) continue;
        const NodeId reader = groups_.find(readings_[i].node);
        NodeId& only = only_reader[group];
        if (only == kNoNode) only = reader;
        if (only != group && groups_.find(only) != reader) only = group;
        if (!joins(readings_[i].as, readings_[i].node)) only = group;
        joint[group] = readings_[i];
      }
    }
    if (--left[group] > 0 || only_reader[group] == kNoNode || only_reader[group] == group) continue;
    groups_.merge(group, joint[group].node);
  }
}

void Merger::keep_needed_views() {
  const auto nodes = graph_.nodes();
  std::vector<bool> needed(graph_.tensors().size(), false);
  kept_.assign(nodes.size(), false);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (is_view(nodes[n])) continue;
    const NodeId group = groups_.find(n);
    for (const TensorId t : nodes[n].inputs) {
      if (!inside(t, group)) needed[t] = true;
    }
  }
  for (auto n = static_cast<NodeId>(nodes.size()); n-- > 0;) {
    if (!is_view(nodes[n])) continue;
    const auto wanted = [&](TensorId t) { return needed[t] || result_[t]; };
    kept_[n] = nodes[n].outputs.empty() || std::any_of(nodes[n].outputs.begin(), nodes[n].outputs.end(), wanted);
    if (kept_[n]) needed[nodes[n].inputs[0]] = true;
  }
}

bool Merger::needed_outside(TensorId t, NodeId group) {
  if (result_[t]) return true;
  for (std::uint32_t i = offsets_[t]; i < offsets_[t + 1]; ++i) {
    if (groups_.find(readings_[i].node) != group) return true;
  }
  return false;
}

FusionGroup Merger::describe(std::vector<NodeId> members) {
  FusionGroup group;
  const NodeId name = members.back();
  for (const NodeId m : members) {
    const Node& member = graph_.node(m);
    auto& inputs = group.inputs.emplace_back();
    for (const TensorId t : member.inputs) {
      if (!inside(t, name)) inputs.push_back(t);
    }
    // A result that nobody reads stays when it is what its operation is for; a mask does not.
    for (const TensorId t : member.outputs) {
      const bool unread = offsets_[t] == offsets_[t + 1] && t == member.outputs[0];
      if (unread || needed_outside(t, name)) group.outputs.push_back(t);
    }
  }
  group.members = std::move(members);
  return group;
}

/// Groups in an order that respects every edge, close to program order: a group follows whatever it reads.
std::vector<NodeId> Merger::emission_order(const std::vector<std::vector<NodeId>>& members) {
  const auto nodes = graph_.nodes();
  std::vector<NodeId> order;
  std::vector<std::uint8_t> state(nodes.size(), 0);  // 0: unseen, 1: waits for what it reads, 2: done.
  std::vector<NodeId> stack;
  for (NodeId start = 0; start < nodes.size(); ++start) {
    if (is_view(nodes[start]) && !kept_[start]) continue;
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
          if (p == kNoNode || inside(t, group)) continue;
          if (state[groups_.find(p)] == 0) stack.push_back(groups_.find(p));
        }
      }
    }
  }
  return order;
}

std::int64_t Merger::rebuild() {
  const std::size_t count = graph_.nodes().size();
  std::vector<std::vector<NodeId>> members(count);
  for (NodeId n = 0; n < count; ++n) members[groups_.find(n)].push_back(n);
  keep_needed_views();
  const std::vector<NodeId> order = emission_order(members);
  if (order.size() == count) return 0;

  std::vector<Node> nodes;
  std::vector<NodeId> new_id(count, kNoNode);
  nodes.reserve(order.size());
  for (const NodeId group : order) {
    for (const NodeId m : members[group]) new_id[m] = static_cast<NodeId>(nodes.size());
    const bool merged = members[group].size() > 1;
    nodes.push_back(merged ? make_(graph_, describe(std::move(members[group]))) : std::move(graph_.node(group)));
  }
  for (NodeId n = 0; n < count; ++n) {  // Views that vanished stand where their source is made.
    if (new_id[n] == kNoNode) new_id[n] = new_id[views_.maker[graph_.node(n).outputs[0]]];
  }
  OpGraph result = without_nodes(graph_);
  for (Node& node : nodes) {
    if (node.forward_of != kNoNode) node.forward_of = new_id[node.forward_of];
    result.add_node(std::move(node));
  }
  graph_ = std::move(result);
  return static_cast<std::int64_t>(count - order.size());
}

}  // namespace

ViewMap::ViewMap(const OpGraph& graph) {
  const std::size_t count = graph.tensors().size();
  source.resize(count);
  whole.assign(count, true);
  maker.assign(count, kNoNode);
  for (TensorId t = 0; t < count; ++t) source[t] = t;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(n);
    for (const TensorId t : node.outputs) {
      maker[t] = n;
      if (!is_view(node)) continue;
      const TensorId from = node.inputs[0];
      source[t] = source[from];
      maker[t] = maker[from];
      whole[t] = whole[from] && (node.op == OpType::reshape || node.op == OpType::transpose);
    }
  }
}

std::int64_t merge_nodes(OpGraph& graph, const MayJoin& may_join, const MakeNode& make) {
  return Merger(graph, may_join, make).run();
}

}  // namespace voltaic::graph::detail
