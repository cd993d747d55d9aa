// SPDX-License-Identifier: MIT
// The graph as Boost.Graph sees it: one vertex per node, one edge from the producer of a tensor to each of its readers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph::detail {

/// Order in which every node follows its producers; of the nodes that could come next, the earliest in the file does.
/// Nullopt when there is a cycle.
std::optional<std::vector<NodeId>> topological_order(std::span<const Node> nodes, std::span<const Tensor> tensors);

/// The nodes of one cycle in the direction of data, beginning with the earliest node in the file; empty when there is
/// none.
std::vector<NodeId> find_cycle(std::span<const Node> nodes, std::span<const Tensor> tensors);

/// Nodes of the heaviest path; ties go to the earlier node. The graph must be acyclic.
std::vector<NodeId> longest_path(std::span<const Node> nodes, std::span<const Tensor> tensors,
                                 std::span<const double> node_weight);

}  // namespace voltaic::graph::detail
