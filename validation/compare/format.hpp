// SPDX-License-Identifier: MIT
// How pages of a validation write errors and figures.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/report/units.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {

/// 0.0478 is "4.8".
inline std::string percent(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}
inline std::string signed_percent(double fraction) {
  return fmt::format("{:+.1f}", 100 * fraction);
}
/// "1.20 ms", "254.6 W", "1.083x".
inline std::string figure(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds: return report::format_time(Seconds{value});
    case Unit::watts: return fmt::format("{:.1f} W", value);
    case Unit::ratio: return fmt::format("{:.3f}x", value);
  }
  return "";
}

}  // namespace voltaic::validation
