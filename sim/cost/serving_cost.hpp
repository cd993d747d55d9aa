// SPDX-License-Identifier: MIT
// Vector kernels on two-byte types as serving stacks launch them: fused norms, rotary embeddings, gated activations,
// residual additions, table lookups.
#pragma once

#include <array>

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"
#include "sim/memory/cache.hpp"

namespace voltaic::cost {

/// One kernel's constants; cycles are SM cycles at the boost clock. What each was fitted on stands in section
/// "serving".
struct ServingLaw {
  double fixed_cycles = 0;      ///< Launch ramp and drain.
  double l2_share = 0.6;        ///< Share of the L2 bandwidth of the spec.
  memory::CacheRegion region;   ///< Where footprints leave L2.
  double row_cycles = 0;        ///< Latency of one row beside its columns.
  double step_cycles = 0;       ///< Latency per pass of the CTA's threads; of one round of a large lookup.
  double warp_cycles = 0;       ///< One warp-wide load with its store holds the SM's load/store path this long.
  double warp_miss_cycles = 0;  ///< More where all of it comes from DRAM.
  double element_slots = 0;     ///< FP32-lane issue slots per element: index arithmetic of a large lookup.
  double exponent = 4;          ///< p of the norm over the legs.
};

/// With B the bytes of rows and m = the share of them that misses L2 (memory/cache.hpp):
///     mem  = B ((1-m)/BL2 + m/BD)
///     lat  = ceil(rows/(SMs r)) (row + step passes) / clock        r = CTAs that an SM holds by its threads
///     iss  = max(1, rows/SMs) warp passes (warp + miss m) / clock
///     time = fixed/clock + (mem^p + lat^p + iss^p)^(1/p)
/// Scalar two-byte loads hold the load/store path of an SM long enough that these kernels stop at 35 to 60 % of DRAM
/// bandwidth; the cycles scale with clock and SMs alone, so they carry over between boards. Lookups are two kernels:
/// one in which every CTA walks over all indices, and one whose capped grid keeps 1024 elements per SM in flight:
///     lat  = rows ceil(n/(1024 SMs)) row / clock
///     lat  = max(1, rows n/(1024 SMs)) (step + 1024 slots/lanes) / clock
/// Fitted on [VIDUR]: FP16 on A100, A40, H100. Holds from one token to some ten thousand, widths of 128 to 28672.
class ServingCost {
 public:
  explicit ServingCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const;

 private:
  static constexpr auto kFirst = kernel::VectorKind::half_elementwise;
  static constexpr auto kLast = kernel::VectorKind::index_select_large;
  static constexpr std::size_t kKinds = static_cast<std::size_t>(kLast) - static_cast<std::size_t>(kFirst) + 1;

  const ServingLaw& law(kernel::VectorKind kind) const;
  BytesPerSecond stream(kernel::VectorKind kind) const;
  double latency_cycles(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const;
  double issue_cycles(const kernel::VectorKernel& kernel, double miss) const;

  const arch::GpuSpec& gpu_;
  double sms_;
  double stream_share_ = 1;      ///< Of the sustained stream of the spec.
  double gddr_mixed_share_ = 1;  ///< Left to pointwise kernels where the memory turns round between reads and writes.
  std::array<ServingLaw, kKinds> laws_;
};

}  // namespace voltaic::cost
