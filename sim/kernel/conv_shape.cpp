// SPDX-License-Identifier: MIT
#include "sim/kernel/conv_shape.hpp"

#include <algorithm>
#include <cmath>

namespace voltaic::kernel {

namespace {

double d(std::int64_t v) {
  return static_cast<double>(v);
}

}  // namespace

double direct_mac(const ConvProblem& p) {
  return d(p.n) * spatial(p.out) * d(p.k) * d(p.c) / d(p.groups) * spatial(p.filter);
}

ImplicitGemm implicit_gemm(const ConvProblem& p) {
  const double c = d(p.c) / d(p.groups);
  const double k = d(p.k) / d(p.groups);
  const double filter = spatial(p.filter);
  switch (p.pass) {
    case ConvPass::dgrad: {
      const double m = filter == 1 ? d(p.n) * spatial(p.out) : std::ceil(d(p.n) * spatial(p.in) / spatial(p.stride));
      return {m, c, k * filter};
    }
    case ConvPass::wgrad: return {k, c * filter, d(p.n) * spatial(p.out)};
    case ConvPass::forward: break;
  }
  return {d(p.n) * spatial(p.out), k, c * filter};
}

ConvBytes conv_bytes(const ConvProblem& p) {
  const double e = p.element_bytes;
  return {e * d(p.n) * d(p.c) * spatial(p.in), e * d(p.n) * d(p.k) * spatial(p.out),
          e * d(p.k) * d(p.c) / d(p.groups) * spatial(p.filter), p.epilogue_bytes};
}

WinogradShape winograd_shape(const ConvProblem& p) {
  if (p.pass == ConvPass::dgrad) return {d(p.n), d(p.k), d(p.c), d(p.in[1]), d(p.in[2])};
  return {d(p.n), d(p.c), d(p.k), d(p.out[1]), d(p.out[2])};
}

bool is_plain_2d(const ConvProblem& p) {
  for (int i = 0; i < 3; ++i) {
    if (p.stride[i] != 1 || p.dilation[i] != 1) return false;
  }
  return p.groups == 1 && p.in[0] == 1 && p.filter[0] == 1 && p.out[0] == 1;
}

bool is_plain_filter(const ConvProblem& p, std::int64_t size) {
  return is_plain_2d(p) && p.filter[1] == size && p.filter[2] == size;
}

bool is_depthwise(const ConvProblem& p) {
  return p.groups > 1 && p.groups == p.c;
}

bool is_padded_beyond_filter(const ConvProblem& p) {
  for (int i = 0; i < 3; ++i) {
    if (p.pad[i] >= p.filter[i]) return true;
  }
  return false;
}

double winograd_outputs(const ConvProblem& p) {
  return p.filter[1] == 5 ? 5 : 4;
}

double winograd_points(const ConvProblem& p) {
  const double side = winograd_outputs(p) + d(p.filter[1]) - 1;
  return side * side;
}

double winograd_tiles(const WinogradShape& s, double outputs, double batch_multiple) {
  return std::ceil(s.n / batch_multiple) * batch_multiple * std::ceil(s.h / outputs) * std::ceil(s.w / outputs);
}

double fused_winograd_ctas(const WinogradShape& s, bool four_images) {
  const double rows = std::ceil(s.h / 8);
  if (four_images) return std::ceil(s.out / 32) * std::ceil(s.n / 4) * rows * std::ceil(s.w / 4);
  return std::ceil(s.out / 32) * s.n * rows * std::ceil(s.w / 16);
}

FftShape fft_shape(const ConvProblem& p, int points) {
  FftShape shape;
  const double n = points;
  const WinogradShape s = winograd_shape(p);
  const double outputs = std::max(1.0, n + 1 - d(p.filter[1]));
  shape.bins = n * (n / 2 + 1);
  shape.chunks = std::max(s.h, s.w) <= outputs ? 1 : std::ceil(s.h / outputs) * std::ceil(s.w / outputs);
  shape.batch_tile = p.n > 32 ? 64 : 32;
  return shape;
}

}  // namespace voltaic::kernel
