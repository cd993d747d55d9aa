// SPDX-License-Identifier: MIT
#include "sim/graph/detail/shape_context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"

namespace voltaic::graph::detail {

namespace {

constexpr const char* kTooLarge = "expected at most 2^62 elements, got more";

}  // namespace

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw ShapeError(kTooLarge);
  return sum;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw ShapeError(kTooLarge);
  return product;
}

void check_shape(const Shape& shape, std::string_view place) {
  if (shape.size() > kMaxRank) {
    throw ShapeError(fmt::format("expected at most {} dimensions, got {}", kMaxRank, shape.size()), std::string(place));
  }
  std::int64_t product = 1;  // Of the non-zero dims, so that every partial product of a shape fits as well.
  for (const std::int64_t dim : shape) {
    if (dim < 0)
      throw ShapeError(fmt::format("expected dimensions of 0 or more, got {}", to_string(shape)), std::string(place));
    if (dim == 0) continue;
    if (__builtin_mul_overflow(product, dim, &product) || product > kMaxElements) {
      throw ShapeError(fmt::format("expected at most 2^62 elements, got shape {}", to_string(shape)),
                       std::string(place));
    }
  }
}

DataType promote(DataType a, DataType b) {
  if (a == b) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (a == DataType::boolean || b == DataType::boolean) return a == DataType::boolean ? b : a;
  if (info(a).bits == info(b).bits) return DataType::fp32;  // fp16 with bf16, fp32 with tf32.
  return info(a).bits > info(b).bits ? a : b;
}

void RuleContext::refuse_input(std::size_t i, const std::string& expected) const {
  throw ShapeError(fmt::format("{}: expected {}, got {}", to_string(op), expected, to_string(shape(i))),
                   fmt::format("inputs/{}", i));
}

void RuleContext::refuse_attribute(std::string_view name, const std::string& expected, const std::string& got) const {
  throw ShapeError(fmt::format("{}: expected {}, got {}", to_string(op), expected, got),
                   fmt::format("attributes/{}", name));
}

void RuleContext::require_rank(std::size_t i, std::size_t wanted, std::string_view meaning) const {
  if (rank(i) != wanted) refuse_input(i, fmt::format("rank {} {}", wanted, meaning));
}

void RuleContext::require_min_rank(std::size_t i, std::size_t wanted) const {
  if (rank(i) < wanted) refuse_input(i, fmt::format("rank {} or more", wanted));
}

void RuleContext::require_shape(std::size_t i, const Shape& expected) const {
  if (shape(i) != expected) refuse_input(i, fmt::format("shape {}", to_string(expected)));
}

void RuleContext::require_integer_type(std::size_t i, std::string_view meaning) const {
  if (!is_floating(dtype(i))) return;
  throw ShapeError(
      fmt::format("{}: expected {} of an integer type, got {}", to_string(op), meaning, voltaic::to_string(dtype(i))),
      fmt::format("inputs/{}", i));
}

void RuleContext::require_dim(std::size_t i, std::size_t dim, std::int64_t expected, std::string_view meaning) const {
  if (shape(i)[dim] != expected) refuse_input(i, fmt::format("{} {} in dimension {}", meaning, expected, dim));
}

std::int64_t RuleContext::integer(std::string_view name, std::int64_t fallback, std::int64_t minimum) const {
  const std::int64_t value = attributes.integer(name, fallback);
  if (value < minimum) refuse_attribute(name, fmt::format("{} or more", minimum), std::to_string(value));
  return value;
}

std::int64_t RuleContext::required_integer(std::string_view name, std::int64_t minimum) const {
  if (!attributes.has(name)) refuse_attribute(name, fmt::format("an integer of {} or more", minimum), "nothing");
  return integer(name, minimum - 1, minimum);
}

Shape RuleContext::required_shape(std::string_view name) const {
  if (!attributes.has(name)) refuse_attribute(name, "a shape", "nothing");
  Shape wanted = attributes.integers(name);
  check_shape(wanted, fmt::format("attributes/{}", name));
  return wanted;
}

DataType RuleContext::data_type(std::string_view name, DataType fallback) const {
  if (!attributes.has(name)) return fallback;
  const std::string word = attributes.word(name, "");
  const auto type = parse_data_type(word);
  if (!type) refuse_attribute(name, "a data type", fmt::format("'{}'", one_line(word)));
  return *type;
}

std::size_t RuleContext::axis(std::string_view name, std::int64_t fallback, std::size_t tensor_rank) const {
  const std::int64_t value = attributes.integer(name, fallback);
  const auto limit = static_cast<std::int64_t>(tensor_rank);
  if (value < -limit || value >= limit) {
    refuse_attribute(name, fmt::format("an axis of a rank {} tensor", tensor_rank), std::to_string(value));
  }
  return static_cast<std::size_t>(value < 0 ? value + limit : value);
}

std::array<std::int64_t, 3> RuleContext::spatial(std::string_view name, std::size_t dims, std::int64_t fallback,
                                                 std::int64_t minimum) const {
  std::array<std::int64_t, 3> values{fallback, fallback, fallback};
  const Attributes::Value* given = attributes.find(name);
  if (given == nullptr) return values;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(given)) {
    if (list->size() != dims) {
      refuse_attribute(name, fmt::format("an integer or {} of them", dims), to_string(*list));
    }
    std::copy(list->begin(), list->end(), values.begin());
  } else {
    values.fill(attributes.integer(name, fallback));
  }
  for (std::size_t d = 0; d < dims; ++d) {
    if (values[d] < minimum) refuse_attribute(name, fmt::format("{} or more", minimum), std::to_string(values[d]));
  }
  return values;
}

}  // namespace voltaic::graph::detail
