// SPDX-License-Identifier: MIT
// A workload as a directed acyclic graph of operations and tensors, with no hardware in sight.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arch/units/data_type.hpp"
#include "sim/graph/operation.hpp"

namespace voltaic::graph {

using TensorId = std::uint32_t;
using NodeId = std::uint32_t;
using Shape = std::vector<std::int64_t>;
inline constexpr NodeId kNoNode = UINT32_MAX;

/// Elements of a shape; a scalar (rank 0) has one. Shapes are checked on entry so that this fits 63 bits.
std::int64_t elements(const Shape& shape);
std::string to_string(const Shape& shape);  ///< "[32, 784]"

enum class TensorRole : std::uint8_t {
  input,
  parameter,
  buffer,
  activation,
  gradient,
  parameter_gradient,
  optimizer_state
};
enum class Phase : std::uint8_t { forward, backward, optimizer };
std::string_view to_string(Phase phase);

struct Tensor {
  std::string name;
  Shape shape;
  DataType dtype = DataType::fp32;
  TensorRole role = TensorRole::activation;
  NodeId producer = kNoNode;
  bool trainable = true;  ///< Parameters only: frozen ones get no gradient.
  bool sparse = false;    ///< Weights only: two of every four along k are kept (2:4).

  std::int64_t elements() const { return graph::elements(shape); }
  double bytes() const { return static_cast<double>(elements()) * stored_bytes(); }
  /// Of one element: half of them and two bits of place for each that is kept, where only 2 of 4 are.
  double stored_bytes() const {
    const double dense = bytes_per_element(dtype);
    return sparse ? 0.5 * dense + 0.125 : dense;
  }
};

struct Node {
  std::string id;  ///< Unique.
  OpType op{};
  Attributes attributes;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Phase phase = Phase::forward;
  DataType compute = DataType::fp32;  ///< Type in which matrix operations multiply: fp32, tf32, fp16, ...
  std::string layer;                  ///< The layer it belongs to, "encoder.layer.0.attention"; empty: its own id.
  double extra_host_calls = 0;        ///< Framework calls beside the operation that launch nothing (views, sizes).
  NodeId forward_of = kNoNode;        ///< Backward nodes: the forward node they differentiate.
};

/// Nodes are kept in program order: the order in which a framework would dispatch them.
/// add_node requires producers to exist already unless `reorder()` is called afterwards (file readers do).
class OpGraph {
 public:
  OpGraph();
  ~OpGraph();
  OpGraph(const OpGraph&);
  OpGraph& operator=(const OpGraph&);
  OpGraph(OpGraph&&) noexcept;
  OpGraph& operator=(OpGraph&&) noexcept;

  std::string name;
  std::vector<TensorId> outputs;
  TensorId loss = UINT32_MAX;  ///< The scalar that backward starts from, if the graph has one.

  TensorId add_tensor(Tensor tensor);
  /// Sets the producer of each output. Throws InternalError on ids out of range.
  NodeId add_node(Node node);

  std::span<const Tensor> tensors() const;
  std::span<const Node> nodes() const;
  Tensor& tensor(TensorId id);
  const Tensor& tensor(TensorId id) const;
  Node& node(NodeId id);
  const Node& node(NodeId id) const;

  /// Readers of each tensor, in program order.
  std::vector<std::vector<NodeId>> consumers() const;
  /// Puts the nodes into a topological order (stable: ties keep file order) with Boost.Graph.
  /// Returns the ids of the nodes on one cycle when there is one, and leaves the graph as it was.
  std::vector<std::string> reorder();
  /// Longest path through the DAG by node weight (seconds, say), as node ids in order.
  std::vector<NodeId> critical_path(std::span<const double> node_weight) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Appends one node and its output tensors, whose shapes and types follow from the shape rule of the operation.
/// Throws ConfigError with `place` when the shapes do not fit.
NodeId append(OpGraph& graph, Node node, std::span<const std::string> output_names, const std::string& place = "");

/// Multiply-adds and other floating-point operations of a node, from shapes alone; hardware-free.
struct OpCount {
  double mac = 0;         ///< Multiply-adds of matrix, convolution and attention products.
  double other_flop = 0;  ///< Additions, multiplications and functions outside products, one each per element.
  double flop() const { return 2 * mac + other_flop; }
};
OpCount count(const OpGraph& graph, const Node& node);

/// Query-key pairs one head computes. The last query stands at the last key; causal queries see keys up to their own
/// position, a window of w > 0 keeps those less than w positions away.
double attention_pairs(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window);

/// Parameters (elements) of the graph, each tensor once; saturates at 2^63 - 1.
std::int64_t parameter_count(const OpGraph& graph);

}  // namespace voltaic::graph
