// SPDX-License-Identifier: MIT
// Merging nodes into kernels: which nodes form a group that may run as one, and the graph of those groups.
// Which pairs may share a kernel, and the node that stands for a group, are the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph::detail {

/// Tensors seen through the views that made them.
struct ViewMap {
  explicit ViewMap(const OpGraph& graph);

  std::vector<TensorId> source;  ///< The tensor whose storage a view shows; others are their own.
  std::vector<bool> whole;       ///< The views between only reorder: every element is there once.
  std::vector<NodeId> maker;     ///< The node that computes the source; kNoNode for given tensors.
};

/// Nodes of one kernel, in program order, with what it reads from outside and what others need of it.
struct FusionGroup {
  std::vector<NodeId> members;
  std::vector<std::vector<TensorId>> inputs;  ///< By member.
  std::vector<TensorId> outputs;
};

/// Whether `reader`, which reads a result of `producer` element by element, may run in the same kernel.
using MayJoin = std::function<bool(NodeId producer, NodeId reader)>;
using MakeNode = std::function<Node(const OpGraph& graph, const FusionGroup& group)>;

/// Merges along the edges that `may_join` allows, wherever no path leaves the merged nodes and comes back. Views inside
/// a group vanish. Returns how many nodes disappeared.
std::int64_t merge_nodes(OpGraph& graph, const MayJoin& may_join, const MakeNode& make);

}  // namespace voltaic::graph::detail
