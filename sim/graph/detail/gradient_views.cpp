// SPDX-License-Identifier: MIT
// Views on the gradient tape: who shares whose elements, and when a reshape has to copy them.
#include <utility>

#include "arch/units/error.hpp"
#include "sim/graph/detail/gradient_tape.hpp"

namespace voltaic::graph::detail {

Strides packed_strides(const Shape& shape) {
  Strides strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d] > 0 ? shape[d] : 1;
  }
  return strides;
}

namespace {

/// Dimensions of size one may have any stride.
bool is_packed(const Shape& shape, const Strides& strides) {
  const Strides packed = packed_strides(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && strides[d] != packed[d]) return false;
  }
  return true;
}

}  // namespace

std::optional<Strides> view_strides(const Shape& from, const Strides& strides, const Shape& to) {
  if (elements(from) == 0 || from.empty() || to.empty()) return packed_strides(to);
  Strides result(to.size());
  std::size_t left = to.size();  // Dimensions of `to` that still lack a stride, filled from the right.
  std::int64_t step = strides.back();
  std::int64_t run = 1;     // Elements of `from` that lie `step` apart.
  std::int64_t viewed = 1;  // Elements of `to` laid onto them.
  for (std::size_t d = from.size(); d-- > 0;) {
    run *= from[d];
    const bool run_ends = d == 0 || (from[d - 1] != 1 && strides[d - 1] != run * step);
    if (!run_ends) continue;
    while (left > 0 && (viewed < run || to[left - 1] == 1)) {
      --left;
      result[left] = viewed * step;
      viewed *= to[left];
    }
    if (viewed != run) return std::nullopt;
    if (d > 0) {
      step = strides[d - 1];
      run = viewed = 1;
    }
  }
  if (left > 0) return std::nullopt;
  return result;
}

TensorId GradientTape::packed(TensorId t, std::string_view role) {
  if (!strided_.contains(t)) return t;
  const auto [place, added] = packed_.try_emplace(t, kNoTensor);
  if (added) place->second = pointwise(OpType::contiguous, role, {t});
  return place->second;
}

TensorId GradientTape::reshape(TensorId t, const Shape& shape, std::string_view role) {
  const Shape& from = tensor(t).shape;
  if (from == shape) return t;
  ensure(elements(from) == elements(shape), "a gradient is reshaped to another size");
  std::optional<Strides> strides;
  if (const auto strided = strided_.find(t); strided != strided_.end()) {
    strides = view_strides(from, strided->second, shape);
    if (!strides) t = packed(t, std::string(role) + "_copy");
  }
  Attributes attributes;
  attributes.set("shape", shape);
  const TensorId view = emit(OpType::reshape, role, {t}, shape, tensor(t).dtype, std::move(attributes));
  if (strides && !is_packed(shape, *strides)) strided_.emplace(view, std::move(*strides));
  return view;
}

TensorId GradientTape::transpose(TensorId t, const std::vector<std::int64_t>& perm, std::string_view role) {
  const Tensor& from = tensor(t);
  ensure(perm.size() == from.shape.size(), "a transpose permutes every dimension");
  const auto known = strided_.find(t);
  const Strides old = known == strided_.end() ? packed_strides(from.shape) : known->second;
  Shape shape(perm.size());
  Strides strides(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) {
    shape[d] = from.shape[static_cast<std::size_t>(perm[d])];
    strides[d] = old[static_cast<std::size_t>(perm[d])];
  }
  Attributes attributes;
  attributes.set("perm", perm);
  const TensorId view = emit(OpType::transpose, role, {t}, std::move(shape), from.dtype, std::move(attributes));
  if (!is_packed(tensor(view).shape, strides)) strided_.emplace(view, std::move(strides));
  return view;
}

TensorId GradientTape::expand(TensorId t, const Shape& shape, std::string_view role) {
  const Tensor& from = tensor(t);
  if (from.shape == shape) return t;
  const auto known = strided_.find(t);
  const Strides old = known == strided_.end() ? packed_strides(from.shape) : known->second;
  const std::size_t extra = shape.size() - from.shape.size();
  Strides strides(shape.size(), 0);
  for (std::size_t d = extra; d < shape.size(); ++d) {
    if (from.shape[d - extra] == shape[d]) strides[d] = old[d - extra];
  }
  Attributes attributes;
  attributes.set("shape", shape);
  const TensorId view = emit(OpType::expand, role, {t}, shape, from.dtype, std::move(attributes));
  if (!is_packed(shape, strides)) strided_.emplace(view, std::move(strides));
  return view;
}

TensorId GradientTape::slice(TensorId t, std::int64_t axis, std::int64_t start, std::int64_t end,
                             std::string_view role) {
  const Tensor& from = tensor(t);
  const auto known = strided_.find(t);
  Strides strides = known == strided_.end() ? packed_strides(from.shape) : known->second;
  Shape shape = from.shape;
  shape[static_cast<std::size_t>(axis)] = end - start;
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("start", start);
  attributes.set("end", end);
  const TensorId view = emit(OpType::slice, role, {t}, std::move(shape), from.dtype, std::move(attributes));
  if (!is_packed(tensor(view).shape, strides)) strided_.emplace(view, std::move(strides));
  return view;
}

TensorId GradientTape::rows(TensorId t, std::string_view role) {
  const Shape& shape = tensor(t).shape;
  if (shape.size() == 2) return packed(t, "packed");
  const auto [place, added] = rows_.try_emplace(t, kNoTensor);
  if (added) {
    const std::int64_t width = shape.empty() ? 1 : shape.back();
    std::int64_t count = 1;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) count *= shape[d];
    const TensorId flat = reshape(t, {count, width}, role);
    rows_[t] = flat;
    return flat;
  }
  return place->second;
}

}  // namespace voltaic::graph::detail
