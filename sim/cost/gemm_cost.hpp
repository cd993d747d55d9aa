// SPDX-License-Identifier: MIT
// Time of matrix products: sends a kernel to the law of its unit, CUDA cores or tensor cores.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class GemmCost {
 public:
  explicit GemmCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {}
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::GemmKernel& kernel) const;

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
