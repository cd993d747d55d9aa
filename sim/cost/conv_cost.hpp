// SPDX-License-Identifier: MIT
// Time of conv kernels.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class ConvCost {
 public:
  explicit ConvCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {}
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::ConvKernel& kernel) const;

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
