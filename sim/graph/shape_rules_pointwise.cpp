// SPDX-License-Identifier: MIT
// Shape rules of pointwise operations, dropout, losses and collectives.
#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {

namespace {

/// Shape of inputs [first, count) broadcast together.
Shape broadcast_inputs(const RuleContext& c, std::size_t first) {
  Shape result = c.shape(first);
  for (std::size_t i = first + 1; i < c.input_count(); ++i) {
    if (c.shape(i) == result) continue;
    try {
      result = broadcast(result, c.shape(i));
    } catch (const ShapeError&) {
      c.refuse_input(i, fmt::format("a shape that broadcasts with {}", to_string(result)));
    }
  }
  return result;
}

DataType promote_inputs(const RuleContext& c, std::size_t first) {
  DataType result = c.dtype(first);
  for (std::size_t i = first + 1; i < c.input_count(); ++i) result = promote(result, c.dtype(i));
  return result;
}

void require_relation(const RuleContext& c) {
  const std::string relation = c.attributes.word("relation", "lt");
  for (const char* known : {"lt", "le", "gt", "ge", "eq", "ne"}) {
    if (relation == known) return;
  }
  c.refuse_attribute("relation", "lt, le, gt, ge, eq or ne", fmt::format("'{}'", one_line(relation)));
}

TensorType backward_type(const RuleContext& c) {
  const std::string of = c.attributes.word("of", "");
  if (!of.empty() && !parse_op(of)) {
    c.refuse_attribute("of", "the name of an operation", fmt::format("'{}'", one_line(of)));
  }
  if (!c.attributes.has("shape")) return c.like(0);
  return {c.required_shape("shape"), c.dtype(0)};
}

}  // namespace

Types pointwise_rule(const RuleContext& c) {
  switch (c.op) {
    case OpType::cast:
      if (!c.attributes.has("to")) c.refuse_attribute("to", "a data type", "nothing");
      return {{c.shape(0), c.data_type("to", c.dtype(0))}};
    case OpType::logical_not: return {{c.shape(0), DataType::boolean}};
    case OpType::compare_scalar: require_relation(c); return {{c.shape(0), DataType::boolean}};
    case OpType::compare: require_relation(c); return {{broadcast_inputs(c, 0), DataType::boolean}};
    case OpType::add:
    case OpType::sub:
    case OpType::mul:
    case OpType::div:
    case OpType::pow:
    case OpType::maximum:
    case OpType::minimum: return {{broadcast_inputs(c, 0), promote_inputs(c, 0)}};
    case OpType::where: return {{broadcast_inputs(c, 0), promote_inputs(c, 1)}};
    case OpType::masked_fill: return {{broadcast_inputs(c, 0), c.dtype(0)}};
    case OpType::silu_mul:
    case OpType::gelu_mul: c.require_shape(1, c.shape(0)); return {{c.shape(0), promote_inputs(c, 0)}};
    case OpType::pointwise_backward: return {backward_type(c)};
    case OpType::fused_pointwise: {
      Shape shape = c.attributes.has("shape") ? c.required_shape("shape") : broadcast_inputs(c, 0);
      return {{std::move(shape), c.data_type("to", promote_inputs(c, 0))}};
    }
    default: return {c.like(0)};  // Unary functions and rope.
  }
}

Types random_rule(const RuleContext& c) {
  const double p = c.attributes.number("p", 0.1);
  if (!(p >= 0 && p <= 1)) c.refuse_attribute("p", "[0, 1]", fmt::format("{}", p));
  if (c.op == OpType::dropout_backward) {
    c.require_shape(1, c.shape(0));
    return {c.like(0)};
  }
  return {c.like(0), {c.shape(0), DataType::boolean}};
}

Types loss_rule(const RuleContext& c) {
  switch (c.op) {
    case OpType::cross_entropy:
    case OpType::cross_entropy_backward:
      c.require_min_rank(0, 2);
      c.require_shape(1, Shape(c.shape(0).begin(), c.shape(0).end() - 1));
      c.require_integer_type(1, "labels");
      break;
    case OpType::ctc_loss:
    case OpType::ctc_loss_backward:
      c.require_rank(0, 3, "[time, batch, classes]");
      c.require_rank(1, 2, "[batch, labels]");
      c.require_dim(1, 0, c.shape(0)[1], "batch");
      c.require_integer_type(1, "labels");
      break;
    default: c.require_shape(1, c.shape(0));
  }
  return {is_loss_gradient(c.op) ? c.like(0) : TensorType{{}, c.dtype(0)}};
}

Types collective_rule(const RuleContext& c) {
  const std::int64_t ranks = c.integer("ranks", 1, 1);
  TensorType result = c.like(0);
  if (c.op != OpType::all_gather && c.op != OpType::reduce_scatter) return {result};
  c.require_min_rank(0, 1);
  if (c.op == OpType::all_gather) {
    result.shape[0] = times(result.shape[0], ranks);
  } else {
    if (result.shape[0] % ranks != 0) c.refuse_input(0, fmt::format("a first dimension that {} ranks divide", ranks));
    result.shape[0] /= ranks;
  }
  return {result};
}

}  // namespace voltaic::graph::detail
