// SPDX-License-Identifier: MIT
// Time of vector kernels: pointwise, softmax, norms, reductions, copies. They are bound by bytes, then by row latency,
// rarely by arithmetic.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/serving_cost.hpp"
#include "sim/cost/vector_law.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// Law of one launch, from its work, grid and kind:
///     B      compulsory bytes;  m = share of B that misses L2 (memory/cache.hpp)
///     mem    = (B ((1-m)/BL2 + m/BD) + re-reads) / efficiency
///     math   = elements * slots / (FP32 lanes * clock)
///     lat    = rows/(SMs r) (row + step columns/threads) / clock, or bytes over what the threads keep in flight
///     time   = fixed + (mem^p + math^p + lat^p)^(1/p)
/// Fitted: FP32 pointwise, softmax and layer norm of [NEUDATA]; other 2-byte types follow the same bytes. The kinds of
/// serving stacks have laws of their own (serving_cost.hpp).
class VectorCost {
 public:
  explicit VectorCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec), laws_(gpu.calibration), serving_(gpu) {}
  /// Inside a stream of other kernels, at the boost clock.
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const;
  /// Alone between idle gaps, as a timed eager call sees it: some boards clock down in between.
  kernel::KernelCost isolated(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const;

 private:
  kernel::KernelCost priced(const kernel::Launch& launch, const kernel::VectorKernel& kernel, double slow) const;

  const arch::GpuSpec& gpu_;
  VectorLaws laws_;
  ServingCost serving_;
};

}  // namespace voltaic::cost
