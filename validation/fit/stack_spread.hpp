// SPDX-License-Identifier: MIT
// How far serving-stack rows left out of a fit lie from what was measured: quantiles by call, half widths by kernel
// family.
#pragma once

#include <vector>

#include "validation/fit/stack_fit.hpp"

namespace voltaic::validation {

/// Errors by board, release and call. `timings`: of fit rows, by numbers fitted without them; `report*` of report rows.
std::vector<StackSpread> stack_spread(const StackTimes& times, const arch::CalibrationDocument& document,
                                      const std::vector<StackFitRow>& rows, const StackTimings& timings,
                                      const StackTimings& before, const std::vector<StackFitRow>& report,
                                      const StackTimings& report_timings, const StackTimings& report_before);

/// By launch family of the row's longest kernel, where it takes most of the call. Calls that the model does not
/// describe are left out: their quantiles say so.
std::vector<KernelSpread> stack_kernels(const StackTimes& times, const arch::CalibrationDocument& document,
                                        const std::vector<StackFitRow>& rows, const StackTimings& timings,
                                        const std::vector<StackSpread>& spread);

/// Writes quantiles under protocols.STACK.CALL: for each release where a board has several, over all of them for the
/// board, and those of the first board that has the call for boards without rows; half widths under intervals.FAMILY.
void keep_stack_spread(const std::vector<StackSpread>& spread, const std::vector<KernelSpread>& kernels,
                       arch::CalibrationDocument& fitted);

}  // namespace voltaic::validation
