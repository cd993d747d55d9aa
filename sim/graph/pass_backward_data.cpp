// SPDX-License-Identifier: MIT
// Gradients of views, data movement, indexing, sparse products, mixtures of experts, pooling and resizing.
#include <algorithm>
#include <utility>

#include "sim/graph/detail/gradient_tape.hpp"

namespace voltaic::graph::detail {
namespace {

std::int64_t axis_of(const Node& node, std::int64_t fallback, std::size_t rank) {
  const std::int64_t axis = node.attributes.integer("axis", fallback);
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

void transpose_gradient(GradientTape& tape, const Node& node) {
  const std::size_t rank = tape.tensor(node.inputs[0]).shape.size();
  std::vector<std::int64_t> perm = node.attributes.integers("perm");
  if (perm.empty()) {
    for (std::size_t d = 0; d < rank; ++d) perm.push_back(static_cast<std::int64_t>(d));
    if (rank > 1) std::swap(perm[rank - 1], perm[rank - 2]);
  }
  std::vector<std::int64_t> inverse(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t from = perm[d] < 0 ? perm[d] + static_cast<std::int64_t>(rank) : perm[d];
    inverse[static_cast<std::size_t>(from)] = static_cast<std::int64_t>(d);
  }
  tape.give(node.inputs[0], tape.transpose(tape.gradient(node.outputs[0]), inverse, "dx_view"));
}

/// The parts' gradients side by side; a part that nobody used counts as zeros.
void split_gradient(GradientTape& tape, const Node& node) {
  const Tensor& x = tape.tensor(node.inputs[0]);
  std::vector<TensorId> parts;
  for (const TensorId part : node.outputs) {
    TensorId gradient = tape.gradient(part);
    if (gradient == kNoTensor) {
      const Tensor& unused = tape.tensor(part);
      Attributes attributes;
      attributes.set("shape", unused.shape);
      attributes.set("dtype", std::string(to_string(unused.dtype)));
      gradient = tape.emit(OpType::fill, "zeros" + std::to_string(parts.size()), {}, unused.shape, unused.dtype,
                           std::move(attributes));
    }
    parts.push_back(gradient);
  }
  Attributes attributes;
  attributes.set("axis", axis_of(node, -1, x.shape.size()));
  tape.give(node.inputs[0],
            tape.emit(OpType::concat, "concat", std::move(parts), x.shape, x.dtype, std::move(attributes)));
}

/// Zeros of the full shape with dy copied into its place.
void slice_gradient(GradientTape& tape, const Node& node) {
  const Tensor& x = tape.tensor(node.inputs[0]);
  const std::size_t rank = x.shape.size();
  const auto axis = static_cast<std::size_t>(axis_of(node, 0, rank));
  const std::int64_t dim = x.shape[axis];
  std::int64_t start = node.attributes.integer("start", 0);
  start = std::clamp<std::int64_t>(start < 0 ? start + dim : start, 0, dim);
  const TensorId dy = tape.gradient(node.outputs[0]);
  std::vector<std::int64_t> pads(2 * rank, 0);
  pads[axis] = start;
  pads[rank + axis] = dim - start - tape.tensor(dy).shape[axis];
  Attributes attributes;
  attributes.set("pads", std::move(pads));
  tape.give(node.inputs[0], tape.emit(OpType::pad, "pad", {dy}, x.shape, x.dtype, std::move(attributes)));
}

void concat_gradient(GradientTape& tape, const Node& node) {
  const TensorId dy = tape.gradient(node.outputs[0]);
  const std::int64_t axis = axis_of(node, 0, tape.tensor(dy).shape.size());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::int64_t end = start + tape.tensor(node.inputs[i]).shape[static_cast<std::size_t>(axis)];
    if (tape.wants(node.inputs[i])) {
      tape.give(node.inputs[i], tape.slice(dy, axis, start, end, "part" + std::to_string(i)));
    }
    start = end;
  }
}

void pad_gradient(GradientTape& tape, const Node& node) {
  const Shape& shape = tape.tensor(node.inputs[0]).shape;
  const auto pads = node.attributes.integers("pads");
  TensorId dx = tape.gradient(node.outputs[0]);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (tape.tensor(dx).shape[d] == shape[d]) continue;
    const auto axis = static_cast<std::int64_t>(d);
    dx = tape.slice(dx, axis, pads[d], pads[d] + shape[d], "unpad" + std::to_string(d));
  }
  tape.give(node.inputs[0], dx);
}

/// Each token's gradient is the sum over the experts it went to.
void dispatch_gradient(GradientTape& tape, const Node& node) {
  const Tensor& x = tape.tensor(node.inputs[0]);
  tape.give(node.inputs[0], tape.emit(OpType::moe_combine, "combine", {tape.gradient(node.outputs[0]), node.inputs[1]},
                                      x.shape, x.dtype));
}

/// y of token t is the sum over k of weight[t, k] times the expert's output.
/// Simplification: the routing weight is applied inside the dispatching kernel.
void combine_gradient(GradientTape& tape, const Node& node) {
  const TensorId dy = tape.gradient(node.outputs[0]);
  const TensorId experts = node.inputs[0];
  const TensorId index = node.inputs[1];
  const Shape& expert_shape = tape.tensor(experts).shape;
  const DataType dtype = tape.tensor(experts).dtype;
  if (tape.wants(experts)) {
    Attributes attributes;
    attributes.set("experts", expert_shape[0]);
    attributes.set("capacity", expert_shape[1]);
    tape.give(experts,
              tape.emit(OpType::moe_dispatch, "dispatch", {dy, index}, expert_shape, dtype, std::move(attributes)));
  }
  if (node.inputs.size() < 3 || !tape.wants(node.inputs[2])) return;
  const Shape& weight = tape.tensor(node.inputs[2]).shape;  // [T, k]
  const Shape per_expert{weight[0], weight[1], expert_shape[2]};
  const TensorId flat = tape.rows(experts, "expert_rows");
  const TensorId chosen = tape.emit(OpType::gather, "chosen", {flat, index}, per_expert, dtype);
  const TensorId spread = tape.reshape(dy, {weight[0], 1, expert_shape[2]}, "dy_view");
  const TensorId products = tape.emit(OpType::mul, "products", {chosen, spread}, per_expert, dtype);
  Attributes last;
  last.set("axes", std::vector<std::int64_t>{2});
  tape.give(node.inputs[2], tape.emit(OpType::reduce_sum, "dweight", {products}, weight, dtype, std::move(last)));
}

/// A dense gradient of the table, or (`fused_update`) a kernel that changes the rows it meets: no gradient remains that
/// an optimizer would see.
void bag_gradient(GradientTape& tape, const Node& node, TensorId dy) {
  const TensorId source = node.inputs[1];
  const Tensor& table = tape.tensor(source);
  Attributes attributes = node.attributes;
  attributes.set("rows", table.shape[0]);
  const bool updates = node.attributes.flag("fused_update");
  const Shape shape{updates ? 0 : table.shape[0], table.shape[1]};
  const TensorId gradient =
      tape.emit(OpType::embedding_bag_backward, updates ? "update" : "grad",
                {tape.packed(dy, "dy_packed"), node.inputs[0]}, shape, table.dtype, std::move(attributes));
  if (!updates) tape.give(source, gradient);
}

/// Of the feature map; boxes are proposals, which carry none.
void region_gradient(GradientTape& tape, const Node& node, TensorId dy) {
  const Tensor& x = tape.tensor(node.inputs[0]);
  Attributes attributes;
  attributes.set("input_shape", x.shape);
  attributes.set("sampling", node.attributes.integer("sampling", 2));
  tape.give(node.inputs[0],
            tape.emit(OpType::roi_align_backward, "grad", {tape.packed(dy, "dy_packed"), node.inputs[1]}, x.shape,
                      x.dtype, std::move(attributes)));
}

/// y = A x: dx is the product with the transpose, which frameworks keep beside A; the values' gradients are the
/// products of rows of dy and x where A has entries. A mean divides dy by the rows' degrees first.
/// Simplification: the gradient of a maximum runs over all entries, as that of a sum.
void sparse_gradient(GradientTape& tape, const Node& node, TensorId dy) {
  const TensorId x = node.inputs[0];
  const TensorId index = node.inputs[1];
  const Tensor& features = tape.tensor(x);
  if (node.attributes.word("reduce", "sum") == "mean") {
    Attributes degree;
    const auto rows = static_cast<double>(std::max<std::int64_t>(tape.tensor(dy).shape[0], 1));
    degree.set("value", static_cast<double>(tape.tensor(index).elements()) / rows);
    dy = tape.pointwise(OpType::div_scalar, "by_degree", {dy}, std::move(degree));
  }
  if (tape.wants(x)) {
    Attributes attributes;
    attributes.set("rows", features.shape[0]);
    attributes.set("transposed", std::int64_t{1});
    std::vector<TensorId> inputs = node.inputs;
    inputs[0] = dy;
    tape.give(x,
              tape.emit(OpType::spmm, "dx", std::move(inputs), features.shape, features.dtype, std::move(attributes)));
  }
  if (node.inputs.size() > 2 && tape.wants(node.inputs[2])) {
    const Tensor& values = tape.tensor(node.inputs[2]);
    tape.give(node.inputs[2], tape.emit(OpType::sddmm, "dvalues", {dy, x, index}, values.shape, tape.tensor(dy).dtype));
  }
}

/// One value per entry from rows of two operands: each operand's gradient is a sparse product with those of the values.
void sampled_gradient(GradientTape& tape, const Node& node, TensorId dy) {
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorId of = node.inputs[i];
    if (!tape.wants(of)) continue;
    const Tensor& operand = tape.tensor(of);
    Attributes attributes;
    attributes.set("rows", operand.shape[0]);
    if (i == 1) attributes.set("transposed", std::int64_t{1});
    tape.give(of, tape.emit(OpType::spmm, i == 0 ? "dleft" : "dright", {node.inputs[1 - i], node.inputs[2], dy},
                            operand.shape, tape.tensor(node.inputs[1 - i]).dtype, std::move(attributes)));
  }
}

