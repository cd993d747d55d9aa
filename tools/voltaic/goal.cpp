// SPDX-License-Identifier: MIT
#include "tools/voltaic/goal.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "arch/units/error.hpp"

namespace voltaic::tools {

Goal parse_goal(std::string_view text) {
  const auto at = text.find_first_of("<>=!");
  if (at == std::string_view::npos || at == 0) {
    throw UsageError(fmt::format("--fail-if: expected KEY>VALUE, like time_s.total>0.1, got '{}'", one_line(text)));
  }
  Goal goal;
  goal.path = std::string(text.substr(0, at));
  const std::size_t length = at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1;
  goal.relation = std::string(text.substr(at, length));
  if (goal.relation == "=" || goal.relation == "!") throw UsageError("--fail-if: expected one of > >= < <= == !=");
  const std::string_view number = text.substr(at + length);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), goal.value);
  if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(goal.value)) {
    throw UsageError(fmt::format("--fail-if: expected a number after '{}', got '{}'", goal.relation, one_line(number)));
  }
  return goal;
}

bool holds(const Goal& goal, std::string_view document) {
  const auto root = nlohmann::json::parse(document);
  const nlohmann::json* at = &root.at("result");
  std::string_view rest = goal.path;
  while (true) {
    const auto dot = rest.find('.');
    const std::string key(rest.substr(0, dot));
    if (!at->is_object() || !at->contains(key)) {
      std::vector<std::string> members;
      if (at->is_object()) {
        for (const auto& [name, value] : at->items()) members.push_back(name);
      }
      const std::string near = nearest(key, members);
      throw UsageError(fmt::format("--fail-if: the result has no '{}'{}", one_line(goal.path),
                                   near.empty() ? "" : ", did you mean '" + near + "'?"));
    }
    at = &at->at(key);
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (at->is_boolean())
    return goal.relation == "!=" ? at->get<bool>() != (goal.value != 0) : at->get<bool>() == (goal.value != 0);
  if (!at->is_number()) throw UsageError(fmt::format("--fail-if: '{}' is not a number", one_line(goal.path)));
  const double value = at->get<double>();
  if (goal.relation == ">") return value > goal.value;
  if (goal.relation == ">=") return value >= goal.value;
  if (goal.relation == "<") return value < goal.value;
  if (goal.relation == "<=") return value <= goal.value;
  if (goal.relation == "==") return value == goal.value;
  return value != goal.value;
}

}  // namespace voltaic::tools
