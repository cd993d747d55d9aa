// SPDX-License-Identifier: MIT
// Gradients of products: each operand's gradient is a product of its own, in the layout that PyTorch's autograd asks of
// cuBLAS.
#include <utility>

#include "sim/graph/detail/gradient_tape.hpp"

namespace voltaic::graph::detail {
namespace {

/// One operand of a product as it lies in memory.
struct Operand {
  TensorId tensor;
  bool swapped;  ///< Its last two dimensions are stored the other way round.
  Operand flipped() const { return {tensor, !swapped}; }
};

/// Looks through a forward transpose of the last two dimensions: the kernel reads the source with the other layout.
Operand stored(const GradientTape& tape, TensorId t, bool swapped) {
  const NodeId producer = tape.tensor(t).producer;
  if (producer == kNoNode || tape.forward().nodes()[producer].op != OpType::transpose) return {t, swapped};
  const Node& node = tape.forward().nodes()[producer];
  const auto perm = node.attributes.integers("perm");
  const auto rank = static_cast<std::int64_t>(tape.tensor(t).shape.size());
  for (std::size_t d = 0; d < perm.size(); ++d) {
    const auto here = static_cast<std::int64_t>(d);
    const std::int64_t kept = here < rank - 2 ? here : 2 * rank - 3 - here;
    if (perm[d] != kept) return {t, swapped};
  }
  return {node.inputs[0], !swapped};
}

Attributes product_attributes(bool transpose_a, bool transpose_b, bool linear) {
  Attributes attributes;
  if (linear) attributes.set("linear", std::int64_t{1});
  if (transpose_a) attributes.set("transpose_a", std::int64_t{1});
  if (transpose_b) attributes.set("transpose_b", std::int64_t{1});
  return attributes;
}

/// Batch dimensions of a times those of b, then the rows of a and the columns of b.
Shape product_shape(const Shape& a, bool swap_a, const Shape& b, bool swap_b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  Shape shape = longer;
  const std::size_t shift = longer.size() - other.size();
  for (std::size_t d = 0; d + 2 < other.size(); ++d) {
    if (shape[d + shift] == 1) shape[d + shift] = other[d];
  }
  shape[shape.size() - 2] = a[a.size() - (swap_a ? 1 : 2)];
  shape[shape.size() - 1] = b[b.size() - (swap_b ? 2 : 1)];
  return shape;
}

TensorId product(GradientTape& tape, std::string_view role, Operand a, Operand b, DataType dtype, bool linear = false) {
  Shape shape = product_shape(tape.tensor(a.tensor).shape, a.swapped, tape.tensor(b.tensor).shape, b.swapped);
  return tape.emit(OpType::matmul, role, {a.tensor, b.tensor}, std::move(shape), dtype,
                   product_attributes(a.swapped, b.swapped, linear));
}

/// y[T, out] = x[T, in] w[out, in]^T + b:  dx = dy w,  dw = dy^T x,  db = column sums of dy.
/// Weights kept as [in, out] ("Conv1D"):   dx = dy w^T, dw = x^T dy.
void dense_gradient(GradientTape& tape, const Node& node, TensorId w, bool w_is_out_in, TensorId bias) {
  const TensorId x = node.inputs[0];
  const Tensor& weight = tape.tensor(w);
  const TensorId dy = tape.rows(tape.gradient(node.outputs[0]), "dy_rows");
  if (tape.wants(x)) {
    const TensorId dx = product(tape, "dgrad", {dy, false}, stored(tape, w, !w_is_out_in), tape.tensor(x).dtype, true);
    tape.give(x, tape.reshape(dx, tape.tensor(x).shape, "dx_view"));
  }
  if (tape.wants(w)) {
    const TensorId rows = tape.rows(x, "x_rows");
    const Operand left{w_is_out_in ? dy : rows, true};
    const Operand right{w_is_out_in ? rows : dy, false};
    tape.give(w, product(tape, "wgrad", left, right, weight.dtype, true));
  }
  if (bias != kNoTensor && tape.wants(bias)) {
    Attributes attributes;
    attributes.set("axes", std::vector<std::int64_t>{0});
    tape.give(bias, tape.emit(OpType::reduce_sum, "bgrad", {dy}, tape.tensor(bias).shape, tape.tensor(dy).dtype,
                              std::move(attributes)));
  }
}

void matmul_gradient(GradientTape& tape, const Node& node) {
  const TensorId a = node.inputs[0];
  const TensorId b = node.inputs[1];
  const bool ta = node.attributes.flag("transpose_a");
  const bool tb = node.attributes.flag("transpose_b");
  // A matrix on the right of a stack of matrices is one flattened product, as torch.matmul folds it.
  if (!ta && tape.tensor(b).shape.size() == 2) return dense_gradient(tape, node, b, tb, kNoTensor);
  TensorId dy = tape.gradient(node.outputs[0]);
  if (tape.tensor(dy).shape.size() != 3) dy = tape.packed(dy, "dy_packed");  // Batches are folded into one dimension.
  const Operand left = stored(tape, a, ta);
  const Operand right = stored(tape, b, tb);
  if (tape.wants(a)) {
    const Operand grad{dy, false};
    const TensorId da = ta ? product(tape, "da", right, grad.flipped(), tape.tensor(a).dtype)
                           : product(tape, "da", grad, right.flipped(), tape.tensor(a).dtype);
    tape.give(a, da);
  }
  if (tape.wants(b)) {
    const Operand grad{dy, tb};
    const TensorId db = tb ? product(tape, "db", grad, left, tape.tensor(b).dtype)
                           : product(tape, "db", left.flipped(), grad, tape.tensor(b).dtype);
    tape.give(b, db);
  }
}

/// One product per group: a batched product, groups being the batch.
void grouped_gradient(GradientTape& tape, const Node& node) {
  const TensorId x = node.inputs[0];
  const TensorId w = node.inputs[1];
  const bool in_out = node.attributes.flag("transposed_weight");
  const TensorId dy = tape.gradient(node.outputs[0]);
  if (tape.wants(x)) tape.give(x, product(tape, "dgrad", {dy, false}, {w, in_out}, tape.tensor(x).dtype));
  if (!tape.wants(w)) return;
  const Operand left{in_out ? x : dy, true};
  tape.give(w, product(tape, "wgrad", left, {in_out ? dy : x, false}, tape.tensor(w).dtype));
}

}  // namespace

void matrix_gradient(GradientTape& tape, const Node& node) {
  if (node.op == OpType::linear) {
    const TensorId bias = node.inputs.size() > 2 ? node.inputs[2] : kNoTensor;
    return dense_gradient(tape, node, node.inputs[1], !node.attributes.flag("transposed_weight"), bias);
  }
  if (node.op == OpType::grouped_linear) return grouped_gradient(tape, node);
  matmul_gradient(tape, node);
}

void convolution_gradient(GradientTape& tape, const Node& node) {
  if (node.op == OpType::conv_dgrad || node.op == OpType::conv_wgrad) tape.unsupported(node);
  const TensorId x = node.inputs[0];
  const TensorId w = node.inputs[1];
  const TensorId dy = tape.packed(tape.gradient(node.outputs[0]), "dy_packed");
  Attributes attributes = node.attributes;
  const bool transposed = node.op != OpType::conv1d && node.op != OpType::conv2d && node.op != OpType::conv3d;
  if (transposed) attributes.set("transposed", std::int64_t{1});
  if (tape.wants(x)) {
    Attributes with_shape = attributes;
    with_shape.set("input_shape", tape.tensor(x).shape);
    tape.give(x, tape.emit(OpType::conv_dgrad, "dgrad", {dy, w}, tape.tensor(x).shape, tape.tensor(x).dtype,
                           std::move(with_shape)));
  }
  if (tape.wants(w)) {
    attributes.set("filter_shape", tape.tensor(w).shape);
    tape.give(w, tape.emit(OpType::conv_wgrad, "wgrad", {x, dy}, tape.tensor(w).shape, tape.tensor(w).dtype,
                           std::move(attributes)));
  }
  if (node.inputs.size() > 2 && tape.wants(node.inputs[2])) {
    std::vector<std::int64_t> axes{0};
    for (std::size_t d = 2; d < tape.tensor(dy).shape.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
    Attributes reduce;
    reduce.set("axes", std::move(axes));
    tape.give(node.inputs[2], tape.emit(OpType::reduce_sum, "bgrad", {dy}, tape.tensor(node.inputs[2]).shape,
                                        tape.tensor(dy).dtype, std::move(reduce)));
  }
}

/// The fused kernel gives all three gradients whether wanted or not.
void attention_gradient(GradientTape& tape, const Node& node) {
  if (node.op != OpType::attention) tape.unsupported(node);
  const TensorId q = node.inputs[0];
  const TensorId k = node.inputs[1];
  const TensorId v = node.inputs[2];
  const TensorId y = node.outputs[0];
  const TensorId dq = tape.emit(OpType::attention_backward, "attention", {tape.gradient(y), q, k, v, y},
                                std::vector<Shape>{tape.tensor(q).shape, tape.tensor(k).shape, tape.tensor(v).shape},
                                tape.tensor(q).dtype, node.attributes);
  tape.give(q, dq);
  tape.give(k, dq + 1);
  tape.give(v, dq + 2);
}

}  // namespace voltaic::graph::detail
