// SPDX-License-Identifier: MIT
#include "sim/cost/conv_square.hpp"

#include "arch/units/error.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::cost {

namespace {

using kernel::ConvAlgorithm;
using kernel::ConvProblem;

constexpr double kSector = 32;  ///< Bytes that DRAM and L2 move at least.

ConvAlgorithm parse_algorithm(const arch::ParameterTree& tree) {
  const std::string word = tree.word("algorithm");
  if (word == "precomp") return ConvAlgorithm::implicit_precomp_gemm;
  if (word == "implicit") return ConvAlgorithm::implicit_gemm;
  if (word == "fused") return ConvAlgorithm::winograd_fused;
  if (word == "nonfused") return ConvAlgorithm::winograd_nonfused;
  if (word == "fft") return ConvAlgorithm::fft;
  throw ConfigError(tree.file(), "algorithm",
                    "expected precomp, implicit, fused, nonfused or fft, got " + one_line(word));
}

/// Constants of a family, with what a single kernel replaces.
SquareKernel read_kernel(const arch::ParameterTree& section, const std::string& name) {
  const auto own = section.at("kernels." + name);
  const auto family = section.at("families." + own.word("family"));
  const auto value = [&](const char* key, double fallback) {
    return own.has(key) ? own.number(key) : family.number_or(key, fallback);
  };
  SquareKernel k;
  k.name = name;
  k.algorithm = parse_algorithm(family);
  k.tile_m = static_cast<int>(value("tile_m", 128));
  k.tile_n = static_cast<int>(value("tile_n", 64));
  k.points = static_cast<int>(value("points", 0));
  k.images = std::max(1, static_cast<int>(value("images_per_cta", 1)));
  k.efficiency = own.number("efficiency");
  k.bias = std::exp(own.number("choice_bias"));
  k.prologue = value("prologue_cycles", 0);
  k.fill = value("fill_ctas", 1);
  k.input = value("input_passes", 1);
  k.output = value("output_passes", 1);
  k.reread = value("reread", 0);
  k.copies = value("copy_passes", 0);
  k.filter = value("filter_passes", 0);
  k.transform = value("transform_passes", 0);
  k.l2_share = value("l2_cost_share", 0);
  k.gap = value("gap_s", 0);
  k.ragged_filter = value("ragged_filter_passes", 0);
  k.ragged_l2 = value("ragged_l2_capacities", 0);
  k.filter_wait = value("filter_wait_passes", 0);
  k.ragged_output = value("ragged_output_passes", 0);
  return k;
}

TileWaves waves_of(const SquareKernel& k, double ctas, double depth, double tile) {
  TileWaves w;
  w.ctas = ctas;
  w.k = depth;
  w.tile = tile;
  w.efficiency = k.efficiency;
  w.prologue = k.prologue;
  w.fill = k.fill;
  return w;
}

/// Input, output and filter bytes with their footprint's miss rate.
struct Traffic {
  double in, out, weights, miss, miss_inputs;
};
Traffic traffic_of(const ConvProblem& p, const ConvMachine& m) {
  const auto bytes = kernel::conv_bytes(p);
  return {bytes.input, bytes.output + bytes.epilogue, bytes.weights, conv_miss(bytes.total(), m.l2),
          conv_miss(bytes.input + bytes.weights, m.l2)};
}

/// Implicit and explicit products: bytes = dram(input_passes I + output_passes O + W) +
/// reread 4 C (tm + tn) k miss(I + W).
ConvTime implicit_time(const ConvProblem& p, const SquareKernel& k, const ConvMachine& m) {
  const auto gemm = kernel::implicit_gemm(p);
  const Traffic t = traffic_of(p, m);
  const double ctas = std::ceil(gemm.m / k.tile_m) * std::ceil(gemm.n / k.tile_n);
  const double operands = p.element_bytes * ctas * (k.tile_m + k.tile_n) * gemm.k;
  const double bytes = t.miss * (k.input * t.in + k.output * t.out + t.weights) + k.reread * operands * t.miss_inputs;
  ConvTime time = wave_time(waves_of(k, ctas, gemm.k, double(k.tile_m) * k.tile_n), bytes, m);
  time.l2_bytes = operands + t.out;
  // im2col writes and reads the image nine times over and leaves it once.
  if (k.copies > 0) {
    const double copied = k.copies * 19 * t.in;
    time.time += copied / m.dram;
    time.dram_bytes += copied;
    time.l2_bytes += copied;
  }
  return time;
}

/// Fused F(2x2,3x3): one CTA makes 32 filters x 32 tiles with 16 products each. Filters arrive in pieces of 36 bytes;
/// where they come from DRAM the few CTAs that share them wait. Output rows that are no whole 32-byte sectors are
/// written in parts.
ConvTime fused_time(const ConvProblem& p, const SquareKernel& k, const ConvMachine& m) {
  constexpr double kTile = 32 * 16 * 32;
  constexpr double kOperandsPerChannel = 180 + 288;  // 18 x 10 inputs, 32 x 9 filter taps.
  const auto shape = kernel::winograd_shape(p);
  const Traffic t = traffic_of(p, m);
  const double ctas = kernel::fused_winograd_ctas(shape, k.images == 4);
  const double operands = p.element_bytes * ctas * kOperandsPerChannel * shape.in;
  const bool whole_rows = std::fmod(static_cast<double>(p.out[2]) * p.element_bytes, kSector) == 0;
  const double stores = k.output + (whole_rows ? 0 : k.ragged_output);
  const double bytes = t.miss * (k.input * t.in + stores * t.out + t.weights) + k.reread * operands * t.miss_inputs;
  ConvTime time = wave_time(waves_of(k, ctas, shape.in, kTile), bytes, m);
  const double waited = k.filter_wait * t.weights * conv_miss(t.weights, m.l2);
  time.time += waited / m.dram;
  time.dram_bytes += waited;
  time.l2_bytes = operands + t.out;
  return time;
}

/// Share of a row's writes that are partial sectors: rows of `bytes` one after another start on a sector, on half of
/// one, or anywhere.
double raggedness(double bytes) {
  if (std::fmod(bytes, kSector) == 0) return 0;
  return std::fmod(bytes, kSector / 2) == 0 ? 0.5 : 1;
}

/// Non-fused F(4x4,3x3): transforms of image and filter to V and U, 36 products to M, and back.
ConvTime nonfused_time(const ConvProblem& p, const SquareKernel& k, const ConvMachine& m) {
  constexpr double kProducts = 36;
  const auto s = kernel::winograd_shape(p);
  const Traffic t = traffic_of(p, m);
  const double tiles = kernel::winograd_tiles(s, 4);
  const double element = kProducts * p.element_bytes;
  const double v = element * tiles * s.in;
  const double u = element * s.in * s.out;
  const double o = element * tiles * s.out;
  const double work = v + u + o;
  const double ctas = kProducts * std::ceil(tiles / k.tile_m) * std::ceil(s.out / k.tile_n);
  ConvTime time = wave_time(waves_of(k, ctas, s.in, double(k.tile_m) * k.tile_n), work * conv_miss(work, m.l2), m);
  const double image =
      k.input * t.in * conv_miss(t.in + v, m.l2) + v * conv_miss(v + t.in, m.l2) + k.l2_share * (v + t.in);
  const double back =
      k.transform * (o * conv_miss(o, m.l2) + t.out * conv_miss(o + t.out, m.l2) + k.l2_share * (o + t.out));
  const double partial = k.ragged_filter * raggedness(s.in * p.element_bytes) * conv_miss(u, k.ragged_l2 * m.l2);
  const double filter = (k.filter + partial) * (t.weights + u);
  time.time += (image + back + filter) / m.dram;
  time.dram_bytes += image + back + filter;
  time.l2_bytes = 2 * work + t.in + t.out + p.element_bytes * ctas * (k.tile_m + k.tile_n) * s.in;
  return time;
}

/// FFT of n x n points, chunks of n-2 outputs, complex products per frequency.
ConvTime fft_time(const ConvProblem& p, const SquareKernel& k, const ConvMachine& m) {
  constexpr double kComplex = 8;  // Bytes of one complex number.
  const auto fft = kernel::fft_shape(p, k.points);
  const auto s = kernel::winograd_shape(p);
  const double x = kComplex * fft.bins * s.n * s.in;
  const double y = kComplex * fft.bins * s.n * s.out;
  const double f = kComplex * fft.bins * s.in * s.out;
  const double ctas = fft.bins * std::ceil(s.n / fft.batch_tile) * std::ceil(s.out / 64);
  const double weights = kernel::conv_bytes(p).weights;
  ConvTime time =
      wave_time(waves_of(k, ctas, s.in, 4 * fft.batch_tile * 64), (x + y + f) * conv_miss(x + y + f, m.l2), m);
  const double transforms = k.input * (2 * x + 2 * y) * (conv_miss(x + y, m.l2) + k.l2_share);
  const double filter = k.filter * (f + weights);
  time.time = fft.chunks * (time.time + transforms / m.dram + k.gap) + filter / m.dram;
  time.math *= fft.chunks;
  time.ctas *= fft.chunks;
  time.dram_bytes = fft.chunks * (time.dram_bytes + transforms) + filter;
  time.l2_bytes = fft.chunks * 3 * (x + y + f);
  return time;
}

}  // namespace

