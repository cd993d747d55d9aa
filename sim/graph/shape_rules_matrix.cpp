// SPDX-License-Identifier: MIT
// Shape rules of matrix products, attention and recurrent layers.
#include <fmt/format.h>

#include <algorithm>

#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {

namespace {

TensorType linear_type(const RuleContext& c) {
  c.require_min_rank(0, 1);
  c.require_rank(1, 2, "[out, in]");
  const bool transposed = c.attributes.flag("transposed_weight");
  c.require_dim(1, transposed ? 0 : 1, c.shape(0).back(), "in features");
  const std::int64_t out = c.shape(1)[transposed ? 1 : 0];
  if (c.input_count() == 3) c.require_shape(2, {out});
  TensorType result = c.like(0);
  result.shape.back() = out;
  return result;
}

TensorType matmul_type(const RuleContext& c) {
  c.require_min_rank(0, 2);
  c.require_min_rank(1, 2);
  const Shape& a = c.shape(0);
  const Shape& b = c.shape(1);
  const bool ta = c.attributes.flag("transpose_a");
  const bool tb = c.attributes.flag("transpose_b");
  const std::int64_t m = a[a.size() - (ta ? 1 : 2)];
  const std::int64_t k = a[a.size() - (ta ? 2 : 1)];
  const std::int64_t n = b[b.size() - (tb ? 2 : 1)];
  c.require_dim(1, b.size() - (tb ? 1 : 2), k, "k of");
  TensorType result;
  result.dtype = promote(c.dtype(0), c.dtype(1));
  const Shape batch_a(a.begin(), a.end() - 2);
  const Shape batch_b(b.begin(), b.end() - 2);
  try {
    result.shape = broadcast(batch_a, batch_b);
  } catch (const ShapeError&) {
    c.refuse_input(1, fmt::format("batch dimensions that broadcast with {}", to_string(batch_a)));
  }
  result.shape.push_back(m);
  result.shape.push_back(n);
  return result;
}

TensorType grouped_linear_type(const RuleContext& c) {
  c.require_rank(0, 3, "[groups, tokens, in]");
  c.require_rank(1, 3, "[groups, out, in]");
  const bool transposed = c.attributes.flag("transposed_weight");
  c.require_dim(1, 0, c.shape(0)[0], "groups");
  c.require_dim(1, transposed ? 1 : 2, c.shape(0)[2], "in features");
  return {{c.shape(0)[0], c.shape(0)[1], c.shape(1)[transposed ? 2 : 1]}, c.dtype(0)};
}

/// Checks q, k, v at inputs `first`, `first + 1`, `first + 2`; returns the shape of the attention output.
Shape attention_shape(const RuleContext& c, std::size_t first) {
  for (std::size_t i = first; i < first + 3; ++i) c.require_rank(i, 4, "[batch, heads, sequence, head dim]");
  const Shape& q = c.shape(first);
  const Shape& k = c.shape(first + 1);
  const Shape& v = c.shape(first + 2);
  c.require_dim(first + 1, 0, q[0], "batch");
  const bool shares = k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0;
  if (!shares) c.refuse_input(first + 1, fmt::format("a number of heads that divides the {} of the query", q[1]));
  c.require_dim(first + 1, 3, q[3], "head dim");
  for (std::size_t d = 0; d < 3; ++d) c.require_dim(first + 2, d, k[d], "the size of the keys");
  return {q[0], q[1], q[2], v[3]};
}

/// Parameters as frameworks lay them out: per layer and direction w_ih, w_hh and, or not, b_ih, b_hh; or all packed in
/// one.
void check_recurrent_parameters(const RuleContext& c, std::int64_t hidden, std::int64_t layers,
                                std::int64_t directions) {
  const std::int64_t gates = c.op == OpType::lstm ? 4 : c.op == OpType::gru ? 3 : 1;
  const std::size_t given = c.input_count() - 1;
  if (given == 1) return;  // Packed: the library's layout is opaque.
  const std::int64_t rows = times(gates, hidden);
  const std::int64_t cells = times(layers, directions);
  const auto count = static_cast<std::int64_t>(given);
  const bool biases = count == times(4, cells);
  if (!biases && count != times(2, cells)) {
    throw ShapeError(
        fmt::format("{}: expected 1 packed parameter, {} weights, or {} weights and biases, got {} parameters",
                    to_string(c.op), times(2, cells), times(4, cells), given),
        "inputs");
  }
  const std::size_t each = biases ? 4 : 2;
  for (std::size_t cell = 0; cell < given / each; ++cell) {
    const bool first_layer = static_cast<std::int64_t>(cell) < directions;
    const std::int64_t in = first_layer ? c.shape(0)[2] : times(hidden, directions);
    const std::size_t at = 1 + cell * each;
    c.require_shape(at, {rows, in});
    c.require_shape(at + 1, {rows, hidden});
    for (std::size_t b = 2; b < each; ++b) c.require_shape(at + b, {rows});
  }
}

/// dy, x and the parameters to dx, or to one gradient per parameter.
Types recurrent_gradient(const RuleContext& c) {
  c.require_rank(0, 3, "[time, batch, hidden]");
  c.require_rank(1, 3, "[time, batch, in]");
  for (std::size_t d = 0; d < 2; ++d) c.require_dim(1, d, c.shape(0)[d], "time and batch of the gradient");
  const std::int64_t directions = c.attributes.flag("bidirectional") ? 2 : 1;
  c.require_dim(0, 2, times(c.required_integer("hidden", 1), directions), "the hidden size of each direction");
  c.integer("layers", 1, 1);
  if (c.op == OpType::rnn_backward) return {c.like(1)};
  Types gradients;
  for (std::size_t i = 2; i < c.input_count(); ++i) gradients.push_back(c.like(i));
  return gradients;
}

}  // namespace

Types matrix_rule(const RuleContext& c) {
  if (c.op == OpType::linear) return {linear_type(c)};
  if (c.op == OpType::matmul) return {matmul_type(c)};
  return {grouped_linear_type(c)};
}

Types attention_rule(const RuleContext& c) {
  c.integer("window", 0, 0);
  if (c.op == OpType::attention) return {{attention_shape(c, 0), c.dtype(0)}};
  const Shape output = attention_shape(c, 1);
  c.require_shape(0, output);
  c.require_shape(4, output);
  return {c.like(1), c.like(2), c.like(3)};
}

Types recurrent_rule(const RuleContext& c) {
  if (c.op == OpType::rnn_backward || c.op == OpType::rnn_wgrad) return recurrent_gradient(c);
  c.require_rank(0, 3, "[time, batch, in]");
  const std::int64_t hidden = c.required_integer("hidden", 1);
  const std::int64_t layers = c.integer("layers", 1, 1);
  const std::int64_t directions = c.attributes.flag("bidirectional") ? 2 : 1;
  check_recurrent_parameters(c, hidden, layers, directions);
  const Shape& x = c.shape(0);
  const TensorType state{{times(layers, directions), x[1], hidden}, c.dtype(0)};
  Types results{{{x[0], x[1], times(hidden, directions)}, c.dtype(0)}, state};
  if (c.op == OpType::lstm) results.push_back(state);
  return results;
}

}  // namespace voltaic::graph::detail