void average_gradient(GradientTape& tape, const Node& node) {
  const Tensor& x = tape.tensor(node.inputs[0]);
  const TensorId dy = tape.expand(tape.gradient(node.outputs[0]), x.shape, "expand");
  Attributes attributes;
  attributes.set("value", static_cast<double>(x.shape[2]) * static_cast<double>(x.shape[3]));
  tape.give(node.inputs[0], tape.pointwise(OpType::div_scalar, "dx", {dy}, std::move(attributes)));
}

}  // namespace

void movement_gradient(GradientTape& tape, const Node& node) {
  const TensorId x = node.inputs.empty() ? kNoTensor : node.inputs[0];
  const TensorId dy = tape.gradient(node.outputs[0]);
  switch (node.op) {
    case OpType::split: return split_gradient(tape, node);
    case OpType::reshape: return tape.give(x, tape.reshape(dy, tape.tensor(x).shape, "dx_view"));
    case OpType::transpose: return transpose_gradient(tape, node);
    case OpType::slice: return slice_gradient(tape, node);
    case OpType::expand:  // give() sums over the expanded dimensions.
    case OpType::contiguous:
    case OpType::copy: return tape.give(x, dy);
    case OpType::concat: return concat_gradient(tape, node);
    case OpType::pad: return pad_gradient(tape, node);
    default: tape.unsupported(node);
  }
}

