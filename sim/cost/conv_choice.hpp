// SPDX-License-Identifier: MIT
// Which convolution algorithm the library takes: the smallest predicted time, with a bias per kernel where one was
// fitted.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/conv_general.hpp"
#include "sim/cost/conv_square.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// The kernel as lowering names it.
kernel::ConvKernel to_kernel(const SquareKernel& kernel, const kernel::ConvProblem& problem);

class ConvChoice {
 public:
  explicit ConvChoice(const arch::ResolvedGpu& gpu);
  kernel::ConvKernel operator()(const kernel::ConvProblem& problem) const;

 private:
  kernel::ConvKernel choose_square(const kernel::ConvProblem& problem) const;

  const arch::GpuSpec& gpu_;
  SquareConv square_;
  GeneralConv general_;
};

}  // namespace voltaic::cost
