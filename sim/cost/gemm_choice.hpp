// SPDX-License-Identifier: MIT
// Which matrix kernel the library takes for a problem.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

class GemmChoice {
 public:
  explicit GemmChoice(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {}
  kernel::GemmTile operator()(const kernel::GemmProblem& problem) const;

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
