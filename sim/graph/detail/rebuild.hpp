// SPDX-License-Identifier: MIT
// Passes that insert or merge nodes move a graph into a new one, node by node; tensors keep their ids.
#pragma once

#include <utility>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph::detail {

/// Name, outputs, loss and (moved) tensors of `old`, producers cleared; the nodes of `old` stay for the caller to move.
inline OpGraph without_nodes(OpGraph& old) {
  OpGraph fresh;
  fresh.name = old.name;
  fresh.outputs = old.outputs;
  fresh.loss = old.loss;
  for (TensorId t = 0; t < old.tensors().size(); ++t) {
    Tensor tensor = std::move(old.tensor(t));
    tensor.producer = kNoNode;
    fresh.add_tensor(std::move(tensor));
  }
  return fresh;
}

/// Moves the nodes that are not `dropped` into a new graph, each changed by `change(node)`, with what
/// `before(id, fresh)` adds in front of the place where node `id` stood. Returns how many were dropped.
template <class Change, class Before>
std::int64_t drop_nodes(OpGraph& graph, const std::vector<bool>& dropped, Change change, Before before) {
  OpGraph fresh = without_nodes(graph);
  std::vector<NodeId> new_id(dropped.size(), kNoNode);
  std::int64_t gone = 0;
  for (NodeId n = 0; n < dropped.size(); ++n) {
    before(n, fresh);
    if (dropped[n]) {
      ++gone;
      continue;
    }
    Node node = std::move(graph.node(n));
    if (node.forward_of < n) node.forward_of = new_id[node.forward_of];
    change(node);
    new_id[n] = fresh.add_node(std::move(node));
  }
  graph = std::move(fresh);
  return gone;
}
template <class Change>
std::int64_t drop_nodes(OpGraph& graph, const std::vector<bool>& dropped, Change change) {
  return drop_nodes(graph, dropped, change, [](NodeId, OpGraph&) {});
}

}  // namespace voltaic::graph::detail
