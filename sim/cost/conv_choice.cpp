// SPDX-License-Identifier: MIT
#include "sim/cost/conv_choice.hpp"

namespace voltaic::cost {

kernel::ConvKernel ConvChoice::operator()(const kernel::ConvProblem& problem) const {
  kernel::ConvKernel kernel;
  kernel.problem = problem;
  kernel.tile.tensor_cores = gpu_.has_tensor_path(problem.math);
  return kernel;
}

}  // namespace voltaic::cost
