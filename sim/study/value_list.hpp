// SPDX-License-Identifier: MIT
// Several values of one option: "1,2,4", the ranges "1:64:*2" and "1:65:8", and mixtures of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace voltaic::study {

/// Most values one list may expand to.
inline constexpr std::size_t kMaxValues = 1'000'000;

/// Expands `text` in order. A range is START:STOP:STEP or START:STOP:*FACTOR over numbers, STOP included when it is
/// met. Text without ',' and without a numeric range is one value. `option` names the option in UsageErrors. `ranges`
/// false: only commas part values ("2:4" and "NAME:PROFILE" stay whole).
std::vector<std::string> expand_values(std::string_view option, std::string_view text, bool ranges = true);

}  // namespace voltaic::study
