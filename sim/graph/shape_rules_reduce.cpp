// SPDX-License-Identifier: MIT
// Shape rules of normalisation, softmax and reductions.
#include <fmt/format.h>

#include <algorithm>

#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {

namespace {

/// The trailing `axes` dims that a layer norm covers, which are the shape of its parameters.
Shape trailing(const RuleContext& c, std::size_t x) {
  const std::int64_t axes = c.integer("axes", 1, 1);
  if (axes > static_cast<std::int64_t>(c.rank(x))) {
    c.refuse_attribute("axes", fmt::format("at most the rank {} of the input", c.rank(x)), std::to_string(axes));
  }
  return {c.shape(x).end() - axes, c.shape(x).end()};
}

Shape channels(const RuleContext& c, std::size_t x) {
  c.require_min_rank(x, 2);
  return {c.shape(x)[1]};
}

void require_groups(const RuleContext& c, std::size_t x) {
  const std::int64_t groups = c.required_integer("groups", 1);
  c.require_min_rank(x, 2);
  if (c.shape(x)[1] % groups != 0) c.refuse_input(x, fmt::format("channels that {} groups divide", groups));
}

Types norm_forward(const RuleContext& c) {
  if (c.op == OpType::group_norm) require_groups(c, 0);
  const bool by_channel = c.op == OpType::group_norm || c.op == OpType::batch_norm;
  const Shape parameter = by_channel ? channels(c, 0) : trailing(c, 0);
  for (std::size_t i = 1; i < c.input_count(); ++i) c.require_shape(i, parameter);
  return {c.like(0)};
}

Types norm_backward(const RuleContext& c) {
  c.require_shape(1, c.shape(0));
  if (c.op == OpType::group_norm_backward) require_groups(c, 1);
  const bool by_channel = c.op == OpType::group_norm_backward || c.op == OpType::batch_norm_backward;
  const Shape parameter = by_channel ? channels(c, 1) : trailing(c, 1);
  if (c.input_count() == 3) c.require_shape(2, parameter);
  if (c.op != OpType::batch_norm_backward) return {c.like(1)};
  const TensorType gradient{parameter, c.dtype(2)};
  return {c.like(1), gradient, gradient};
}

Types norm_param_grad(const RuleContext& c) {
  c.require_shape(1, c.shape(0));
  const bool by_channel = c.attributes.has("groups");  // Of a group norm.
  const TensorType gradient{by_channel ? channels(c, 1) : trailing(c, 1), c.dtype(0)};
  if (c.attributes.integer("bias", 1) == 0) return {gradient};
  return {gradient, gradient};
}

Shape without_axes(const RuleContext& c, const std::vector<bool>& reduced, bool keep) {
  Shape result;
  for (std::size_t d = 0; d < c.rank(0); ++d) {
    if (!reduced[d]) {
      result.push_back(c.shape(0)[d]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

TensorType reduce_type(const RuleContext& c) {
  const bool keep = c.attributes.flag("keepdims");
  std::vector<bool> reduced(c.rank(0), !c.attributes.has("axes"));
  const auto limit = static_cast<std::int64_t>(c.rank(0));
  for (const std::int64_t axis : c.attributes.integers("axes")) {
    if (axis < -limit || axis >= limit) {
      c.refuse_attribute("axes", fmt::format("axes of a rank {} tensor", limit), std::to_string(axis));
    }
    reduced[static_cast<std::size_t>(axis < 0 ? axis + limit : axis)] = true;
  }
  return {without_axes(c, reduced, keep), c.dtype(0)};
}

Types fused_rows(const RuleContext& c) {
  TensorType result{c.required_shape("shape"), c.data_type("to", c.dtype(0))};
  const std::int64_t cols = c.required_integer("cols", 1);
  constexpr std::int64_t kMostParameters = 2;  // A norm's weight and bias.
  const std::int64_t parameters = c.integer("parameters", 0, 0);
  if (parameters > kMostParameters) c.refuse_attribute("parameters", "at most 2", std::to_string(parameters));
  static_cast<void>(c.integer("row_inputs", 0, 0));
  if (elements(result.shape) % cols != 0) {
    c.refuse_attribute("cols", fmt::format("a divisor of the {} elements", elements(result.shape)),
                       std::to_string(cols));
  }
  return {std::move(result)};
}

}  // namespace

Types normalization_rule(const RuleContext& c) {
  switch (c.op) {
    case OpType::fused_norm: return fused_rows(c);
    case OpType::layer_norm:
    case OpType::rms_norm:
    case OpType::group_norm:
    case OpType::batch_norm: return norm_forward(c);
    case OpType::norm_param_grad: return norm_param_grad(c);
    default: return norm_backward(c);
  }
}

Types softmax_rule(const RuleContext& c) {
  if (c.op == OpType::fused_softmax) return fused_rows(c);
  c.axis("axis", -1, c.rank(0));
  if (c.input_count() == 2) c.require_shape(1, c.shape(0));
  return {c.like(c.input_count() - 1)};
}

Types reduction_rule(const RuleContext& c) {
  switch (c.op) {
    case OpType::argmax: {
      std::vector<bool> reduced(c.rank(0), false);
      reduced[c.axis("axis", -1, c.rank(0))] = true;
      return {{without_axes(c, reduced, c.attributes.flag("keepdims")), DataType::int64}};
    }
    case OpType::cumsum: c.axis("axis", -1, c.rank(0)); return {c.like(0)};
    case OpType::topk: {
      c.require_min_rank(0, 1);
      const std::int64_t k = c.required_integer("k", 0);
      if (k > c.shape(0).back()) {
        c.refuse_attribute("k", fmt::format("at most the last dimension, {}", c.shape(0).back()), std::to_string(k));
      }
      TensorType values = c.like(0);
      values.shape.back() = k;
      TensorType indices{values.shape, DataType::int64};
      return {std::move(values), std::move(indices)};
    }
    case OpType::sort: {
      c.axis("axis", -1, c.rank(0));
      return {c.like(0), {c.shape(0), DataType::int64}};
    }
    case OpType::nms: {
      c.require_rank(0, 2, "[boxes, 4]");
      c.require_dim(0, 1, 4, "corners");
      c.require_shape(1, {c.shape(0)[0]});
      const std::int64_t keep = c.required_integer("keep", 0);
      if (keep > c.shape(0)[0]) {
        c.refuse_attribute("keep", fmt::format("at most the {} boxes", c.shape(0)[0]), std::to_string(keep));
      }
      return {{{keep}, DataType::int64}};
    }
    default: return {reduce_type(c)};
  }
}

}  // namespace voltaic::graph::detail
