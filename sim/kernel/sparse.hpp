// SPDX-License-Identifier: MIT
// Products with a sparse matrix as one launch: names, grid, work.
#pragma once

#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// cuSPARSE's kernel for the product: one warp per row of A and 32 columns of the result.
Launch sparse_launch(const SparseKernel& kernel);

}  // namespace voltaic::kernel
