// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_choice.hpp"

namespace voltaic::cost {

kernel::GemmTile GemmChoice::operator()(const kernel::GemmProblem& problem) const {
  kernel::GemmTile tile;
  tile.name = "128x128";
  tile.tensor_cores = gpu_.has_tensor_path(problem.math);
  return tile;
}

}  // namespace voltaic::cost
