// SPDX-License-Identifier: MIT
// Shape rules of views, data movement, tables, gathers and mixtures of experts.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "arch/units/error.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {

namespace {

Shape reshape_shape(const RuleContext& c) {
  if (!c.attributes.has("shape")) c.refuse_attribute("shape", "a shape", "nothing");
  Shape wanted = c.attributes.integers("shape");
  const std::int64_t total = elements(c.shape(0));
  const auto open = std::find(wanted.begin(), wanted.end(), -1);
  const auto refuse = [&] {
    c.refuse_attribute("shape", fmt::format("{} elements as in {}", total, to_string(c.shape(0))),
                       to_string(c.attributes.integers("shape")));
  };
  if (open != wanted.end()) {
    *open = 1;
    check_shape(wanted, "attributes/shape");  // A second -1 is refused here.
    const std::int64_t known = elements(wanted);
    if (known == 0 || total % known != 0) refuse();
    *open = total / known;
    return wanted;
  }
  check_shape(wanted, "attributes/shape");
  if (elements(wanted) != total) refuse();
  return wanted;
}

Shape expand_shape(const RuleContext& c) {
  if (!c.attributes.has("shape")) c.refuse_attribute("shape", "a shape", "nothing");
  Shape wanted = c.attributes.integers("shape");
  const Shape& x = c.shape(0);
  const auto refuse = [&] {
    c.refuse_attribute("shape", fmt::format("a shape that {} expands to", to_string(x)),
                       to_string(c.attributes.integers("shape")));
  };
  if (wanted.size() < x.size()) refuse();
  const std::size_t offset = wanted.size() - x.size();
  for (std::size_t d = 0; d < x.size(); ++d) {
    std::int64_t& dim = wanted[offset + d];
    if (dim == -1) dim = x[d];
    if (dim != x[d] && x[d] != 1) refuse();
  }
  check_shape(wanted, "attributes/shape");
  return wanted;
}

Shape transpose_shape(const RuleContext& c) {
  const Shape& x = c.shape(0);
  if (!c.attributes.has("perm")) {
    c.require_min_rank(0, 2);
    Shape swapped = x;
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    return swapped;
  }
  const auto perm = c.attributes.integers("perm");
  Shape result;
  std::vector<bool> seen(x.size(), false);
  for (const std::int64_t from : perm) {
    const bool fits = from >= 0 && from < static_cast<std::int64_t>(x.size());
    if (!fits || seen[static_cast<std::size_t>(from)]) break;
    seen[static_cast<std::size_t>(from)] = true;
    result.push_back(x[static_cast<std::size_t>(from)]);
  }
  if (result.size() != x.size() || perm.size() != x.size()) {
    c.refuse_attribute("perm", fmt::format("a permutation of {} axes", x.size()), to_string(perm));
  }
  return result;
}

Types split_types(const RuleContext& c) {
  const std::size_t axis = c.axis("axis", -1, c.rank(0));
  const auto sizes = c.attributes.integers("sizes");
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) c.refuse_attribute("sizes", "sizes of 0 or more", to_string(sizes));
    sum = plus(sum, size);
  }
  if (sizes.empty() || sum != c.shape(0)[axis]) {
    c.refuse_attribute("sizes", fmt::format("sizes that add up to {}", c.shape(0)[axis]), to_string(sizes));
  }
  Types parts;
  parts.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    parts.push_back(c.like(0));
    parts.back().shape[axis] = size;
  }
  return parts;
}

