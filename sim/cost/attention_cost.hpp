// SPDX-License-Identifier: MIT
// Time of attention kernels.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class AttentionCost {
 public:
  explicit AttentionCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {}
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::AttentionKernel& kernel) const;

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
