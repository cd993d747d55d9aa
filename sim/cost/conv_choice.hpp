// SPDX-License-Identifier: MIT
// Which convolution algorithm the library takes.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

class ConvChoice {
 public:
  explicit ConvChoice(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {}
  kernel::ConvKernel operator()(const kernel::ConvProblem& problem) const;

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