Shape slice_shape(const RuleContext& c) {
  if (!c.attributes.has("axis")) c.refuse_attribute("axis", "an axis", "nothing");
  const std::size_t axis = c.axis("axis", 0, c.rank(0));
  const std::int64_t size = c.shape(0)[axis];
  // Negative positions count from the end and both ends are cut to the tensor, as in Python.
  const auto clamp = [size](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t start = clamp(c.attributes.integer("start", 0));
  const std::int64_t end = clamp(c.attributes.integer("end", size));
  const std::int64_t step = c.integer("step", 1, 1);
  Shape result = c.shape(0);
  result[axis] = end <= start ? 0 : (end - start - 1) / step + 1;
  return result;
}

TensorType concat_type(const RuleContext& c) {
  const std::size_t axis = c.axis("axis", 0, c.rank(0));
  TensorType result = c.like(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) {
    const Shape& part = c.shape(i);
    bool fits = part.size() == result.shape.size();
    for (std::size_t d = 0; fits && d < part.size(); ++d) fits = d == axis || part[d] == result.shape[d];
    if (!fits) c.refuse_input(i, fmt::format("a shape like {} outside axis {}", to_string(c.shape(0)), axis));
    result.shape[axis] = plus(result.shape[axis], part[axis]);
    result.dtype = promote(result.dtype, c.dtype(i));
  }
  return result;
}

Shape pad_shape(const RuleContext& c) {
  const auto pads = c.attributes.integers("pads");
  const std::size_t rank = c.rank(0);
  if (pads.size() != 2 * rank) {
    c.refuse_attribute("pads", fmt::format("{} integers, before each dimension and then after each", 2 * rank),
                       to_string(pads));
  }
  Shape result = c.shape(0);
  for (std::size_t d = 0; d < rank; ++d) {
    result[d] = plus(plus(result[d], pads[d]), pads[rank + d]);
    if (result[d] < 0) c.refuse_attribute("pads", "a result of 0 or more in each dimension", to_string(pads));
  }
  return result;
}

}  // namespace

Types movement_rule(const RuleContext& c) {
  switch (c.op) {
    case OpType::reshape: return {{reshape_shape(c), c.dtype(0)}};
    case OpType::expand: return {{expand_shape(c), c.dtype(0)}};
    case OpType::transpose: return {{transpose_shape(c), c.dtype(0)}};
    case OpType::split: return split_types(c);
    case OpType::slice: return {{slice_shape(c), c.dtype(0)}};
    case OpType::concat: return {concat_type(c)};
    case OpType::pad: return {{pad_shape(c), c.dtype(0)}};
    case OpType::fill: return {{c.required_shape("shape"), c.data_type("dtype", DataType::fp32)}};
    default: return {c.like(0)};  // contiguous, copy
  }
}

namespace {

void require_word(const RuleContext& c, std::string_view name, std::string_view fallback) {
  const std::string word = c.attributes.word(name, fallback);
  if (word != "sum" && word != "mean" && word != "max") {
    c.refuse_attribute(name, "sum, mean or max", fmt::format("'{}'", one_line(word, 40)));
  }
}

/// A bag sums (or averages) the rows of one sample: ids[samples, lookups]. Where the backward kernel updates the table
/// itself there is no gradient to keep.
Types bag_types(const RuleContext& c) {
  const bool backward = c.op == OpType::embedding_bag_backward;
  const std::size_t ids = backward ? 1 : 0;
  c.require_integer_type(ids, "ids");
  c.require_rank(ids, 2, "[samples, lookups]");
  c.require_rank(1 - ids, 2, backward ? "[samples, width]" : "[rows, width]");
  require_word(c, "mode", "sum");
  constexpr double kSteepest = 10;
  const double zipf = c.attributes.number("zipf", 0);
  if (!(zipf >= 0 && zipf <= kSteepest)) c.refuse_attribute("zipf", "0 to 10", fmt::format("{}", zipf));
  const std::int64_t width = c.shape(1 - ids)[1];
  if (!backward) return {{{c.shape(0)[0], width}, c.dtype(1)}};
  c.require_dim(0, 0, c.shape(1)[0], "samples");
  const std::int64_t rows = c.required_integer("rows", 0);
  return {{{c.attributes.flag("fused_update") ? 0 : rows, width}, c.dtype(0)}};
}

/// Regions of a feature map, resampled to one size: x[N, C, H, W], boxes[R, 4 or 5].
Types roi_types(const RuleContext& c) {
  c.require_rank(0, 4, "[N, C, H, W]");
  c.require_rank(1, 2, "[regions, corners]");
  constexpr std::int64_t kCorners = 4;  // And in front of them the image, or not.
  if (c.shape(1)[1] != kCorners && c.shape(1)[1] != kCorners + 1) c.refuse_input(1, "4 or 5 numbers per region");
  static_cast<void>(c.integer("sampling", 2, 1));
  if (c.op == OpType::roi_align_backward) {
    Shape input = c.required_shape("input_shape");
    if (input.size() != 4) c.refuse_attribute("input_shape", "rank 4", to_string(input));
    c.require_dim(0, 0, c.shape(1)[0], "regions");
    c.require_dim(0, 1, input[1], "channels");
    return {{std::move(input), c.dtype(0)}};
  }
  if (!c.attributes.has("size")) c.refuse_attribute("size", "an integer or 2 of them", "nothing");
  const auto size = c.spatial("size", 2, 1, 1);
  return {{{c.shape(1)[0], c.shape(0)[1], size[0], size[1]}, c.dtype(0)}};
}

}  // namespace

