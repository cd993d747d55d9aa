// SPDX-License-Identifier: MIT
// A few rows of each kind, for engines that take their time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic::validation {

/// Why a row is left out by --rows.
inline constexpr std::string_view kNotDrawn = "not drawn by --rows";

/// Which rows to take: at most `rows` of each kind, drawn with a fixed `seed`; 0: all. `kinds`: that of each row. The
/// draw of one kind does not depend on the others.
std::vector<bool> draw_rows(const std::vector<std::string>& kinds, std::int64_t rows, std::uint64_t seed);

}  // namespace voltaic::validation
