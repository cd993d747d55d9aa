// SPDX-License-Identifier: MIT
// The matrix product and the tile counts behind a convolution, shared by its launches and its cost.
#pragma once

#include <cstdint>

#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

inline double spatial(const std::int64_t (&size)[3]) {
  return static_cast<double>(size[0]) * static_cast<double>(size[1]) * static_cast<double>(size[2]);
}

/// Multiply-adds of the convolution as defined; the same for all three passes.
double direct_mac(const ConvProblem& problem);

/// The implicit product of one group:
///     forward: m = N*out,           n = K/g,        k = C/g * filter
///     dgrad:   m = N*in / strides,  n = C/g,        k = K/g * filter (1x1: m = N*out, the rest of the image is zero)
///     wgrad:   m = K/g,             n = C/g*filter, k = N*out
struct ImplicitGemm {
  double m = 0, n = 0, k = 0;
};
ImplicitGemm implicit_gemm(const ConvProblem& problem);

/// Bytes of the tensors: input side, output side and filters, whichever of them the pass reads or writes.
struct ConvBytes {
  double input = 0, output = 0, weights = 0;
  double epilogue = 0;  ///< Beside the operands: a residual, and what a result in a wider type has more.
  double total() const { return input + output + weights + epilogue; }
};
ConvBytes conv_bytes(const ConvProblem& problem);

/// Winograd sees forward and dgrad alike: channels in, channels out, an image of outputs.
struct WinogradShape {
  double n = 0, in = 0, out = 0;  ///< Images, input and output channels.
  double h = 0, w = 0;            ///< Output image.
};
WinogradShape winograd_shape(const ConvProblem& problem);

/// 2-d, stride and dilation 1, one group: what Winograd and FFT kernels ask for.
bool is_plain_2d(const ConvProblem& problem);
/// Square filter of `size` on a plain 2-d convolution.
bool is_plain_filter(const ConvProblem& problem, std::int64_t size);
bool is_depthwise(const ConvProblem& problem);
/// Padding as wide as the filter: some outputs see nothing but zeros.
bool is_padded_beyond_filter(const ConvProblem& problem);

/// Outputs along one side of a tile of Winograd's non-fused kernels, F(4x4,3x3) or F(5x5,5x5), and points of a tile.
double winograd_outputs(const ConvProblem& problem);
double winograd_points(const ConvProblem& problem);

/// Tiles of Winograd's non-fused kernels. Later libraries pad the batch to a multiple of 16: exact on measured grids
/// [NEUDATA].
double winograd_tiles(const WinogradShape& shape, double outputs_per_tile, double batch_multiple = 16);

/// CTAs of the fused Winograd kernel: 32 filters by 128 outputs, which are 8 rows x 16 columns of one image, or 8 x 4
/// of 4.
double fused_winograd_ctas(const WinogradShape& shape, bool four_images);

/// Tiles of the FFT algorithm: transforms of n points square, chunks of n + 1 - filter outputs.
struct FftShape {
  double bins = 0, chunks = 1, batch_tile = 32;
};
FftShape fft_shape(const ConvProblem& problem, int points);

}  // namespace voltaic::kernel
