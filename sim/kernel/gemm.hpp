// SPDX-License-Identifier: MIT
// What lowering and the cost model must agree on about matrix kernels.
#pragma once

#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// Bytes of partial sums up to which the library adds the parts of a split k loop in a second kernel; beyond, on CUDA
/// cores, in place. Of 2,295 measured split products above it none has the second kernel, of 476 below it nine in ten
/// do [NEUDATA].
inline constexpr double kSplitWorkspace = 1048576;

/// Elements at which the rows of all three matrices start together, up to 16 bytes of them: 8 of fp16 where m, n and k
/// allow it, 1 where the width is odd. A kernel loads and stores so many at once.
std::int64_t alignment(const GemmProblem& problem);

}  // namespace voltaic::kernel
