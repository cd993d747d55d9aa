// SPDX-License-Identifier: MIT
// The kernels of a prediction as a profiler would show them.
#pragma once

#include "sim/simulator.hpp"

namespace voltaic {

/// Fills `profiles` and `stalls` from the kernels of the layers that `prediction` has, what takes longest in all first.
/// Kernels that make most of the time are simulated again with the machine changed, and keep the three changes that
/// help most.
void add_profiles(report::Prediction& prediction, const Simulator& simulator, cycle::SampleOptions sampling);

/// The kernel of `prediction` that takes longest in all, for a trace of its warps. Throws UsageError where none runs on
/// SMs.
std::shared_ptr<const cycle::Profile> longest_kernel(const report::Prediction& prediction, const Simulator& simulator,
                                                     cycle::SampleOptions sampling);

}  // namespace voltaic
