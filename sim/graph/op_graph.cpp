// SPDX-License-Identifier: MIT
#include "sim/graph/op_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arch/units/error.hpp"
#include "sim/graph/detail/dag.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph {

std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) product *= dim;
  return product;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::optimizer: return "optimizer";
  }
  return "forward";
}

struct OpGraph::Impl {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
};

OpGraph::OpGraph() : impl_(std::make_unique<Impl>()) {}
OpGraph::~OpGraph() = default;
OpGraph::OpGraph(OpGraph&&) noexcept = default;
OpGraph& OpGraph::operator=(OpGraph&&) noexcept = default;

OpGraph::OpGraph(const OpGraph& other)
    : name(other.name), outputs(other.outputs), loss(other.loss), impl_(std::make_unique<Impl>(*other.impl_)) {}

OpGraph& OpGraph::operator=(const OpGraph& other) {
  if (this != &other) *this = OpGraph(other);
  return *this;
}

TensorId OpGraph::add_tensor(Tensor tensor) {
  impl_->tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(impl_->tensors.size() - 1);
}

NodeId OpGraph::add_node(Node node) {
  const auto id = static_cast<NodeId>(impl_->nodes.size());
  const std::size_t known = impl_->tensors.size();
  for (const TensorId input : node.inputs) ensure(input < known, "a node reads a tensor that does not exist");
  for (const TensorId output : node.outputs) {
    ensure(output < known, "a node writes a tensor that does not exist");
    impl_->tensors[output].producer = id;
  }
  impl_->nodes.push_back(std::move(node));
  return id;
}

std::span<const Tensor> OpGraph::tensors() const {
  return impl_->tensors;
}
std::span<const Node> OpGraph::nodes() const {
  return impl_->nodes;
}

Tensor& OpGraph::tensor(TensorId id) {
  ensure(id < impl_->tensors.size(), "tensor id out of range");
  return impl_->tensors[id];
}

const Tensor& OpGraph::tensor(TensorId id) const {
  ensure(id < impl_->tensors.size(), "tensor id out of range");
  return impl_->tensors[id];
}

Node& OpGraph::node(NodeId id) {
  ensure(id < impl_->nodes.size(), "node id out of range");
  return impl_->nodes[id];
}

const Node& OpGraph::node(NodeId id) const {
  ensure(id < impl_->nodes.size(), "node id out of range");
  return impl_->nodes[id];
}

std::vector<std::vector<NodeId>> OpGraph::consumers() const {
  std::vector<std::vector<NodeId>> readers(impl_->tensors.size());
  for (std::size_t i = 0; i < impl_->nodes.size(); ++i) {
    for (const TensorId input : impl_->nodes[i].inputs) {
      auto& list = readers[input];
      const auto id = static_cast<NodeId>(i);
      if (list.empty() || list.back() != id) list.push_back(id);  // A node that reads a tensor twice is one reader.
    }
  }
  return readers;
}

std::vector<std::string> OpGraph::reorder() {
  const auto order = detail::topological_order(impl_->nodes, impl_->tensors);
  if (!order) {
    std::vector<std::string> ids;
    for (const NodeId v : detail::find_cycle(impl_->nodes, impl_->tensors)) ids.push_back(impl_->nodes[v].id);
    return ids;
  }
  if (std::is_sorted(order->begin(), order->end())) return {};
  std::vector<NodeId> new_id(order->size());
  for (std::size_t i = 0; i < order->size(); ++i) new_id[(*order)[i]] = static_cast<NodeId>(i);

  std::vector<Node> sorted;
  sorted.reserve(order->size());
  for (const NodeId old : *order) sorted.push_back(std::move(impl_->nodes[old]));
  for (Node& node : sorted) {
    if (node.forward_of != kNoNode) node.forward_of = new_id[node.forward_of];
  }
  for (Tensor& tensor : impl_->tensors) {
    if (tensor.producer != kNoNode) tensor.producer = new_id[tensor.producer];
  }
  impl_->nodes = std::move(sorted);
  return {};
}

std::vector<NodeId> OpGraph::critical_path(std::span<const double> node_weight) const {
  ensure(node_weight.size() == impl_->nodes.size(), "critical_path needs one weight per node");
  return detail::longest_path(impl_->nodes, impl_->tensors, node_weight);
}

NodeId append(OpGraph& graph, Node node, std::span<const std::string> output_names, const std::string& place) {
  std::vector<TensorType> types;
  try {
    types = detail::infer_outputs(graph.tensors(), node, output_names.size());
  } catch (const ShapeError& error) {
    const std::string where = place.empty() ? fmt::format("node '{}'", one_line(node.id)) : place;
    const std::string below = error.place.empty() ? "" : (place.empty() ? ": " : "/") + error.place;
    throw ConfigError(fmt::format("{}{}: {}", where, below, error.what()));
  }
  node.outputs.reserve(output_names.size());
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    Tensor tensor;
    tensor.name = output_names[i];
    tensor.shape = std::move(types[i].shape);
    tensor.dtype = types[i].dtype;
    node.outputs.push_back(graph.add_tensor(std::move(tensor)));
  }
  return graph.add_node(std::move(node));
}

}  // namespace voltaic::graph
