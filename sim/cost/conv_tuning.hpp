// SPDX-License-Identifier: MIT
// Constants of convolutions of any shape: calibration convolution.simt.PASS and convolution.tensor.PASS.
#pragma once

#include <string>
#include <vector>

#include "arch/parameter_tree.hpp"

namespace voltaic::cost {

struct ConvTile {
  int m = 0, n = 0;
};

/// Constants of one pass on FMA lanes or tensor cores.
struct ConvTuning {
  std::vector<ConvTile> tiles;
  double efficiency = 1, tile_power = 0;  ///< Main loop's share of the lanes; it falls as (tile/reference)^power.
  double l2_share = 0;                    ///< Share of L2's rate at which operands arrive, 0: as the tile power has it.
  double prologue = 0, fill = 1;
  double traffic = 1;                       ///< Passes over the tensors that miss L2.
  double layout = 0;                        ///< NCHW to NHWC and back, in passes over input and output.
  double channel_bytes = 16;                ///< Tensor cores: the channels under one filter tap are padded to this.
  bool splits = false;                      ///< Kernels that share a long sum among CTAs ...
  double reduce_s = 0, reduce_traffic = 0;  ///< ... and the kernel that adds the parts.
  double stride = 1, stride_1x1 = 1;        ///< dgrad: work on the zeros between strided outputs.
  double scatter = 0;                       ///< dgrad of a strided 1x1 filter: passes over the sparse result.
  double fused = 0, fused_traffic = 1;      ///< Winograd in one kernel: efficiency (0: none) and passes.
  double nonfused = 0;                      ///< Winograd in several kernels: efficiency of the products, 0: none.
  double transform = 1;                     ///< Passes over transformed images.
  double filter_transform = 0;              ///< Passes over transformed filters ...
  double filter_transform_5x5 = 0;          ///< ... and over those of 5x5.
  double nonfused_bias = 1;                 ///< The library takes them where bias * time is least.
  double gap_s = 0;                         ///< Seconds between the launches.
  double fft = 0, fft_transform = 1;        ///< FFT tiles: efficiency of complex products, 0: none; passes.
};
ConvTuning read_conv_tuning(const arch::ParameterTree& section, const std::string& pass);

}  // namespace voltaic::cost
