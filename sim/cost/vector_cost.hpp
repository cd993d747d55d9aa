// SPDX-License-Identifier: MIT
// Time of vector kernels.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class VectorCost {
 public:
  explicit VectorCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {}
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const;

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
