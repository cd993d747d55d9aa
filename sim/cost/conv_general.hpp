// SPDX-License-Identifier: MIT
// Convolutions of any shape, all three passes, on FMA lanes or tensor cores: time of each candidate from the shape.
#pragma once

#include <array>
#include <vector>

#include "arch/parameter_tree.hpp"
#include "sim/cost/conv_law.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// Constants of one pass (calibration convolution.simt.PASS and convolution.tensor.PASS).
struct ConvTuning {
  double efficiency = 1, tile_power = 0;  ///< Main loop's share of the lanes; it falls as (tile/reference)^power.
  double prologue = 0, fill = 1;
  double traffic = 1;                       ///< Passes over the tensors that miss L2.
  double layout = 0;                        ///< NCHW to NHWC and back, in passes over input and output.
  double few_channels = 1;                  ///< Slowdown of first layers, with fewer channels than a vector holds.
  double reduce_s = 0, reduce_traffic = 0;  ///< Split k: the kernel that adds the parts.
  double stride = 1, stride_1x1 = 1;        ///< dgrad: work on the zeros between strided outputs.
  double fused = 0, nonfused = 0;           ///< Efficiency of the Winograd kernels; 0: none.
  double filter_transform = 0, gap_s = 0;
};

/// A kernel that the library could take.
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

 private:
  const ConvTuning& tuning(const kernel::ConvProblem& problem, bool tensor_cores) const {
    return (tensor_cores ? tensor_ : simt_)[static_cast<std::size_t>(problem.pass)];
  }
  std::array<ConvTuning, 3> simt_, tensor_;
  std::vector<ConvCandidate> nonfused_;
  double depthwise_efficiency_ = 1, depthwise_wgrad_ = 1, depthwise_reread_ = 1;
  double direct_efficiency_ = 1;
};

}  // namespace voltaic::cost
