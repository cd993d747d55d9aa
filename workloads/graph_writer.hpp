// SPDX-License-Identifier: MIT
// Writes the nodes of a network in the order in which a framework dispatches them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::workloads {

using Dim = std::int64_t;
using graph::OpType;
using graph::Shape;
using graph::TensorId;

graph::Attributes attributes(std::initializer_list<std::pair<std::string_view, graph::Attributes::Value>> entries);

/// Activation functions of model configurations. `gelu_new` is the tanh form written out in eight pointwise operations.
enum class Activation : std::uint8_t { relu, gelu, gelu_new, gelu_tanh, silu, tanh };

class GraphWriter {
 public:
  /// `source` names the file or the model in errors.
  GraphWriter(graph::OpGraph& graph, std::string source, bool training);

  bool training() const { return training_; }
  graph::OpGraph& graph() { return *graph_; }
  const Shape& shape(TensorId tensor) const { return graph_->tensor(tensor).shape; }
  Dim dim(TensorId tensor, int axis) const;  ///< Negative axes count from the end.

  /// What follows is named "SCOPE.name" and belongs to the layer SCOPE.
  void scope(std::string name) { scope_ = std::move(name); }
  std::string scoped(std::string_view name) const;
  /// Framework calls around the last operation that launch nothing: sizes, views, dropout in inference.
  void host_calls(double count);

  TensorId input(std::string_view name, Shape shape, DataType dtype = DataType::fp32);
  TensorId parameter(std::string_view name, Shape shape);
  TensorId buffer(std::string_view name, Shape shape, DataType dtype = DataType::fp32);

  /// One operation with one output of interest (its first).
  TensorId apply(OpType op, std::string_view name, std::initializer_list<TensorId> inputs,
                 graph::Attributes attributes = {});
  /// The same with as many inputs as there are: concatenations, recurrent layers.
  TensorId apply_all(OpType op, std::string_view name, std::vector<TensorId> inputs, graph::Attributes attributes = {});
  /// One operation with `count` outputs.
  std::vector<TensorId> apply_multiple(OpType op, std::string_view name, std::vector<TensorId> inputs,
                                       graph::Attributes attributes, std::size_t count);

  /// nn.Linear; `transposed`: the weight is stored [in, out], as Conv1D layers of GPT-2 do.
  TensorId linear(std::string_view name, TensorId x, Dim out, bool bias, bool transposed = false);
  TensorId layer_norm(std::string_view name, TensorId x);
  TensorId rms_norm(std::string_view name, TensorId x);
  TensorId embedding(std::string_view name, TensorId ids, TensorId table);
  /// A node in training; one host call in inference; nothing at all happens to the data where p is 0.
  TensorId dropout(std::string_view name, TensorId x, double p);
  TensorId activation(std::string_view name, TensorId x, Activation kind);
  TensorId scalar(OpType op, std::string_view name, TensorId x, double value);
  TensorId reshape(std::string_view name, TensorId x, Shape shape);
  TensorId transpose(std::string_view name, TensorId x, std::vector<Dim> perm);
  TensorId contiguous(std::string_view name, TensorId x);
  TensorId slice(std::string_view name, TensorId x, Dim axis, Dim start, Dim end);
  TensorId fill(std::string_view name, const Shape& shape, DataType dtype);

 private:
  TensorId add(std::string name, Shape shape, DataType dtype, graph::TensorRole role);
  TensorId gelu_new(std::string_view name, TensorId x);
  graph::NodeId append(OpType op, std::string id, std::vector<TensorId> inputs, graph::Attributes attributes,
                       std::span<const std::string> outputs);

  graph::OpGraph* graph_;
  std::string source_;
  std::string scope_;
  graph::NodeId last_ = graph::kNoNode;
  double pending_host_calls_ = 0;
  bool training_;
};

}  // namespace voltaic::workloads
