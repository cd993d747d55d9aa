// SPDX-License-Identifier: MIT
// The contents of a launch as bytes: equal launches have equal keys.
#pragma once

#include <string>

#include "sim/kernel/launch.hpp"

namespace voltaic::cycle::detail {

/// All that a generator or an engine may look at.
std::string launch_key(const kernel::Launch& launch);

}  // namespace voltaic::cycle::detail
