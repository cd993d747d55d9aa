// SPDX-License-Identifier: MIT
// Time of fused attention kernels: prompts by scheduling their CTAs, decoding by latency and cache traffic.
#pragma once

#include <array>
#include <optional>

#include "arch/loader.hpp"
#include "sim/cost/attention_schedule.hpp"
#include "sim/cost/attention_tuning.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class AttentionCost {
 public:
  explicit AttentionCost(const arch::ResolvedGpu& gpu);
  /// At the boost clock. Throws UnsupportedError for a library that nobody timed on this kind of GPU.
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::AttentionKernel& kernel) const;

 private:
  struct Legs {
    double time = 0, math = 0, dram = 0, bytes = 0, l2_bytes = 0;
  };
  struct Library {
    std::optional<PromptTuning> prompt, backward;
    std::optional<DecodeTuning> decode;
    std::optional<AppendTuning> append;
  };
  Legs prompt(const kernel::AttentionKernel& kernel) const;
  Legs backward(const kernel::AttentionKernel& kernel, const kernel::Launch& launch) const;
  Legs decode(const kernel::AttentionKernel& kernel) const;
  Legs append(const kernel::AttentionKernel& kernel) const;
  Legs legs(const kernel::AttentionKernel& kernel, const kernel::Launch& launch) const;

  const Library& library(const kernel::AttentionKernel& kernel) const;
  template <class Tuning>
  const Tuning& known(const std::optional<Tuning>& tuning, const kernel::AttentionKernel& kernel) const {
    if (!tuning) refuse(kernel);
    return *tuning;
  }
  [[noreturn]] void refuse(const kernel::AttentionKernel& kernel) const;
  AttentionSchedule schedule(const PromptTuning& tuning, bool split_variant, int resident) const;
  double decode_latency(const DecodeTuning& tuning, const kernel::AttentionKernel& kernel) const;
  /// Share of warm tensors that L2 lost since.
  double prompt_miss(const PromptTuning& tuning, const kernel::AttentionKernel& kernel) const;
  double decode_miss(const DecodeTuning& tuning, const kernel::AttentionKernel& kernel) const;

  double sm_rate(const kernel::AttentionKernel& kernel) const;  ///< Peak FLOP/s of one SM on the unit that multiplies.
  double sms() const;
  double per_cycle(double bytes, double bytes_per_cycle_per_sm) const;  ///< Seconds; 0 for a rate of 0.
  double dram_seconds(double bytes, double share) const;

  const arch::GpuSpec& gpu_;
  std::array<Library, 16> libraries_;  ///< By AttentionLibrary.
  Library lanes_;                      ///< Without tensor cores.
};

}  // namespace voltaic::cost
