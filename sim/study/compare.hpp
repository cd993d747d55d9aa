// SPDX-License-Identifier: MIT
// The same workload under two or more GPUs, precisions or other options, side by side, and why the ratio is what it is.
#pragma once

#include <vector>

#include "sim/report/study_rows.hpp"
#include "sim/request.hpp"
#include "sim/study/sweep.hpp"

namespace voltaic::study {

/// One row per combination of the axes' values, in grid order; the first row is the base of all ratios.
/// Unlike a sweep, a row that cannot be predicted fails the comparison: its error is thrown.
report::Comparison compare(Runner& runner, const Request& base, const std::vector<Axis>& axes);

}  // namespace voltaic::study
