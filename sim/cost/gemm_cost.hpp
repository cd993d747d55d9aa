// SPDX-License-Identifier: MIT
// Time of matrix products: sends a kernel to the law of its unit, CUDA cores or tensor cores.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/gemm_simt.hpp"
#include "sim/cost/gemm_tensor.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class GemmCost {
 public:
  explicit GemmCost(const arch::ResolvedGpu& gpu);
  /// `isolated`: see kernel::CostModel.
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::GemmKernel& kernel,
                                bool isolated = false) const;

 private:
  const arch::GpuSpec& gpu_;
  SimtModel simt_;
  TensorModel tensor_;
};

}  // namespace voltaic::cost
