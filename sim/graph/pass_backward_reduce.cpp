// SPDX-License-Identifier: MIT
// Gradients of normalisation, softmax, reductions and losses.
#include <algorithm>
#include <utility>

#include "sim/graph/detail/gradient_tape.hpp"

namespace voltaic::graph::detail {
namespace {

OpType backward_of(OpType op) {
  switch (op) {
    case OpType::layer_norm: return OpType::layer_norm_backward;
    case OpType::rms_norm: return OpType::rms_norm_backward;
    case OpType::group_norm: return OpType::group_norm_backward;
    case OpType::softmax: return OpType::softmax_backward;
    default: return OpType::log_softmax_backward;
  }
}

/// One kernel gives dx, dw and db.
void batch_norm_gradient(GradientTape& tape, const Node& node) {
  const TensorId x = node.inputs[0];
  const TensorId w = node.inputs[1];
  const TensorId dy = tape.packed(tape.gradient(node.outputs[0]), "dy_packed");
  const TensorId dx = tape.emit(OpType::batch_norm_backward, "norm", {dy, x, w},
                                std::vector<Shape>{tape.tensor(x).shape, tape.tensor(w).shape, tape.tensor(w).shape},
                                tape.tensor(x).dtype, node.attributes);
  tape.give(x, dx);
  tape.give(w, dx + 1);
  tape.give(node.inputs[2], dx + 2);
}

/// `shape` with the reduced dimensions as ones.
Shape with_ones(const Shape& shape, const Node& node) {
  if (!node.attributes.has("axes")) return Shape(shape.size(), 1);
  Shape kept = shape;
  for (const std::int64_t axis : node.attributes.integers("axes")) {
    kept[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis)] = 1;
  }
  return kept;
}

/// The maxima share dy equally: dy * (x == y) / count.
TensorId maximum_gradient(GradientTape& tape, const Node& node, TensorId dy, const Shape& kept) {
  const TensorId x = node.inputs[0];
  const Shape& shape = tape.tensor(x).shape;
  const DataType dtype = tape.tensor(x).dtype;
  Attributes equal;
  equal.set("relation", std::string("eq"));
  const TensorId y = tape.reshape(node.outputs[0], kept, "y_view");
  const TensorId mask = tape.emit(OpType::compare, "mask", {x, y}, shape, DataType::boolean, std::move(equal));
  Attributes axes;
  if (node.attributes.has("axes")) axes.set("axes", node.attributes.integers("axes"));
  axes.set("keepdims", std::int64_t{1});
  const TensorId count = tape.emit(OpType::reduce_sum, "count", {mask}, kept, DataType::int64, std::move(axes));
  const TensorId spread = tape.emit(OpType::mul, "spread", {dy, mask}, shape, dtype);
  return tape.emit(OpType::div, "dx", {spread, count}, shape, dtype);
}

void cumsum_gradient(GradientTape& tape, const Node& node) {
  // flip, sum, flip: a flip is a strided copy.
  const TensorId flipped = tape.pointwise(OpType::contiguous, "flip", {tape.gradient(node.outputs[0])});
  const TensorId sums = tape.pointwise(OpType::cumsum, "cumsum", {flipped}, node.attributes);
  tape.give(node.inputs[0], tape.pointwise(OpType::contiguous, "unflip", {sums}));
}

/// Of sorted or chosen values: dx is zero but at their places, a scatter into rows of one element each.
void selection_gradient(GradientTape& tape, const Node& node) {
  if (node.outputs.size() < 2) tape.unsupported(node);
  const Tensor& x = tape.tensor(node.inputs[0]);
  const TensorId dy = tape.gradient(node.outputs[0]);
  if (dy == kNoTensor) return;
  const Shape flat{tape.tensor(dy).elements()};
  const TensorId values = tape.reshape(dy, flat, "values");
  const TensorId places = tape.reshape(node.outputs[1], flat, "places");
  Attributes attributes;
  attributes.set("rows", x.elements());
  const TensorId dx =
      tape.emit(OpType::scatter_add, "scatter", {values, places}, Shape{x.elements()}, x.dtype, std::move(attributes));
  tape.give(node.inputs[0], tape.reshape(dx, x.shape, "dx_view"));
}

}  // namespace

