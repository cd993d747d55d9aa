// SPDX-License-Identifier: MIT
// Which matrix kernel the library takes for a problem, and in how many parts it splits k.
// The library follows a fixed score, tuned on its flagship boards; it does not know the memory, the clock or the power
// limit of the board at hand. So the score sees this GPU's SMs and lanes, and the reference board's memory and clock: a
// what-if on bandwidth or clock keeps the kernel, and more bandwidth is never slower.
#pragma once

#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/gemm_simt.hpp"
#include "sim/cost/gemm_tensor.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// Score of the kernels on CUDA cores: linear in logarithms, highest wins.
class SimtChoice {
 public:
  explicit SimtChoice(const arch::ParameterTree& tree);
  kernel::GemmTile operator()(const SimtLaw& law, const kernel::GemmProblem& problem, SimtMachine machine) const;

 private:
  double score(const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& problem, double split,
               const SimtMachine& machine) const;

  std::vector<double> weights_;      ///< w1..w9; empty: no score, fixed kernels.
  std::vector<double> split_;        ///< s1..s4
  std::vector<double> split_shape_;  ///< q1..q4
  std::vector<double> splits_;
  std::string fixed_batched_, fixed_single_;
  double launch_ = 0, clock_ = 0, bandwidth_ = 0, l2_ = 0;
};

class GemmChoice {
 public:
  explicit GemmChoice(const arch::ResolvedGpu& gpu);
  /// Throws UnsupportedError when the GPU multiplies this type on neither unit, naming what it has.
  kernel::GemmTile operator()(const kernel::GemmProblem& problem) const;

 private:
  kernel::GemmTile tensor_tile(const kernel::GemmProblem& problem) const;

  const arch::GpuSpec& gpu_;
  SimtModel simt_;
  SimtChoice linear_, batched_;
  TensorModel tensor_;
};

}  // namespace voltaic::cost
