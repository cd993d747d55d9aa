// SPDX-License-Identifier: MIT
// What gradient rules write on: backward nodes gather here, beside an unchanged forward graph, and are appended at the
// end.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph::detail {

inline constexpr TensorId kNoTensor = UINT32_MAX;
using Strides = std::vector<std::int64_t>;

/// Strides of a view of other strides under a new shape, or nothing when the elements must be copied (as ATen's
/// view()).
std::optional<Strides> view_strides(const Shape& from, const Strides& strides, const Shape& to);
Strides packed_strides(const Shape& shape);

class GradientTape {
 public:
  explicit GradientTape(const OpGraph& forward);

  const OpGraph& forward() const { return forward_; }
  /// A tensor of the forward graph or of the tape. The reference stays valid.
  const Tensor& tensor(TensorId id) const;
  /// Whether a gradient of this forward tensor leads to something trained.
  bool wants(TensorId id) const { return wanted_[id]; }
  /// Sum of the gradients given to this forward tensor so far, or kNoTensor.
  TensorId gradient(TensorId id) const { return gradient_[id]; }

  /// Adds `gradient` to that of forward tensor `of` (does nothing when unwanted). Sums over broadcast dimensions and
  /// converts the type first where they differ; a second gradient costs an `add`.
  void give(TensorId of, TensorId gradient);

  /// One backward node of the forward node at work; `role` completes its id: "fc1.backward.wgrad".
  TensorId emit(OpType op, std::string_view role, std::vector<TensorId> inputs, Shape shape, DataType dtype,
                Attributes attributes = {});
  /// The same for several outputs; returns the first, the others follow it.
  TensorId emit(OpType op, std::string_view role, std::vector<TensorId> inputs, std::vector<Shape> shapes,
                DataType dtype, Attributes attributes);
  /// A pointwise kernel in the shape and type of its first input.
  TensorId pointwise(OpType op, std::string_view role, std::vector<TensorId> inputs, Attributes attributes = {});

  /// Views know their strides, so that a reshape copies exactly when a framework's would.
  TensorId reshape(TensorId t, const Shape& shape, std::string_view role);
  TensorId transpose(TensorId t, const std::vector<std::int64_t>& perm, std::string_view role);
  TensorId expand(TensorId t, const Shape& shape, std::string_view role);
  TensorId slice(TensorId t, std::int64_t axis, std::int64_t start, std::int64_t end, std::string_view role);
  /// `t`, or a copy of it when its elements are strided.
  TensorId packed(TensorId t, std::string_view role);
  /// [product of the leading dims, last dim]; made once per tensor.
  TensorId rows(TensorId t, std::string_view role);

  /// The boolean mask of a dropout, added to the forward node when it was not named there.
  TensorId dropout_mask(const Node& node);

  [[noreturn]] void unsupported(const Node& node) const;
  /// Starts the loss gradient (a fill of one), or takes the outputs' gradients as given.
  void seed();
  void begin(NodeId node);
  /// Gives the parameters whose first reader is the node at work their final gradient tensors.
  void finish_parameters(bool accumulate);
  /// Appends everything to `graph`, which must be the forward graph.
  void append_to(OpGraph& graph) &&;

 private:
  void find_wanted();
  TensorId add(Tensor tensor);
  Node start(OpType op, std::string_view role, std::vector<TensorId> inputs, Attributes attributes) const;
  void add_output(Node& node, std::string name, Shape shape, DataType dtype);
  TensorId sum_to(TensorId gradient, const Shape& shape);
  void finish_parameter(TensorId parameter, bool accumulate);

  const OpGraph& forward_;
  NodeId current_ = kNoNode;
  int sums_ = 0;  ///< Of the node at work: keeps ids apart.
  int converted_ = 0;
  std::vector<bool> wanted_;
  std::vector<TensorId> gradient_;
  std::deque<Tensor> tensors_;
  std::vector<int> holders_;  ///< By new tensor: how many forward tensors have it as their gradient.
  std::vector<Node> nodes_;
  std::vector<std::vector<TensorId>> final_of_;  ///< By node: parameters that no earlier node reads.
  std::unordered_map<TensorId, Strides> strided_;
  std::unordered_map<TensorId, TensorId> rows_;
  std::unordered_map<TensorId, TensorId> packed_;
  std::vector<std::pair<NodeId, TensorId>> masks_;
};

/// Gradient rules by family; each throws UnsupportedError for the operations it has no rule for.
void matrix_gradient(GradientTape& tape, const Node& node);
void convolution_gradient(GradientTape& tape, const Node& node);
void attention_gradient(GradientTape& tape, const Node& node);
void recurrent_gradient(GradientTape& tape, const Node& node);
void pointwise_gradient(GradientTape& tape, const Node& node);
void normalization_gradient(GradientTape& tape, const Node& node);
void softmax_gradient(GradientTape& tape, const Node& node);
void reduction_gradient(GradientTape& tape, const Node& node);
void loss_gradient(GradientTape& tape, const Node& node);
void movement_gradient(GradientTape& tape, const Node& node);
void indexing_gradient(GradientTape& tape, const Node& node);
void pooling_gradient(GradientTape& tape, const Node& node);

}  // namespace voltaic::graph::detail
