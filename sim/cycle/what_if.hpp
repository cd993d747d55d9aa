// SPDX-License-Identifier: MIT
// What would make a kernel faster: the same programs on machines with one thing changed, simulated again.
#pragma once

#include <string>
#include <vector>

#include "sim/cycle/engine.hpp"

namespace voltaic::cycle {

struct Change {
  std::string path;       ///< "sm.tensor.rate"
  std::string change;     ///< "*2"
  double time_ratio = 1;  ///< New time over old.
};

/// Every change that was tried, the one that helps most first; ties in a fixed order. Empty for what has no programs.
std::vector<Change> what_if(const Profile& profile, const arch::GpuSpec& gpu, SampleOptions options);

/// States of the warps of one SM while it runs `part`, in cycles from `from` up to `to`. The SM takes as many CTAs as
/// it needs to reach them. Throws UnsupportedError where they lie beyond what can be simulated in seconds.
std::vector<WarpSpan> warp_window(const Profile::Part& part, std::int64_t from, std::int64_t to);

}  // namespace voltaic::cycle
