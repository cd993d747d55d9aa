// SPDX-License-Identifier: MIT
#include "sim/study/value_list.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "arch/units/error.hpp"

namespace voltaic::study {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view why) {
  throw UsageError(
      fmt::format("--{}: expected START:STOP:STEP or START:STOP:*FACTOR, got '{}' ({})", option, one_line(text), why));
}

/// The members of a range, or nothing when `text` is not one (a MIG name, a path).
std::optional<std::vector<std::string>> expand_range(std::string_view option, std::string_view text) {
  const auto first = text.find(':');
  const auto second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (first == std::string_view::npos) return std::nullopt;
  const auto start = number(text.substr(0, first));
  if (!start) return std::nullopt;
  if (second == std::string_view::npos) refuse(option, text, "the step is missing");
  const auto stop = number(text.substr(first + 1, second - first - 1));
  std::string_view step_text = text.substr(second + 1);
  const bool geometric = !step_text.empty() && step_text.front() == '*';
  if (geometric) step_text.remove_prefix(1);
  const auto step = number(step_text);
  if (!stop || !step) refuse(option, text, "not numbers");
  if (*stop < *start) refuse(option, text, "the range runs backwards");
  if (geometric ? !(*step > 1 && *start > 0) : !(*step > 0)) refuse(option, text, "the step does not lead to STOP");

  std::vector<std::string> values;
  constexpr double kSlack = 1 + 1e-12;  // decimal steps such as 0.1 must still meet their STOP
  for (std::size_t i = 0;; ++i) {
    const double value =
        geometric ? *start * std::pow(*step, static_cast<double>(i)) : *start + static_cast<double>(i) * *step;
    if (value > *stop * kSlack) break;
    if (values.size() == kMaxValues) refuse(option, text, "more than 1000000 values");
    values.push_back(fmt::format("{:.15g}", value));
  }
  return values;
}

}  // namespace

std::vector<std::string> expand_values(std::string_view option, std::string_view text, bool ranges) {
  std::vector<std::string> values;
  std::size_t begin = 0;
  while (true) {
    const auto comma = text.find(',', begin);
    const std::string_view item = text.substr(begin, comma == std::string_view::npos ? comma : comma - begin);
    if (item.empty())
      throw UsageError(fmt::format("--{}: expected a value, got an empty one in '{}'", option, one_line(text)));
    if (auto range = ranges ? expand_range(option, item) : std::nullopt) {
      values.insert(values.end(), range->begin(), range->end());
    } else {
      values.emplace_back(item);
    }
    if (values.size() > kMaxValues) throw UsageError(fmt::format("--{}: more than {} values", option, kMaxValues));
    if (comma == std::string_view::npos) return values;
    begin = comma + 1;
  }
}

}  // namespace voltaic::study
