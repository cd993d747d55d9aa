// SPDX-License-Identifier: MIT
// Convolutions of any shape, all three passes, on FMA lanes or tensor cores: time of each candidate from the shape.
#pragma once

#include <array>
#include <vector>

#include "arch/parameter_tree.hpp"
#include "sim/cost/conv_law.hpp"
#include "sim/cost/conv_tuning.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// A kernel that the library could take. Kernels without tiles, which make each output by itself on FMA lanes, are
/// direct_depthwise, and implicit_gemm for few channels and for groups.
struct ConvCandidate {
  kernel::ConvAlgorithm algorithm = kernel::ConvAlgorithm::implicit_precomp_gemm;
  int tile_m = 128, tile_n = 128;
  int split_k = 1;
};

class GeneralConv {
 public:
  explicit GeneralConv(const arch::ParameterTree& convolution);

  std::vector<ConvCandidate> candidates(const kernel::ConvProblem& problem, bool tensor_cores) const;
  ConvTime time(const kernel::ConvProblem& problem, const ConvCandidate& candidate, bool tensor_cores,
                const ConvMachine& machine) const;
  /// The library takes the smallest bias * time.
  double bias(const kernel::ConvProblem& problem, const ConvCandidate& candidate) const;

 private:
  const ConvTuning& tuning(const kernel::ConvProblem& problem, bool tensor_cores) const {
    return (tensor_cores ? tensor_ : simt_)[static_cast<std::size_t>(problem.pass)];
  }
  ConvTime direct_time(const kernel::ConvProblem& problem, const ConvMachine& machine) const;
  void add_products(const kernel::ConvProblem& problem, bool tensor_cores, std::vector<ConvCandidate>& out) const;
  void add_transforms(const kernel::ConvProblem& problem, std::vector<ConvCandidate>& out) const;

  std::array<ConvTuning, 3> simt_, tensor_;
  std::vector<ConvTile> nonfused_tiles_;
  double depthwise_efficiency_ = 1, depthwise_wgrad_ = 1, depthwise_reread_ = 1;
  double grouped_efficiency_ = 1, grouped_wgrad_ = 1;
  double direct_efficiency_ = 1;    ///< FP32 data gradient of first layers.
  double fallback_efficiency_ = 1;  ///< What tensor-core kernels do not take.
};

}  // namespace voltaic::cost
