// SPDX-License-Identifier: MIT
#include "sim/kernel/workspace.hpp"

#include <algorithm>
#include <cmath>

#include "sim/kernel/conv_shape.hpp"

namespace voltaic::kernel {
namespace {

constexpr double kRealBytes = 4;     // Transforms and partial sums are kept in fp32.
constexpr double kComplexBytes = 8;  // So are both halves of a spectrum.

double separate_winograd(const ConvProblem& p) {
  const WinogradShape s = winograd_shape(p);
  const double tiles = winograd_tiles(s, winograd_outputs(p));
  return kRealBytes * winograd_points(p) * (s.in * s.out + tiles * (s.in + s.out));
}

/// F(2x2, 3x3): 4x4 points of each filter.
double fused_winograd(const ConvProblem& p) {
  const WinogradShape s = winograd_shape(p);
  constexpr double kPoints = 16;
  return kRealBytes * kPoints * s.in * s.out;
}

double spectra(const ConvKernel& kernel) {
  const ConvProblem& p = kernel.problem;
  const FftShape fft = fft_shape(p, kernel.tile.name == "fft16" ? 16 : 32);
  const auto n = static_cast<double>(p.n);
  const auto c = static_cast<double>(p.c);
  const auto k = static_cast<double>(p.k);
  return kComplexBytes * fft.bins * (fft.chunks * n * (c + k) + c * k);
}

/// Library kernels for tensor cores read channels last: other tensors are turned around first, results afterwards.
double turned_copies(const ConvKernel& kernel) {
  const bool turned = kernel.tile.tensor_cores && !kernel.problem.channels_last;
  return turned ? conv_bytes(kernel.problem).total() : 0;
}

/// Splits of forward and data-gradient products are taken to add into their result, which is as large as an activation:
/// a copy of it for each split would be more than the library asks for.
double partial_sums(const ConvKernel& kernel) {
  const ConvProblem& p = kernel.problem;
  if (p.pass != ConvPass::wgrad || kernel.tile.split_k < 2) return 0;
  const ImplicitGemm gemm = implicit_gemm(p);
  return kRealBytes * static_cast<double>(kernel.tile.split_k) * static_cast<double>(p.groups) * gemm.m * gemm.n;
}

double convolution(const ConvKernel& kernel) {
  switch (kernel.algorithm) {
    case ConvAlgorithm::winograd_nonfused: return separate_winograd(kernel.problem);
    case ConvAlgorithm::winograd_fused: return fused_winograd(kernel.problem);
    case ConvAlgorithm::fft: return spectra(kernel);
    case ConvAlgorithm::implicit_gemm:
    case ConvAlgorithm::implicit_precomp_gemm: return turned_copies(kernel) + partial_sums(kernel);
    case ConvAlgorithm::direct_depthwise: return 0;
  }
  return 0;
}

}  // namespace

Bytes workspace(const Launch& launch) {
  const auto* kernel = std::get_if<ConvKernel>(&launch.detail);
  return Bytes{kernel == nullptr ? 0 : std::max(0.0, convolution(*kernel))};
}

}  // namespace voltaic::kernel
