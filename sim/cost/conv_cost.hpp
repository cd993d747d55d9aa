// SPDX-License-Identifier: MIT
// Time of convolution kernels.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/conv_general.hpp"
#include "sim/cost/conv_square.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class ConvCost {
 public:
  explicit ConvCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::ConvKernel& kernel) const;

 private:
  ConvTime time_of(const kernel::ConvKernel& kernel, const ConvMachine& machine) const;

  const arch::GpuSpec& gpu_;
  SquareConv square_;
  GeneralConv general_;
  double floor_s_;  ///< No kernel is shorter.
};

}  // namespace voltaic::cost
