// SPDX-License-Identifier: MIT
// How pages of a validation write errors and times.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/report/units.hpp"

namespace voltaic::validation {

/// 0.0478 is "4.8".
inline std::string percent(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}
inline std::string signed_percent(double fraction) {
  return fmt::format("{:+.1f}", 100 * fraction);
}
inline std::string time(double seconds) {
  return report::format_time(Seconds{seconds});
}

}  // namespace voltaic::validation
