// SPDX-License-Identifier: MIT
// A calibration file of a user's own, held against what ships.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "arch/spec.hpp"

namespace voltaic::arch::detail {

/// Throws ConfigError naming file and place for another architecture, an unknown parameter (with the nearest), a value
/// of another kind than what ships, a list of another length, and a number that leaves what the laws were made for:
/// more than a factor 10,000 from what ships, of another sign, or beyond 1 for a share.
void check_calibration_file(const nlohmann::ordered_json& file, const nlohmann::ordered_json& shipped,
                            Architecture architecture, const std::string& name);

}  // namespace voltaic::arch::detail
