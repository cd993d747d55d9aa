// SPDX-License-Identifier: MIT
#include "sim/graph/operation.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace voltaic::graph {

namespace {

struct OpInfo {
  std::string_view name;
  OpFamily family;
};

constexpr OpInfo kOps[] = {
#define X(name, family) {#name, OpFamily::family},
    VOLTAIC_OPERATIONS(X)
#undef X
};

constexpr std::array<std::string_view, 21> kFamilies{
    "matrix",    "convolution",   "attention", "recurrent", "normalization",  "pointwise", "softmax",
    "reduction", "pooling",       "resize",    "embedding", "gather_scatter", "sparse",    "moe",
    "view",      "data_movement", "random",    "loss",      "optimizer",      "transfer",  "collective"};
static_assert(static_cast<std::size_t>(OpFamily::collective) + 1 == kFamilies.size());

auto position(auto& entries, std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
}

}  // namespace

std::string_view to_string(OpType op) {
  return kOps[static_cast<std::size_t>(op)].name;
}

std::string_view to_string(OpFamily family) {
  return kFamilies[static_cast<std::size_t>(family)];
}

OpFamily family(OpType op) {
  return kOps[static_cast<std::size_t>(op)].family;
}

bool is_loss_gradient(OpType op) {
  switch (op) {
    case OpType::cross_entropy_backward:
    case OpType::mse_loss_backward:
    case OpType::smooth_l1_loss_backward:
    case OpType::bce_loss_backward:
    case OpType::ctc_loss_backward: return true;
    default: return false;
  }
}

std::optional<OpType> parse_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, OpType> map;
    map.reserve(2 * std::size(kOps));
    for (const OpType op : all_ops()) map.emplace(to_string(op), op);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<OpType>& all_ops() {
  static const auto ops = [] {
    std::vector<OpType> all;
    all.reserve(std::size(kOps));
    for (std::size_t i = 0; i < std::size(kOps); ++i) all.push_back(static_cast<OpType>(i));
    return all;
  }();
  return ops;
}

void Attributes::set(std::string_view name, Value value) {
  const auto at = position(entries_, name);
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::string(name), std::move(value));
  }
}

const Attributes::Value* Attributes::find(std::string_view name) const {
  const auto at = position(entries_, name);
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t fallback) const {
  const Value* value = find(name);
  const auto* number = value != nullptr ? std::get_if<std::int64_t>(value) : nullptr;
  return number != nullptr ? *number : fallback;
}

double Attributes::number(std::string_view name, double fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  return fallback;
}

std::string Attributes::word(std::string_view name, std::string_view fallback) const {
  const Value* value = find(name);
  const auto* text = value != nullptr ? std::get_if<std::string>(value) : nullptr;
  return text != nullptr ? *text : std::string(fallback);
}

std::vector<std::int64_t> Attributes::integers(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(value)) return *list;
  if (const auto* one = std::get_if<std::int64_t>(value)) return {*one};
  return {};
}

}  // namespace voltaic::graph
