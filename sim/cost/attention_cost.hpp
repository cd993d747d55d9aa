// SPDX-License-Identifier: MIT
// Time of fused attention kernels: prompts by scheduling their CTAs, decoding by latency and cache traffic.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/attention_schedule.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// Constants of a kernel that works through tiles (calibration attention.flash and its siblings).
struct AttentionTuning {
  double alone = 0.5, full = 0.7;  ///< Share of an SM's peak of a lone CTA and of a full SM.
  double stream_rows = 0;          ///< Cost of streaming keys and values, in query rows.
  double softmax_dims = 0;         ///< Cost of exp, maximum and rescaling, in head dimensions.
  double wait_s = 0;               ///< Latency of a CTA before it works.
  double merge_s = 0;              ///< Merging split keys.
  double bandwidth_share = 0.8;    ///< Of the DRAM pins.
  int resident = 2;
  bool longest_first = false;
};

/// Constants of decoding (calibration attention.decode).
struct DecodeTuning {
  double fixed_s = 0, group_s = 0, transpose_s = 0;  ///< Kernel start; the copies around grouped heads.
  double merge_s = 0, merge_per_split_s = 0;
  double alone_s = 0, shared_s = 0;         ///< Per key, of a lone CTA and of each further one on its SM.
  double cta_s = 0, group_cta_s = 0;        ///< Per further CTA on an SM, and for 64 grouped heads.
  double dim_power = 1, cta_dim_power = 1;  ///< Growth with head_dim/128.
  double bandwidth_share = 0.8;
  double l2_bytes_per_cycle = 17;  ///< Per SM, for a cache that stayed in L2.
  double resident_from = 0.5,
         resident_to = 1;  ///< Cache over L2: stays whole below the first, leaves above the second.
  double power = 2;
  double clock = 1.4e9;  ///< SM clock of the board the latencies were fitted on.
};

class AttentionCost {
 public:
  explicit AttentionCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::AttentionKernel& kernel) const;
  /// Decoding when the same cache was read just before, as in a replayed measurement: it may still be in L2.
  Seconds warm_decode_time(const kernel::AttentionKernel& kernel) const;

 private:
  struct Legs {
    double time = 0, math = 0, dram = 0, bytes = 0, l2_bytes = 0;
  };
  Legs prompt(const kernel::AttentionKernel& kernel, const kernel::Launch& launch) const;
  Legs backward(const kernel::AttentionKernel& kernel, const kernel::Launch& launch) const;
  Legs decode(const kernel::AttentionKernel& kernel, double miss) const;
  const AttentionTuning& tuning(const kernel::AttentionKernel& kernel, kernel::AttentionLibrary library) const;
  double sm_rate(const kernel::AttentionKernel& kernel) const;  ///< Peak FLOP/s of one SM on the unit that multiplies.

  const arch::GpuSpec& gpu_;
  AttentionTuning flash_, efficient_, fma_, backward_, backward_efficient_;
  DecodeTuning decode_;
};

}  // namespace voltaic::cost