void normalization_gradient(GradientTape& tape, const Node& node) {
  if (node.op == OpType::batch_norm) return batch_norm_gradient(tape, node);
  if (node.op != OpType::layer_norm && node.op != OpType::rms_norm && node.op != OpType::group_norm) {
    tape.unsupported(node);
  }
  const TensorId x = node.inputs[0];
  const TensorId dy = tape.packed(tape.gradient(node.outputs[0]), "dy_packed");
  const bool weighted = node.inputs.size() > 1;
  if (tape.wants(x)) {
    std::vector<TensorId> inputs{dy, x};
    if (weighted) inputs.push_back(node.inputs[1]);
    tape.give(x, tape.emit(backward_of(node.op), "dgrad", std::move(inputs), tape.tensor(x).shape, tape.tensor(x).dtype,
                           node.attributes));
  }
  const bool biased = node.inputs.size() > 2 && tape.wants(node.inputs[2]);
  if (!weighted || !(tape.wants(node.inputs[1]) || biased)) return;
  Attributes attributes = node.attributes;
  attributes.set("bias", std::int64_t{biased});
  const Shape& shape = tape.tensor(node.inputs[1]).shape;
  std::vector<Shape> shapes{shape};
  if (biased) shapes.push_back(shape);
  const TensorId dw = tape.emit(OpType::norm_param_grad, "param_grad", {dy, x}, shapes,
                                tape.tensor(node.inputs[1]).dtype, std::move(attributes));
  tape.give(node.inputs[1], dw);
  if (biased) tape.give(node.inputs[2], dw + 1);
}

void softmax_gradient(GradientTape& tape, const Node& node) {
  if (node.op != OpType::softmax && node.op != OpType::log_softmax) tape.unsupported(node);
  const Tensor& x = tape.tensor(node.inputs[0]);
  const TensorId dy = tape.packed(tape.gradient(node.outputs[0]), "dy_packed");
  // The kernel converts to the type of x as it writes.
  tape.give(node.inputs[0],
            tape.emit(backward_of(node.op), "grad", {dy, node.outputs[0]}, x.shape, x.dtype, node.attributes));
}

void reduction_gradient(GradientTape& tape, const Node& node) {
  if (node.op == OpType::cumsum) return cumsum_gradient(tape, node);
  if (node.op == OpType::topk || node.op == OpType::sort) return selection_gradient(tape, node);
  if (node.op != OpType::reduce_sum && node.op != OpType::reduce_mean && node.op != OpType::reduce_max) {
    tape.unsupported(node);
  }
  const Tensor& x = tape.tensor(node.inputs[0]);
  const Shape kept = with_ones(x.shape, node);
  const TensorId dy = tape.reshape(tape.gradient(node.outputs[0]), kept, "dy_view");
  if (node.op == OpType::reduce_max) return tape.give(node.inputs[0], maximum_gradient(tape, node, dy, kept));
  TensorId dx = tape.expand(dy, x.shape, "expand");
  if (node.op == OpType::reduce_mean) {
    Attributes count;
    const double reduced =
        static_cast<double>(x.elements()) / static_cast<double>(std::max<std::int64_t>(elements(kept), 1));
    count.set("value", reduced);
    dx = tape.pointwise(OpType::div_scalar, "dx", {dx}, std::move(count));
  }
  tape.give(node.inputs[0], dx);
}

namespace {

OpType backward_of_loss(OpType op) {
  switch (op) {
    case OpType::cross_entropy: return OpType::cross_entropy_backward;
    case OpType::ctc_loss: return OpType::ctc_loss_backward;
    case OpType::smooth_l1_loss: return OpType::smooth_l1_loss_backward;
    case OpType::bce_loss: return OpType::bce_loss_backward;
    default: return OpType::mse_loss_backward;
  }
}

/// Whose target may be trained too: a distance.
bool is_symmetric(OpType op) {
  return op == OpType::mse_loss || op == OpType::smooth_l1_loss;
}

}  // namespace

void loss_gradient(GradientTape& tape, const Node& node) {
  if (is_loss_gradient(node.op)) tape.unsupported(node);
  const TensorId dy = tape.gradient(node.outputs[0]);
  for (std::size_t i = 0; i < (is_symmetric(node.op) ? 2U : 1U); ++i) {
    const TensorId of = node.inputs[i];
    if (!tape.wants(of)) continue;
    tape.give(of, tape.emit(backward_of_loss(node.op), i == 0 ? "grad" : "grad_target", {of, node.inputs[1 - i], dy},
                            tape.tensor(of).shape, tape.tensor(of).dtype, node.attributes));
  }
}

}  // namespace voltaic::graph::detail
