// SPDX-License-Identifier: MIT
#include "sim/graph/detail/dag.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/range/iterator_range.hpp>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

namespace voltaic::graph::detail {

namespace {

using Dag = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

Dag build(std::span<const Node> nodes, std::span<const Tensor> tensors) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  edges.reserve(2 * nodes.size());
  for (std::size_t reader = 0; reader < nodes.size(); ++reader) {
    for (const TensorId input : nodes[reader].inputs) {
      const NodeId producer = tensors[input].producer;
      if (producer != kNoNode) edges.emplace_back(producer, reader);
    }
  }
  return {edges.begin(), edges.end(), nodes.size()};
}

auto readers(std::size_t vertex, const Dag& dag) {
  return boost::make_iterator_range(boost::adjacent_vertices(vertex, dag));
}

/// Shortest way from `start` back to itself inside its strong component; empty when there is none.
std::vector<NodeId> cycle_through(std::size_t start, const Dag& dag, const std::vector<std::size_t>& component) {
  std::vector<NodeId> previous(boost::num_vertices(dag), kNoNode);
  std::queue<std::size_t> open;
  open.push(start);
  while (!open.empty()) {
    const std::size_t vertex = open.front();
    open.pop();
    for (const std::size_t next : readers(vertex, dag)) {
      if (next == start) {
        std::vector<NodeId> cycle;
        for (std::size_t v = vertex; v != start; v = previous[v]) cycle.push_back(static_cast<NodeId>(v));
        cycle.push_back(static_cast<NodeId>(start));
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (component[next] != component[start] || previous[next] != kNoNode) continue;
      previous[next] = static_cast<NodeId>(vertex);
      open.push(next);
    }
  }
  return {};
}

}  // namespace

std::optional<std::vector<NodeId>> topological_order(std::span<const Node> nodes, std::span<const Tensor> tensors) {
  const Dag dag = build(nodes, tensors);
  std::vector<std::size_t> waits_for(nodes.size(), 0);
  for (const auto edge : boost::make_iterator_range(boost::edges(dag))) ++waits_for[boost::target(edge, dag)];

  // boost::topological_sort gives some order; a heap on the file position gives the one nearest to the file.
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    if (waits_for[v] == 0) ready.push(static_cast<NodeId>(v));
  }
  std::vector<NodeId> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const NodeId next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t reader : readers(next, dag)) {
      if (--waits_for[reader] == 0) ready.push(static_cast<NodeId>(reader));
    }
  }
  if (order.size() != nodes.size()) return std::nullopt;
  return order;
}

std::vector<NodeId> find_cycle(std::span<const Node> nodes, std::span<const Tensor> tensors) {
  const Dag dag = build(nodes, tensors);
  std::vector<std::size_t> component(nodes.size());
  const auto map = boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, dag));
  const std::size_t components = boost::strong_components(dag, map);
  std::vector<std::size_t> members(components, 0);
  for (const std::size_t c : component) ++members[c];
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    const auto next = readers(v, dag);
    const bool self_loop = std::find(next.begin(), next.end(), v) != next.end();
    if (members[component[v]] > 1 || self_loop) return cycle_through(v, dag, component);
  }
  return {};
}

std::vector<NodeId> longest_path(std::span<const Node> nodes, std::span<const Tensor> tensors,
                                 std::span<const double> node_weight) {
  if (nodes.empty()) return {};
  const Dag dag = build(nodes, tensors);
  std::vector<std::size_t> order;
  order.reserve(nodes.size());
  boost::topological_sort(dag, std::back_inserter(order));  // gives readers before what they read
  std::reverse(order.begin(), order.end());

  std::vector<double> until(nodes.size(), 0);  // Heaviest path that ends just before the node.
  std::vector<NodeId> previous(nodes.size(), kNoNode);
  for (const std::size_t v : order) {
    const double here = until[v] + node_weight[v];
    for (const std::size_t reader : readers(v, dag)) {
      const bool better = here > until[reader] || previous[reader] == kNoNode;
      const bool tie = here == until[reader] && static_cast<NodeId>(v) < previous[reader];
      if (!better && !tie) continue;
      until[reader] = here;
      previous[reader] = static_cast<NodeId>(v);
    }
  }
  std::size_t last = 0;
  for (std::size_t v = 1; v < nodes.size(); ++v) {
    if (until[v] + node_weight[v] > until[last] + node_weight[last]) last = v;
  }
  std::vector<NodeId> path;
  for (auto v = static_cast<NodeId>(last); v != kNoNode; v = previous[v]) path.push_back(v);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace voltaic::graph::detail
