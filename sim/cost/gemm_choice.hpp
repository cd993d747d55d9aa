// SPDX-License-Identifier: MIT
// Which matrix kernel the library takes for a problem, and in how many parts it splits k.
// The library follows a fixed score, tuned on its boards; it does not know their memory, clock or power limit. So the
// score sees the reference board of the calibration, and a what-if on bandwidth, clock or SMs keeps the kernel: more of
// them is not slower. Only a kernel that this GPU's SMs would make slower than the fastest by more than the guard is
// passed over.
#pragma once

#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/gemm_simt.hpp"
#include "sim/cost/gemm_tensor.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// The kernel as lowering names it.
kernel::GemmTile to_tile(const SimtKernel& kernel, double split);

/// Score of the kernels on CUDA cores: linear in logarithms, highest wins.
class SimtChoice {
 public:
  explicit SimtChoice(const arch::ParameterTree& tree);
  kernel::GemmTile operator()(const SimtLaw& law, const kernel::GemmProblem& problem, SimtMachine machine) const;

 private:
  struct Logs;
  double score(const SimtKernel& kernel, const SimtProblem& problem, double split, bool apart, double seconds,
               double ctas, double sms, const Logs& logs) const;

  std::vector<double> weights_;      ///< w1..w9; empty: no score, fixed kernels.
  std::vector<double> split_;        ///< s1..s4
  std::vector<double> split_shape_;  ///< q1..q4
  std::vector<double> splits_;
  std::string fixed_batched_, fixed_single_;
  double launch_ = 0, clock_ = 0, bandwidth_ = 0, l2_ = 0, sms_ = 0;
  double guard_ = 0;  ///< Kernels slower than the fastest by more than this factor are never taken.
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
