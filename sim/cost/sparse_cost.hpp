// SPDX-License-Identifier: MIT
// Time of products with a sparse matrix: rows of the dense operand are gathered, from L2 where they still lie there.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// Legs of C[rows, F] = A[rows, cols] B[cols, F] with z stored elements:
///     A      z (index + value) / (stream_share BW)
///     rows   z ceil(F es / sector) sectors, at the bandwidth of L2
///     DRAM   compulsory dense bytes and m of the other gathered ones, m = clip(1 - l2_kept L2 / bytes of B), at
///     gather_share
///            BW
///     wait   a warp per row and 32 columns: start + z/rows/unroll latencies of L2, over the warps in flight
///     time   = fixed + imbalance (A^p + ... )^(1/p)
/// Columns of B one after another (csrmm of pruned weights): an element of A costs a part of a sector per column that
/// grows with the height of B, a row of C some more. That part is fitted on the Pascal boards of [DEEPBENCH]; the rest
/// is assumed. Scattering (A by columns) adds atomics, a sampled product gathers from both sides.
class SparseCost {
 public:
  explicit SparseCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::SparseKernel& kernel) const;

 private:
  struct Legs {
    double matrix = 0, l2 = 0, dram = 0, wait = 0;
    double l2_bytes = 0, dram_bytes = 0;
  };
  Legs by_columns(const kernel::Launch& launch, const kernel::SparseKernel& kernel) const;
  Legs by_rows(const kernel::Launch& launch, const kernel::SparseKernel& kernel) const;

  const arch::GpuSpec& gpu_;
  double l2_, dram_;
  double fixed_s_, stream_share_, gather_share_, l2_kept_, imbalance_, overlap_;
  double element_bytes_, element_height_, element_exponent_, row_bytes_;
  double row_cycles_, unroll_, warps_per_sm_, atomic_factor_;
};

}  // namespace voltaic::cost
