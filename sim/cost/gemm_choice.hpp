// SPDX-License-Identifier: MIT
// Which matrix kernel the library takes for a problem, and in how many parts it splits k.
// On CUDA cores the libraries compare whole waves of CTAs, not times: the score is linear in the logarithms of the
// waves that 1, 2, 4 and 8 CTAs per SM would need, in how full the last of each is, and in the shape. It was tuned on
// the library's own boards, so it sees the SMs of the calibration's board, and a what-if on bandwidth keeps the kernel:
// more of it is not slower. Only a kernel whose waves take longer on this GPU's SMs than the
// quickest by more than the guard is passed over. Tensor-core products: see tensor_choice.hpp.
#pragma once

#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/gemm_simt.hpp"
#include "sim/cost/gemm_tensor.hpp"
#include "sim/cost/tensor_choice.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// The kernel as lowering names it.
kernel::GemmTile to_tile(const SimtKernel& kernel, double split);

/// Terms of the score. Shared by all kernels (calibration "choice.weights", in this order), with x CTAs per SM and z
/// parts of k: last wave full at q = 1 (x / ceil x), share of the tiles that is output (ln), k per part (ln), last wave
/// full at the kernel's residency, min(x,1), min(x,4), last wave full at q = 2, 4, 8; where k is split: 1, ln z, ln k,
/// ln z ln k, ln mn, ln z ln mn, added in place, in place ln z, ln x, ln z ln x, min(x/z,1), min(x/z,4). Per kernel
/// ("kernels.NAME.score"): 1, ln k, ln m, ln n, ln batch, ln ceil(x/q) for q = 1, 2, 4, 8, last wave full at q = 1,
/// then one step for each of "choice.k_steps" that k reaches.
class SimtChoice {
 public:
  static constexpr std::size_t kShared = 21, kOwn = 10;

  explicit SimtChoice(const arch::ParameterTree& tree);
  kernel::GemmTile operator()(const SimtLaw& law, const kernel::GemmProblem& problem, const SimtMachine& machine) const;

  /// True where the library is known to take one kernel whatever the shape.
  bool fixed() const { return weights_.empty(); }
  std::size_t own_terms() const { return kOwn + k_steps_.size(); }
  /// The terms of one candidate, for fits: `shared` holds kShared, `own` own_terms().
  void terms(const SimtKernel& kernel, const SimtProblem& problem, double split, float* shared, float* own) const;
  /// True where parts of k stay long enough to be worth a CTA.
  static bool may_split(const SimtProblem& problem, double split) { return split <= 1 || problem.k / split >= 16; }

 private:
  /// The quickest by the law: for layouts in which no choice was observed (the score knows dense layers with both
  /// operands along k, and batched products).
  static kernel::GemmTile quickest(const SimtLaw& law, const SimtProblem& problem, const SimtMachine& machine);
  std::vector<double> weights_;  ///< Shared terms; empty: fixed kernels.
  std::vector<double> k_steps_;
  std::string fixed_batched_, fixed_single_;
  double sms_ = 0;
  double guard_ = 0;        ///< 0: none.
  double guard_fixed_ = 0;  ///< Seconds that every candidate takes beside its waves.
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
  std::vector<TensorChoice> tensor_rules_;  ///< By law.
};

}  // namespace voltaic::cost