SquareConv::SquareConv(const arch::ParameterTree& convolution) {
  if (!convolution.has("square")) return;
  const auto section = convolution.at("square");
  balance_ = section.number("tuned_balance_bytes_per_fma");
  for (const auto& name : section.keys("kernels")) kernels_.push_back(read_kernel(section, name));
}

bool SquareConv::applies(const ConvProblem& p) const {
  return !kernels_.empty() && p.math == DataType::fp32 && p.pass == kernel::ConvPass::forward &&
         kernel::is_plain_filter(p, 3) && p.pad[1] == 1 && p.pad[2] == 1;
}

const SquareKernel* SquareConv::find(std::string_view name) const {
  for (const auto& k : kernels_) {
    if (k.name == name) return &k;
  }
  return nullptr;
}

bool SquareConv::takes(const ConvProblem& p, const SquareKernel& k) const {
  if (p.n % k.images != 0) return false;
  return k.points == 0 || (k.points == 16) == (std::max(p.out[1], p.out[2]) <= 14);
}

ConvTime SquareConv::time(const ConvProblem& p, const SquareKernel& k, const ConvMachine& m) const {
  switch (k.algorithm) {
    case ConvAlgorithm::winograd_fused: return fused_time(p, k, m);
    case ConvAlgorithm::winograd_nonfused: return nonfused_time(p, k, m);
    case ConvAlgorithm::fft: return fft_time(p, k, m);
    default: return implicit_time(p, k, m);
  }
}

}  // namespace voltaic::cost
