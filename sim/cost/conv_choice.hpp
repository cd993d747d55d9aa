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

  /// A kernel that could take a 3x3 problem, with the seconds on which the library is taken to decide, without bias.
  struct Candidate {
    const SquareKernel* kernel = nullptr;
    double seconds = 0;
  };
  std::vector<Candidate> square_candidates(const kernel::ConvProblem& problem) const;
  bool is_square(const kernel::ConvProblem& problem) const { return square_.applies(problem); }

 private:
  kernel::ConvKernel choose_square(const kernel::ConvProblem& problem) const;

  const arch::GpuSpec& gpu_;
  SquareConv square_;
  GeneralConv general_;
};

}  // namespace voltaic::cost
