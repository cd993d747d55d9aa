// SPDX-License-Identifier: MIT
// The clock of a GPU that rests between steps.
#pragma once

#include "arch/loader.hpp"

namespace voltaic::cost {

/// The GPU as matrix products on CUDA cores see it when it is busy for `busy` and then rests, again and again, as a
/// benchmark that collects garbage between its iterations does:
///     clock = (start + settled x) / (1 + x),  x = busy / ramp
/// The same law that an isolated kernel follows with its own length. Under lasting load the clock is the settled one.
arch::ResolvedGpu busy_for(const arch::ResolvedGpu& gpu, Seconds busy);

}  // namespace voltaic::cost
