// SPDX-License-Identifier: MIT
#include "sim/cost/conv_general.hpp"

#include "sim/kernel/conv_shape.hpp"

namespace voltaic::cost {

namespace {

using kernel::ConvAlgorithm;
using kernel::ConvPass;
using kernel::ConvProblem;

struct TileSize {
  int m, n;
};
constexpr std::array<TileSize, 7> kTensorTiles{
    {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 64}}};
constexpr std::array<TileSize, 4> kSimtTiles{{{128, 128}, {128, 64}, {128, 32}, {32, 32}}};
constexpr std::array<int, 14> kSplits{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
constexpr double kLeastMiss = 0.15;  ///< Some of the traffic always misses L2: part of the fitted law.
constexpr double kFusedPrologue = 3400, kNonfusedPrologue = 800,
                 kFusedTile = 16384;  ///< Fitted with the law [DEEPBENCH].

ConvTuning read_tuning(const arch::ParameterTree& section, const std::string& pass) {
  const auto tree = section.at(pass);
  ConvTuning t;
  t.efficiency = tree.number("eff");
  t.tile_power = tree.number("g");
  t.prologue = tree.number("a_cycles");
  t.fill = tree.number("l");
  t.traffic = tree.number("f_bytes");
  t.layout = tree.number_or("f_layout", 0);
  t.few_channels = tree.number_or("f_few_channels", 1);
  t.reduce_s = tree.number_or("reduce_s", 0);
  t.reduce_traffic = tree.number_or("f_reduce", 0);
  t.stride = tree.number_or("f_stride", 1);
  t.stride_1x1 = tree.number_or("f_stride_1x1", 1);
  t.fused = tree.number_or("eff_fused", 0);
  t.nonfused = tree.number_or("eff_nonfused", 0);
  t.filter_transform = tree.number_or("f_filter", 0);
  t.gap_s = tree.number_or("gap_s", 0);
  return t;
}

double padded(double channels, double multiple) {
  return std::ceil(channels / multiple) * multiple;
}

/// k step of the main loop in elements: 8 on FMA lanes; on tensor cores 64 bytes of each operand row.
double k_step(const ConvProblem& p, bool tensor_cores) {
  return tensor_cores ? 64 / std::clamp(p.element_bytes, 0.5, 8.0) : 8;
}

/// The implicit product with channels padded to 16-byte vectors, as tensor-core kernels need them.
kernel::ImplicitGemm product_of(const ConvProblem& p, bool tensor_cores) {
  kernel::ImplicitGemm g = kernel::implicit_gemm(p);
  if (!tensor_cores) return g;
  const double vector = 16 / std::clamp(p.element_bytes, 0.5, 8.0);
  const double filter = kernel::spatial(p.filter);
  if (p.pass == ConvPass::wgrad) {
    g.m = padded(g.m, vector);
    g.n = padded(g.n / filter, vector) * filter;
  } else {
    g.n = padded(g.n, vector);
    g.k = padded(g.k / filter, vector) * filter;
  }
  return g;
}

/// Zeros between strided outputs are not all skipped by the data gradient.
double strided_depth(const ConvProblem& p, const ConvTuning& t) {
  if (p.pass != ConvPass::dgrad || kernel::spatial(p.stride) == 1) return 1;
  return kernel::spatial(p.filter) > 1 ? t.stride : t.stride_1x1;
}

bool few_channels(const ConvProblem& p, bool tensor_cores) {
  return p.groups == 1 && static_cast<double>(p.c) < (tensor_cores ? 16 / p.element_bytes : 8);
}

bool has_direct_dgrad(const ConvProblem& p, bool tensor_cores) {
  return p.pass == ConvPass::dgrad && few_channels(p, tensor_cores) && !tensor_cores;
}

double outputs_per_tile(const ConvProblem& p) {
  return p.filter[1] == 5 ? 5 : 4;
}

/// Implicit product of all groups in one grid.
///     time = waves(ceil(m/tm) ceil(n/tn) z, k/z) with fb (I+O+W) miss bytes, + layout passes, + the reduction of a
///     split k
ConvTime product_time(const ConvProblem& p, const ConvCandidate& c, bool tensor_cores, const ConvTuning& t,
                      const ConvMachine& m) {
  const auto g = product_of(p, tensor_cores);
  const auto bytes = kernel::conv_bytes(p);
  const double z = c.split_k;
  const double tile = static_cast<double>(c.tile_m) * c.tile_n;
  TileWaves w;
  w.ctas = std::ceil(g.m / c.tile_m) * std::ceil(g.n / c.tile_n) * z * static_cast<double>(p.groups);
  w.k = g.k * strided_depth(p, t) / z;
  w.k_step = k_step(p, tensor_cores);
  w.tile = tile;
  w.efficiency = t.efficiency * std::pow(std::min(1.0, tile / (tensor_cores ? 32768 : 8192)), t.tile_power);
  if (tensor_cores && few_channels(p, true)) w.efficiency /= t.few_channels;
  w.prologue = t.prologue;
  w.fill = t.fill;
  w.even = 0.1;
  ConvTime time = wave_time(w, t.traffic * bytes.total() * conv_miss(bytes.total(), m.l2, kLeastMiss), m);
  time.l2_bytes = p.element_bytes * w.ctas * (c.tile_m + c.tile_n) * w.k + bytes.total();
  double extra = 0;
  if (tensor_cores && !p.channels_last) extra += t.layout * 2 * (bytes.input + bytes.output);
  if (c.split_k > 1) {
    extra += t.reduce_traffic * 4 * z * g.m * g.n * static_cast<double>(p.groups);
    time.time += t.reduce_s;
  }
  time.time += extra / m.dram;
  time.dram_bytes += extra;
  time.l2_bytes += extra;
  return time;
}

ConvTime fused_time(const ConvProblem& p, const ConvTuning& t, const ConvMachine& m) {
  const auto shape = kernel::winograd_shape(p);
  const auto bytes = kernel::conv_bytes(p);
  TileWaves w;
  w.ctas = kernel::fused_winograd_ctas(shape, false);
  w.k = shape.in;
  w.tile = kFusedTile;
  w.efficiency = t.fused;
  w.prologue = kFusedPrologue;
  w.fill = t.fill;
  ConvTime time = wave_time(w, t.traffic * bytes.total() * conv_miss(bytes.total(), m.l2, kLeastMiss), m);
  time.l2_bytes = bytes.total() + p.element_bytes * w.ctas * 468 * shape.in;
  return time;
}

/// Transforms to V and U, 36 or 81 products to M, and back; for the filter gradient the products are ci x co over
/// tiles.
ConvTime nonfused_time(const ConvProblem& p, const ConvCandidate& c, const ConvTuning& t, const ConvMachine& m) {
  const bool wgrad = p.pass == ConvPass::wgrad;
  const auto s = kernel::winograd_shape(p);
  const auto bytes = kernel::conv_bytes(p);
  const double side = outputs_per_tile(p) + static_cast<double>(p.filter[1]) - 1;
  const double products = side * side;
  const double tiles = kernel::winograd_tiles(s, outputs_per_tile(p));
  const double v = products * p.element_bytes * tiles * s.in;
  const double u = products * p.element_bytes * s.in * s.out;
  const double o = products * p.element_bytes * tiles * s.out;
  const double image = p.pass == ConvPass::dgrad ? bytes.output : bytes.input;
  const double result = p.pass == ConvPass::dgrad ? bytes.input : bytes.output;
  TileWaves w;
  w.ctas = products * std::ceil((wgrad ? s.out : tiles) / c.tile_m) * std::ceil((wgrad ? s.in : s.out) / c.tile_n);
  w.k = wgrad ? tiles : s.in;
  w.tile = static_cast<double>(c.tile_m) * c.tile_n;
  w.efficiency = t.nonfused;
  w.prologue = kNonfusedPrologue;
  w.fill = t.fill;
  const double work = v + u + o;
  ConvTime time = wave_time(w, work * conv_miss(work, m.l2, kLeastMiss), m);
  const double extra = 1.4 * (image + v) * conv_miss(v, m.l2, kLeastMiss) +
                       (wgrad ? 1.4 : 1.1) * (o + result) * conv_miss(o, m.l2, kLeastMiss) +
                       (wgrad ? 0.45 : 1) * t.filter_transform * u * conv_miss(u, m.l2, kLeastMiss);
  time.time += extra / m.dram + t.gap_s;
  time.dram_bytes += extra;
  time.l2_bytes = 2 * work + bytes.total() + p.element_bytes * w.ctas * (c.tile_m + c.tile_n) * w.k;
  return time;
}

/// A kernel without tiles: a share of the FMA peak against one pass over the tensors.
ConvTime untiled_time(const ConvProblem& p, double efficiency, double reread, const ConvMachine& m) {
  const auto bytes = kernel::conv_bytes(p);
  ConvTime time;
  time.math = kernel::direct_mac(p) / (m.sms * m.fp32_lanes * efficiency * m.clock);
  time.dram_bytes = bytes.output + bytes.weights + reread * bytes.input;
  time.time = overlap4(time.math, time.dram_bytes / m.dram);
  time.l2_bytes = time.dram_bytes;
  time.ctas = static_cast<double>(p.n) * static_cast<double>(p.k) * kernel::spatial(p.out) / 128;
  return time;
}

}  // namespace

GeneralConv::GeneralConv(const arch::ParameterTree& convolution) {
  constexpr std::array<const char*, 3> kPasses{"forward", "dgrad", "wgrad"};
  const auto simt = convolution.at("simt");
  const auto tensor = convolution.at("tensor");
  for (std::size_t i = 0; i < kPasses.size(); ++i) {
    simt_[i] = read_tuning(simt, kPasses[i]);
    tensor_[i] = read_tuning(tensor, kPasses[i]);
  }
  direct_efficiency_ = simt.number("eff_direct_dgrad");
  const auto tiles = simt.numbers("nonfused_tiles");
  for (std::size_t i = 0; i + 1 < tiles.size(); i += 2) {
    nonfused_.push_back(
        {ConvAlgorithm::winograd_nonfused, static_cast<int>(tiles[i]), static_cast<int>(tiles[i + 1]), 1});
  }
  depthwise_efficiency_ = convolution.number("depthwise.eff");
  depthwise_wgrad_ = convolution.number("depthwise.eff_wgrad");
  depthwise_reread_ = convolution.number("depthwise.f_input");
}

std::vector<ConvCandidate> GeneralConv::candidates(const ConvProblem& p, bool tensor_cores) const {
  std::vector<ConvCandidate> out;
  if (kernel::is_depthwise(p)) {
    out.push_back({ConvAlgorithm::direct_depthwise, 128, 1, 1});
    return out;
  }
  out.reserve(104);
  const double depth = product_of(p, tensor_cores).k;
  const auto add_tile = [&](const TileSize& tile) {
    for (const int split : kSplits) {
      if (split > 1 && (p.pass != ConvPass::wgrad || depth / split < 2 * k_step(p, tensor_cores))) break;
      out.push_back({ConvAlgorithm::implicit_precomp_gemm, tile.m, tile.n, split});
    }
  };
  if (tensor_cores) {
    for (const auto& tile : kTensorTiles) add_tile(tile);
    return out;
  }
  for (const auto& tile : kSimtTiles) add_tile(tile);
  if (p.math != DataType::fp32) return out;
  const ConvTuning& t = tuning(p, false);
  const bool three = kernel::is_plain_filter(p, 3);
  if (t.fused > 0 && three && p.pass != ConvPass::wgrad) out.push_back({ConvAlgorithm::winograd_fused, 128, 32, 1});
  if (t.nonfused > 0 && (three || kernel::is_plain_filter(p, 5)))
    out.insert(out.end(), nonfused_.begin(), nonfused_.end());
  if (has_direct_dgrad(p, tensor_cores)) out.push_back({ConvAlgorithm::implicit_gemm, 32, 32, 1});
  return out;
}

ConvTime GeneralConv::time(const ConvProblem& p, const ConvCandidate& c, bool tensor_cores,
                           const ConvMachine& m) const {
  const ConvTuning& t = tuning(p, tensor_cores);
  switch (c.algorithm) {
    case ConvAlgorithm::direct_depthwise:
      return untiled_time(p, p.pass == ConvPass::wgrad ? depthwise_wgrad_ : depthwise_efficiency_, depthwise_reread_,
                          m);
    case ConvAlgorithm::winograd_fused: return fused_time(p, t, m);
    case ConvAlgorithm::winograd_nonfused: return nonfused_time(p, c, t, m);
    case ConvAlgorithm::implicit_gemm:
      if (has_direct_dgrad(p, tensor_cores)) return untiled_time(p, direct_efficiency_, 1, m);
      break;
    default: break;
  }
  return product_time(p, c, tensor_cores, t, m);
}

}  // namespace voltaic::cost
