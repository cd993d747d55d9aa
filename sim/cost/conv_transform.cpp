// SPDX-License-Identifier: MIT
#include "sim/cost/conv_transform.hpp"

#include "sim/kernel/conv_shape.hpp"

namespace voltaic::cost {

namespace {

using kernel::ConvPass;
using kernel::ConvProblem;

// Prologues and fills: fitted with the law [DEEPBENCH].
constexpr double kFusedPrologue = 3400, kFusedFill = 1.1, kFusedTile = 16384;
constexpr double kNonfusedPrologue = 800, kFftPrologue = 2200, kFill = 1.2;

double missing(double bytes, const ConvMachine& m) {
  return bytes * conv_miss(bytes, m.l2, kLeastConvMiss);
}

}  // namespace

ConvTime fused_winograd_time(const ConvProblem& p, const ConvTuning& t, const ConvMachine& m) {
  constexpr double kOperandsPerChannel = 180 + 288;  // 18 x 10 inputs, 32 x 9 filter taps.
  const auto shape = kernel::winograd_shape(p);
  const auto bytes = kernel::conv_bytes(p);
  TileWaves w;
  w.ctas = kernel::fused_winograd_ctas(shape, false);
  w.k = shape.in;
  w.tile = kFusedTile;
  w.efficiency = t.fused;
  w.prologue = kFusedPrologue;
  w.fill = kFusedFill;
  ConvTime time = wave_time(w, t.fused_traffic * missing(bytes.total(), m), m);
  time.l2_bytes = bytes.total() + p.element_bytes * w.ctas * kOperandsPerChannel * shape.in;
  return time;
}

ConvTime nonfused_winograd_time(const ConvProblem& p, const ConvTile& tile, const ConvTuning& t, const ConvMachine& m) {
  const bool wgrad = p.pass == ConvPass::wgrad;
  const auto s = kernel::winograd_shape(p);
  const auto bytes = kernel::conv_bytes(p);
  const double tiles = kernel::winograd_tiles(s, kernel::winograd_outputs(p), 1);
  const double points = kernel::winograd_points(p);
  const double element = points * p.element_bytes;
  const double v = element * tiles * s.in;
  const double u = element * s.in * s.out;
  const double o = element * tiles * s.out;
  TileWaves w;
  w.ctas = points * std::ceil((wgrad ? s.in : tiles) / tile.m) * std::ceil(s.out / tile.n);
  w.k = wgrad ? tiles : s.in;
  w.tile = static_cast<double>(tile.m) * tile.n;
  w.efficiency = t.nonfused;
  w.prologue = kNonfusedPrologue;
  w.fill = kFill;
  const double work = v + u + o;
  ConvTime time = wave_time(w, missing(work, m), m);
  const bool dgrad = p.pass == ConvPass::dgrad;
  const double image = dgrad ? bytes.output : bytes.input;
  const double result = dgrad ? bytes.input : bytes.output;
  const double filter = p.filter[1] == 5 ? t.filter_transform_5x5 : t.filter_transform;
  const double extra = t.transform * ((image + v) * conv_miss(v, m.l2, kLeastConvMiss) +
                                      (o + result) * conv_miss(o, m.l2, kLeastConvMiss)) +
                       filter * missing(u, m);
  time.time += extra / m.dram + t.gap_s;
  time.dram_bytes += extra;
  time.l2_bytes = 2 * work + bytes.total() + p.element_bytes * w.ctas * (tile.m + tile.n) * w.k;
  return time;
}

ConvTime fft_tiles_time(const ConvProblem& p, const ConvTuning& t, const ConvMachine& m) {
  constexpr double kComplex = 8;          // Bytes of one complex number.
  constexpr double kMultiplications = 4;  // Of real numbers, for a complex one.
  const auto fft = kernel::fft_shape(p, kFftPoints);
  const auto s = kernel::winograd_shape(p);
  const auto bytes = kernel::conv_bytes(p);
  const bool wgrad = p.pass == ConvPass::wgrad;
  const double images = s.n * fft.chunks;
  const double spectra = kComplex * fft.bins * (images * (s.in + s.out) + s.in * s.out);
  TileWaves w;
  w.ctas = fft.bins * std::ceil((wgrad ? s.in : images) / kFftTile.m) * std::ceil(s.out / kFftTile.n);
  w.k = wgrad ? images : s.in;
  w.tile = kMultiplications * kFftTile.m * kFftTile.n;
  w.efficiency = t.fft;
  w.prologue = kFftPrologue;
  w.fill = kFill;
  ConvTime time = wave_time(w, missing(spectra, m), m);
  const double extra = t.fft_transform * (spectra + bytes.total());
  time.time += extra / m.dram + t.gap_s;
  time.dram_bytes += extra;
  time.l2_bytes = 3 * spectra + bytes.total();
  return time;
}

}  // namespace voltaic::cost
