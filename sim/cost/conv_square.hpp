// SPDX-License-Identifier: MIT
// FP32 forward convolutions with a 3x3 filter, stride 1: time of each cuDNN kernel from the shape, fitted with kernel
// names known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arch/parameter_tree.hpp"
#include "sim/cost/conv_law.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// One measured kernel: its algorithm, its tile and its constants (calibration convolution.square).
struct SquareKernel {
  std::string name;
  kernel::ConvAlgorithm algorithm{};
  int tile_m = 0, tile_n = 0;
  int points = 0;  ///< FFT only: 16 or 32.
  int images = 1;  ///< Images that one CTA works on: the batch must be a multiple.
  double efficiency = 1;
  double bias = 1;  ///< The library takes the smallest bias * time.
  double prologue = 0, fill = 1;
  double input = 1, output = 1;  ///< Times the image crosses DRAM.
  double reread = 0;             ///< Share of the CTAs' operand reads that leaves L2.
  double copies = 0;             ///< Extra passes over the data: im2col, layout changes.
  double filter = 0;             ///< Cost of the filter transform in passes over its bytes.
  double transform = 0;          ///< Non-fused: share of the products written and read back.
  double l2_share = 0;           ///< Transformed bytes that cost as if they came from DRAM, L2 hits included.
  double gap = 0;                ///< Seconds between the launches of one chunk.
  double ragged_filter = 0;      ///< Non-fused: more passes of the filter transform whose rows start inside a sector.
  double ragged_l2 = 0;          ///< L2 capacities of transformed filters that stay mergeable; 0: none.
  double filter_wait = 0;        ///< Fused: passes over filters beyond L2 that no CTA can hide.
  double ragged_output = 0;      ///< Fused: more passes over an output whose rows are no whole sectors.
};

class SquareConv {
 public:
  /// `convolution`: the calibration section; absent "square" gives a law that applies to nothing.
  explicit SquareConv(const arch::ParameterTree& convolution);

  bool applies(const kernel::ConvProblem& problem) const;
  const std::vector<SquareKernel>& kernels() const { return kernels_; }
  const SquareKernel* find(std::string_view name) const;
  /// 16-point FFTs are for images of up to 14 pixels, 32-point ones for larger images; the batch must fill
  /// a CTA's images.
  bool takes(const kernel::ConvProblem& problem, const SquareKernel& kernel) const;
  ConvTime time(const kernel::ConvProblem& problem, const SquareKernel& kernel, const ConvMachine& machine) const;
  /// Bandwidth over arithmetic for which the library was tuned, in bytes per FMA: its choice does not follow --set.
  double tuned_balance() const { return balance_; }

 private:
  std::vector<SquareKernel> kernels_;
  double balance_ = 0;
};

}  // namespace voltaic::cost
