// SPDX-License-Identifier: MIT
#include "sim/graph/detail/dim_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "arch/units/error.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {

namespace {

constexpr const char* kDimension = "an integer from 0 to 2^62, a dim name or a product like \"batch*seq\"";

bool is_dim_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; };
  return !text.empty() && letter(text.front()) && std::all_of(text.begin(), text.end(), inner);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The value of a JSON integer that fits 64 bits; nullopt for anything else, 2.0 included.
std::optional<std::int64_t> whole(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= static_cast<std::uint64_t>(INT64_MAX) ? std::optional(static_cast<std::int64_t>(number))
                                                           : std::nullopt;
  }
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

bool fits(std::int64_t value) {
  return value >= 0 && value <= kMaxElements;
}

}  // namespace

DimTable::DimTable(const Json* dims, const Place& place, const DimValues& overrides, std::vector<std::string>* notes) {
  if (dims != nullptr) {
    require_object(*dims, place, "an object of dim names and integers");
    for (const auto& [name, value] : *dims->get_ptr<const Json::object_t*>()) {
      const Place here = place[std::string_view(name)];
      if (!is_dim_name(name))
        here.refuse("expected a dim name of letters, digits, '_', '.' and '-', got " + in_quotes(name));
      const auto number = whole(value);
      if (!number || !fits(*number)) here.refuse("an integer from 0 to 2^62", value);
      values_.emplace(name, *number);
    }
  }
  for (const auto& [name, value] : overrides) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      if (name != "batch" && name != "seq") {
        std::vector<std::string> known;
        for (const auto& entry : values_) known.push_back(entry.first);
        const std::string near = nearest(name, known);
        place.refuse(fmt::format("expected a dim of the file to set, got {}{}", in_quotes(name),
                                 near.empty() ? "" : fmt::format("; the nearest is '{}'", printable(near))));
      }
      if (notes != nullptr)
        notes->push_back(fmt::format("{} = {} ignored: the graph has no dim of that name", name, value));
      continue;
    }
    if (!fits(value))
      place[std::string_view(name)].refuse(fmt::format("expected an integer from 0 to 2^62, got {}", value));
    found->second = value;
  }
}

std::int64_t DimTable::factor(std::string_view text, const Place& place) const {
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && fits(value)) return value;
  } else if (const auto found = values_.find(text); found != values_.end()) {
    return found->second;
  } else if (is_dim_name(text)) {
    std::vector<std::string> known;
    for (const auto& entry : values_) known.push_back(entry.first);
    const std::string near = nearest(text, known);
    place.refuse(fmt::format("expected a name from dims, got {}{}", in_quotes(text),
                             near.empty() ? "" : fmt::format("; the nearest is '{}'", printable(near))));
  }
  place.refuse(fmt::format("expected {}, got {}", kDimension, in_quotes(text)));
}

std::int64_t DimTable::product(std::string_view text, const Place& place) const {
  std::int64_t result = 1;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('*', begin), text.size());
    const std::int64_t value = factor(trimmed(text.substr(begin, end - begin)), place);
    if (__builtin_mul_overflow(result, value, &result) || !fits(result)) {
      place.refuse(fmt::format("expected a product of at most 2^62, got {}", in_quotes(text)));
    }
    begin = end + 1;
  }
  return result;
}

std::int64_t DimTable::integer(const Json& value, const Place& place, const char* expected) const {
  if (const auto* text = value.get_ptr<const std::string*>()) return product(*text, place);
  const auto number = whole(value);
  if (!number) place.refuse(expected, value);
  return *number;
}

std::int64_t DimTable::dimension(const Json& value, const Place& place) const {
  const std::int64_t result = integer(value, place, kDimension);
  if (!fits(result)) place.refuse(kDimension, value);
  return result;
}

Shape DimTable::shape(const Json& value, const Place& place) const {
  require_array(value, place, "a shape, a list of dims");
  Shape result;
  result.reserve(value.size());
  for (std::size_t d = 0; d < value.size(); ++d) result.push_back(dimension(value[d], place[d]));
  try {
    check_shape(result);
  } catch (const ShapeError& error) {
    place.refuse(error.what());
  }
  return result;
}

}  // namespace voltaic::graph::detail
