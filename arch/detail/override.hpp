// SPDX-License-Identifier: MIT
// --set on a description and on a calibration tree.
#pragma once

#include <vector>

#include "arch/detail/description.hpp"
#include "arch/loader.hpp"

namespace voltaic::arch::detail {

/// Applies the overrides in order; throws UsageError naming the path, the nearest known one or the bad value.
void apply_overrides(const std::vector<Override>& overrides, Description& description, ParameterTree& calibration);

}  // namespace voltaic::arch::detail
