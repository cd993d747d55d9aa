// SPDX-License-Identifier: MIT
// Numbers with units as people type and read them: "2.4TB/s", "80GB", "1410MHz", "1.59 ms".
#pragma once

#include <string>
#include <string_view>

#include "arch/units/quantity.hpp"

namespace voltaic::arch {

/// Parses a number with an optional SI or binary unit of dimension `unit_suffix` ("bytes", "bytes_per_s", "hz", "s",
/// "w", "cycles", "flop_per_s", "usd", "" for plain counts); a bare number is in base units. Throws UsageError naming
/// what was expected.
double parse_quantity(std::string_view text, std::string_view unit_suffix);

/// The same number for people: three or four significant digits and a prefix ("1.56 TB/s", "40.0 GiB" for bytes).
std::string format_quantity(double value, std::string_view unit_suffix);

}  // namespace voltaic::arch
