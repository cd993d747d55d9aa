// SPDX-License-Identifier: MIT
// What lowering and the cost model must agree on about matrix kernels.
#pragma once

namespace voltaic::kernel {

/// Bytes of partial sums up to which the library adds the parts of a split k loop in a second kernel; beyond, on CUDA
/// cores, in place. Of 2,295 measured split products above it none has the second kernel, of 476 below it nine in ten
/// do [NEUDATA].
inline constexpr double kSplitWorkspace = 1048576;

}  // namespace voltaic::kernel
