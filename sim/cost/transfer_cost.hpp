// SPDX-License-Identifier: MIT
// Time of copies between host and device over PCIe.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// t = latency + bytes / (share * link rate); the share is higher for pinned than for pageable host memory.
/// Calibration section "transfer". The roofline is the link rate before protocol overhead.
class TransferCost {
 public:
  explicit TransferCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::TransferKernel& transfer) const;

 private:
  const arch::GpuSpec& gpu_;
  double pinned_share_, pageable_share_;
  Seconds latency_;
};

}  // namespace voltaic::cost