void indexing_gradient(GradientTape& tape, const Node& node) {
  const TensorId dy = tape.gradient(node.outputs[0]);
  const bool by_id = node.op == OpType::embedding || node.op == OpType::embedding_bag;
  const TensorId index = by_id ? node.inputs[0] : node.inputs[1];
  const TensorId source = by_id ? node.inputs[1] : node.inputs[0];
  const Tensor& table = tape.tensor(source);
  Attributes rows;
  if (!table.shape.empty()) rows.set("rows", table.shape[0]);
  switch (node.op) {
    case OpType::embedding:
      return tape.give(source, tape.emit(OpType::embedding_backward, "grad", {tape.packed(dy, "dy_packed"), index},
                                         table.shape, table.dtype, std::move(rows)));
    case OpType::embedding_bag: return bag_gradient(tape, node, dy);
    case OpType::gather:
      return tape.give(source,
                       tape.emit(OpType::scatter_add, "grad", {dy, index}, table.shape, table.dtype, std::move(rows)));
    case OpType::scatter_add:
      return tape.give(source, tape.emit(OpType::gather, "grad", {dy, index}, table.shape, table.dtype));
    case OpType::roi_align: return region_gradient(tape, node, dy);
    case OpType::spmm: return sparse_gradient(tape, node, tape.packed(dy, "dy_packed"));
    case OpType::sddmm: return sampled_gradient(tape, node, tape.packed(dy, "dy_packed"));
    case OpType::moe_dispatch: return dispatch_gradient(tape, node);
    case OpType::moe_combine: return combine_gradient(tape, node);
    default: tape.unsupported(node);
  }
}

void pooling_gradient(GradientTape& tape, const Node& node) {
  const TensorId x = node.inputs[0];
  const Tensor& input = tape.tensor(x);
  if (node.op == OpType::global_avg_pool2d) return average_gradient(tape, node);
  const bool maximum = node.op == OpType::max_pool1d || node.op == OpType::max_pool2d || node.op == OpType::max_pool3d;
  const bool pool =
      maximum || node.op == OpType::avg_pool1d || node.op == OpType::avg_pool2d || node.op == OpType::avg_pool3d;
  if (!pool && node.op != OpType::resize) tape.unsupported(node);
  const TensorId dy = tape.packed(tape.gradient(node.outputs[0]), "dy_packed");
  Attributes attributes;
  for (const auto& [name, value] : node.attributes.entries()) {
    if (pool || name == "mode") attributes.set(name, value);
  }
  attributes.set("input_shape", input.shape);
  std::vector<TensorId> inputs{dy};
  if (pool) attributes.set("of", std::string(to_string(node.op)));
  if (maximum) inputs.push_back(x);
  const OpType op = pool ? OpType::pool_backward : OpType::resize_backward;
  tape.give(x, tape.emit(op, "grad", std::move(inputs), input.shape, input.dtype, std::move(attributes)));
}

}  // namespace voltaic::graph::detail