Types embedding_rule(const RuleContext& c) {
  if (c.op == OpType::embedding_bag || c.op == OpType::embedding_bag_backward) return bag_types(c);
  if (c.op == OpType::embedding) {
    c.require_integer_type(0, "ids");
    c.require_rank(1, 2, "[rows, width]");
    TensorType result{c.shape(0), c.dtype(1)};
    result.shape.push_back(c.shape(1)[1]);
    return {std::move(result)};
  }
  c.require_integer_type(1, "ids");
  c.require_min_rank(0, 1);
  const std::int64_t width = c.shape(0).back();
  Shape expected = c.shape(1);
  expected.push_back(width);
  c.require_shape(0, expected);
  return {{{c.required_integer("rows", 0), width}, c.dtype(0)}};
}

/// spmm: y[rows, D] = A x[R, D], A with one entry per element of the index (and its value); sddmm: the entries' own
/// gradients, one dot product of dy[rows, D] and x[R, D] each.
Types sparse_rule(const RuleContext& c) {
  c.require_rank(0, 2, "[rows, width]");
  if (c.op == OpType::spmm) {
    c.require_rank(1, 1, "[entries]");
    c.require_integer_type(1, "an index");
    if (c.input_count() == 3) c.require_shape(2, c.shape(1));
    require_word(c, "reduce", "sum");
    return {{{c.required_integer("rows", 0), c.shape(0)[1]}, c.dtype(0)}};
  }
  c.require_rank(1, 2, "[rows, width]");
  c.require_dim(1, 1, c.shape(0)[1], "the width of the first input");
  c.require_rank(2, 1, "[entries]");
  c.require_integer_type(2, "an index");
  return {{c.shape(2), c.dtype(0)}};
}

Types gather_scatter_rule(const RuleContext& c) {
  if (c.op == OpType::roi_align || c.op == OpType::roi_align_backward) return roi_types(c);
  c.require_min_rank(0, 1);
  c.require_integer_type(1, "an index");
  const Shape& x = c.shape(0);
  const Shape& index = c.shape(1);
  if (c.op == OpType::gather) {
    TensorType result{index, c.dtype(0)};
    result.shape.insert(result.shape.end(), x.begin() + 1, x.end());
    return {std::move(result)};
  }
  if (x.size() < index.size() || !std::equal(index.begin(), index.end(), x.begin())) {
    c.refuse_input(0, fmt::format("a shape that begins with that of the index, {}", to_string(index)));
  }
  TensorType result{{c.required_integer("rows", 0)}, c.dtype(0)};
  result.shape.insert(result.shape.end(), x.begin() + static_cast<std::ptrdiff_t>(index.size()), x.end());
  return {std::move(result)};
}

Types moe_rule(const RuleContext& c) {
  c.require_rank(1, 2, "[tokens, choices]");
  c.require_integer_type(1, "an index");
  const std::int64_t tokens = c.shape(1)[0];
  if (c.op == OpType::moe_dispatch) {
    c.require_rank(0, 2, "[tokens, width]");
    c.require_dim(0, 0, tokens, "tokens");
    const std::int64_t experts = c.required_integer("experts", 1);
    if (c.shape(1)[1] > experts) c.refuse_input(1, fmt::format("at most {} choices, one of each expert", experts));
    const std::int64_t routed = times(tokens, c.shape(1)[1]);
    const std::int64_t even = routed / experts + (routed % experts != 0 ? 1 : 0);
    return {{{experts, c.integer("capacity", even, 0), c.shape(0)[1]}, c.dtype(0)}};
  }
  c.require_rank(0, 3, "[experts, capacity, width]");
  c.require_shape(2, c.shape(1));
  return {{{tokens, c.shape(0)[2]}, c.dtype(0)}};
}

}  // namespace voltaic::graph::detail
