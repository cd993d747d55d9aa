// SPDX-License-Identifier: MIT
// Numbers for people: three significant digits, an SI prefix and a unit; GiB for memory.
#pragma once

#include <cstdint>
#include <string>

#include "arch/units/quantity.hpp"

namespace voltaic::report {

std::string format_time(Seconds t);                     ///< "12.3 ms"
std::string format_gib(double bytes);                   ///< "1.25 GiB", below 0.1 GiB "96.0 MiB", below 1 MiB "812 KiB"
std::string format_si(double value, const char* unit);  ///< "312 TFLOP/s", "1.56 TB/s", "335 M"
std::string format_percent(double share);               ///< "12.3 %"
std::string format_count(double n);                     ///< "12,345" below a million, then "335.1 M"
std::string format_ratio(double r);                     ///< "1.83x"

/// The shortest text that reads back as the same double, as JSON and CSV print numbers; "0" for NaN or infinity never
/// appears: those throw InternalError.
std::string shortest(double value);

}  // namespace voltaic::report
