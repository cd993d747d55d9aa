// SPDX-License-Identifier: MIT
// Conditions of --fail-if: "time_s.total>0.1" on the result of a prediction.
#pragma once

#include <string>
#include <string_view>

namespace voltaic::tools {

struct Goal {
  std::string path;      ///< Members of `result`, joined by dots.
  std::string relation;  ///< > >= < <= == !=
  double value = 0;
};

/// Throws UsageError naming what was expected.
Goal parse_goal(std::string_view text);

/// Whether the condition holds in `document`, the JSON text of an answer. Throws UsageError for a path that leads to no
/// number, naming the nearest member.
bool holds(const Goal& goal, std::string_view document);

}  // namespace voltaic::tools
