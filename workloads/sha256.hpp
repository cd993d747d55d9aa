// SPDX-License-Identifier: MIT
// SHA-256 [FIPS180-4], for naming input files in reports.
#pragma once

#include <string>
#include <string_view>

namespace voltaic::workloads {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view data);

}  // namespace voltaic::workloads
