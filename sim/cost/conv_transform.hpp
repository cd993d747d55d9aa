// SPDX-License-Identifier: MIT
// Time of convolutions in another domain, Winograd's or Fourier's, for any pass.
#pragma once

#include "sim/cost/conv_law.hpp"
#include "sim/cost/conv_tuning.hpp"

namespace voltaic::cost {

/// F(2x2,3x3) in one kernel.
ConvTime fused_winograd_time(const kernel::ConvProblem& problem, const ConvTuning& tuning, const ConvMachine& machine);
/// Transforms of image and filter to V and U, 36 or 81 products to M, and back; for the filter gradient the products
/// are channels x channels over tiles.
ConvTime nonfused_winograd_time(const kernel::ConvProblem& problem, const ConvTile& tile, const ConvTuning& tuning,
                                const ConvMachine& machine);
/// Spectra of 32 x 32 points, one complex product per frequency.
ConvTime fft_tiles_time(const kernel::ConvProblem& problem, const ConvTuning& tuning, const ConvMachine& machine);

inline constexpr ConvTile kFftTile{32, 32};
inline constexpr int kFftPoints = 32;

}  // namespace voltaic::cost
