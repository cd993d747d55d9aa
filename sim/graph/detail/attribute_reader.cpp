// SPDX-License-Identifier: MIT
#include "sim/graph/detail/attribute_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/units/data_type.hpp"
#include "arch/units/error.hpp"
#include "sim/graph/detail/op_schema.hpp"

namespace voltaic::graph::detail {

namespace {

std::vector<std::int64_t> read_integers(const Json& list, const Place& place, const DimTable& dims) {
  std::vector<std::int64_t> values;
  values.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) values.push_back(dims.integer(list[i], place[i], "an integer"));
  return values;
}

Attributes::Value read_value(AttributeKind kind, const Json& value, const Place& place, const DimTable& dims) {
  const std::string expected(describe(kind));
  switch (kind) {
    case AttributeKind::integer: return dims.integer(value, place, "an integer");
    case AttributeKind::flag:
      if (value.is_boolean()) return std::int64_t{value.get<bool>() ? 1 : 0};
      if (value == 0 || value == 1) return value.get<std::int64_t>();
      break;
    case AttributeKind::number:
      if (value.is_number()) return value.get<double>();  // JSON has no infinities.
      break;
    case AttributeKind::word:
      if (value.is_string()) return value.get<std::string>();
      break;
    case AttributeKind::data_type:
      if (value.is_string() && parse_data_type(value.get_ref<const std::string&>())) return value.get<std::string>();
      break;
    case AttributeKind::operation:
      if (value.is_string() && parse_op(value.get_ref<const std::string&>())) return value.get<std::string>();
      break;
    case AttributeKind::integers:
      if (value.is_array()) return read_integers(value, place, dims);
      break;
    case AttributeKind::integer_or_integers:
      if (value.is_array()) return read_integers(value, place, dims);
      return dims.integer(value, place, "an integer or a list of integers");
  }
  place.refuse(expected, value);
}

[[noreturn]] void refuse_unknown(OpType op, const std::string& name, std::span<const AttributeSpec> known,
                                 const Place& place) {
  if (known.empty()) {
    place.refuse(fmt::format("expected no attributes for {}, got {}", to_string(op), in_quotes(name)));
  }
  std::vector<std::string> names;
  for (const AttributeSpec& spec : known) names.emplace_back(spec.name);
  const std::string near = nearest(name, names);
  const std::string hint =
      near.empty() ? fmt::format("it knows {}", fmt::join(names, ", ")) : fmt::format("the nearest is '{}'", near);
  place.refuse(fmt::format("expected an attribute of {}, got {}; {}", to_string(op), in_quotes(name), hint));
}

}  // namespace

Attributes read_attributes(OpType op, const Json& object, const Place& place, const DimTable& dims) {
  require_object(object, place, "an object of attributes");
  const auto known = schema(op).attributes;
  Attributes result;
  for (const auto& [name, value] : *object.get_ptr<const Json::object_t*>()) {
    const Place here = place[std::string_view(name)];
    const auto spec =
        std::find_if(known.begin(), known.end(), [&n = name](const AttributeSpec& s) { return s.name == n; });
    if (spec == known.end()) refuse_unknown(op, name, known, here);
    result.set(name, read_value(spec->kind, value, here, dims));
  }
  return result;
}

}  // namespace voltaic::graph::detail
