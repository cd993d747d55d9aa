// SPDX-License-Identifier: MIT
#include "sim/cost/conv_general.hpp"

#include <algorithm>

#include "sim/cost/conv_transform.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::cost {

namespace {

using kernel::ConvAlgorithm;
using kernel::ConvPass;
using kernel::ConvProblem;

constexpr std::array<int, 14> kSplits{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
constexpr double kVectorBytes = 16;

double padded(double channels, double multiple) {
  return std::ceil(channels / multiple) * multiple;
}

double element_bytes(const ConvProblem& p) {
  return std::clamp(p.element_bytes, 0.5, 8.0);
}

/// k step of the main loop in elements: 8 on FMA lanes; on tensor cores 64 bytes of each operand row.
double k_step(const ConvProblem& p, bool tensor_cores) {
  return tensor_cores ? 64 / element_bytes(p) : 8;
}

/// The implicit product as tensor-core kernels run it: outputs padded to 16-byte vectors, and the channels under each
/// filter tap to what the main loop reads at once.
kernel::ImplicitGemm product_of(const ConvProblem& p, bool tensor_cores, const ConvTuning& t) {
  kernel::ImplicitGemm g = kernel::implicit_gemm(p);
  if (!tensor_cores) return g;
  const double vector = kVectorBytes / element_bytes(p);
  const double block = std::max(vector, t.channel_bytes / element_bytes(p));
  const double filter = kernel::spatial(p.filter);
  if (p.pass == ConvPass::wgrad) {
    g.m = padded(g.m, vector);
    g.n = padded(g.n / filter, block) * filter;
  } else {
    g.n = padded(g.n, vector);
    g.k = padded(g.k / filter, block) * filter;
  }
  return g;
}

bool is_strided_dgrad(const ConvProblem& p) {
  return p.pass == ConvPass::dgrad && kernel::spatial(p.stride) > 1;
}

/// Zeros between strided outputs are not all skipped by the data gradient.
double strided_depth(const ConvProblem& p, const ConvTuning& t) {
  if (!is_strided_dgrad(p)) return 1;
  return kernel::spatial(p.filter) > 1 ? t.stride : t.stride_1x1;
}

bool has_direct_dgrad(const ConvProblem& p) {
  return p.pass == ConvPass::dgrad && p.groups == 1 && p.c < 8;
}

/// Gradients that tensor-core kernels do not take: of a single channel's filters, and with padding beyond the filter.
bool falls_back(const ConvProblem& p) {
  if (p.pass == ConvPass::forward || p.groups > 1) return false;
  return kernel::is_padded_beyond_filter(p) || (p.pass == ConvPass::wgrad && p.c == 1);
}

/// Implicit product of all groups in one grid.
///     time = waves(ceil(m/tm) ceil(n/tn) z, k/z) with fb (I+O+W) miss bytes, + layout passes, + the reduction of a
///     split k, + the scattering of a strided 1x1 data gradient
ConvTime product_time(const ConvProblem& p, const ConvCandidate& c, bool tensor_cores, const ConvTuning& t,
                      const ConvMachine& m) {
  const auto g = product_of(p, tensor_cores, t);
  const auto bytes = kernel::conv_bytes(p);
  const double z = c.split_k;
  const double tile = static_cast<double>(c.tile_m) * c.tile_n;
  TileWaves w;
  w.ctas = std::ceil(g.m / c.tile_m) * std::ceil(g.n / c.tile_n) * z * static_cast<double>(p.groups);
  w.k = g.k * strided_depth(p, t) / z;
  w.k_step = k_step(p, tensor_cores);
  w.tile = tile;
  w.efficiency = t.efficiency * std::pow(std::min(1.0, tile / (tensor_cores ? 32768 : 8192)), t.tile_power);
  if (t.l2_share > 0 && m.l2_rate > 0) {
    w.fetch = element_bytes(p) * (c.tile_m + c.tile_n) / (t.l2_share * m.l2_rate);
  }
  w.prologue = t.prologue;
  w.fill = t.fill;
  w.even = 0.1;
  ConvTime time = wave_time(w, t.traffic * bytes.total() * conv_miss(bytes.total(), m.l2, kLeastConvMiss), m);
  time.l2_bytes = p.element_bytes * w.ctas * (c.tile_m + c.tile_n) * w.k + bytes.total();
  double extra = 0;
  if (tensor_cores && !p.channels_last) extra += t.layout * 2 * (bytes.input + bytes.output);
  if (is_strided_dgrad(p) && kernel::spatial(p.filter) == 1) extra += t.scatter * bytes.input;
  if (c.split_k > 1) {
    extra += t.reduce_traffic * 4 * z * g.m * g.n * static_cast<double>(p.groups);
    time.time += t.reduce_s;
  }
  time.time += extra / m.dram;
  time.dram_bytes += extra;
  time.l2_bytes += extra;
  return time;
}

/// A kernel without tiles: a share of the FMA peak against one pass over the tensors.
ConvTime untiled_time(const ConvProblem& p, double mac, double efficiency, double reread, const ConvMachine& m) {
  const auto bytes = kernel::conv_bytes(p);
  ConvTime time;
  time.math = mac / (m.sms * m.fp32_lanes * efficiency * m.clock);
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
    simt_[i] = read_conv_tuning(simt, kPasses[i]);
    tensor_[i] = read_conv_tuning(tensor, kPasses[i]);
  }
  direct_efficiency_ = simt.number("eff_direct_dgrad");
  fallback_efficiency_ = tensor.number("eff_fallback");
  const auto tiles = simt.numbers("nonfused_tiles");
  for (std::size_t i = 0; i + 1 < tiles.size(); i += 2) {
    nonfused_tiles_.push_back({static_cast<int>(tiles[i]), static_cast<int>(tiles[i + 1])});
  }
  depthwise_efficiency_ = convolution.number("depthwise.eff");
  depthwise_wgrad_ = convolution.number("depthwise.eff_wgrad");
  depthwise_reread_ = convolution.number("depthwise.f_input");
  grouped_efficiency_ = convolution.number("grouped.eff");
  grouped_wgrad_ = convolution.number("grouped.eff_wgrad");
}

void GeneralConv::add_products(const ConvProblem& p, bool tensor_cores, std::vector<ConvCandidate>& out) const {
  const ConvTuning& t = tuning(p, tensor_cores);
  const double depth = product_of(p, tensor_cores, t).k;
  for (const auto& tile : t.tiles) {
    for (const int split : kSplits) {
      if (split > 1 && (!t.splits || depth / split < 2 * k_step(p, tensor_cores))) break;
      out.push_back({ConvAlgorithm::implicit_precomp_gemm, tile.m, tile.n, split});
    }
  }
}

void GeneralConv::add_transforms(const ConvProblem& p, std::vector<ConvCandidate>& out) const {
  const ConvTuning& t = tuning(p, false);
  if (!kernel::is_plain_filter(p, p.filter[1])) return;
  if (t.fused > 0 && p.filter[1] == 3 && p.pass != ConvPass::wgrad) {
    out.push_back({ConvAlgorithm::winograd_fused, 128, 32, 1});
  }
  if (t.nonfused > 0 && (p.filter[1] == 3 || p.filter[1] == 5)) {
    for (const auto& tile : nonfused_tiles_) out.push_back({ConvAlgorithm::winograd_nonfused, tile.m, tile.n, 1});
  }
  // Tiles of 32 points leave enough outputs beside a filter of up to 15 taps.
  if (t.fft > 0 && p.filter[1] >= 5 && p.filter[1] <= 15) {
    out.push_back({ConvAlgorithm::fft, kFftTile.m, kFftTile.n, 1});
  }
}

std::vector<ConvCandidate> GeneralConv::candidates(const ConvProblem& p, bool tensor_cores) const {
  std::vector<ConvCandidate> out;
  if (kernel::is_depthwise(p)) {
    out.push_back({ConvAlgorithm::direct_depthwise, 128, 1, 1});
    return out;
  }
  const ConvCandidate direct{ConvAlgorithm::implicit_gemm, 32, 32, 1};
  if (tensor_cores && falls_back(p)) {
    out.push_back(direct);
    return out;
  }
  out.reserve(80);
  add_products(p, tensor_cores, out);
  if (p.groups > 1 || (!tensor_cores && has_direct_dgrad(p))) out.push_back(direct);
  if (!tensor_cores && p.math == DataType::fp32) add_transforms(p, out);
  return out;
}

double GeneralConv::bias(const ConvProblem& p, const ConvCandidate& c) const {
  return c.algorithm == ConvAlgorithm::winograd_nonfused ? tuning(p, false).nonfused_bias : 1;
}

/// Kernels for FMA lanes that make each output by itself.
ConvTime GeneralConv::direct_time(const ConvProblem& p, const ConvMachine& m) const {
  const double mac = kernel::direct_mac(p);
  const bool wgrad = p.pass == ConvPass::wgrad;
  if (p.groups > 1) return untiled_time(p, mac, wgrad ? grouped_wgrad_ : grouped_efficiency_, depthwise_reread_, m);
  if (has_direct_dgrad(p) && p.math == DataType::fp32) return untiled_time(p, mac, direct_efficiency_, 1, m);
  // The tensors come in the layout of tensor cores, a single channel padded to a vector.
  const double vector = kVectorBytes / element_bytes(p);
  return untiled_time(p, wgrad && p.c == 1 ? mac * vector : mac, fallback_efficiency_, 1, m);
}

ConvTime GeneralConv::time(const ConvProblem& p, const ConvCandidate& c, bool tensor_cores,
                           const ConvMachine& m) const {
  const ConvTuning& t = tuning(p, tensor_cores);
  switch (c.algorithm) {
    case ConvAlgorithm::direct_depthwise: {
      const double efficiency = p.pass == ConvPass::wgrad ? depthwise_wgrad_ : depthwise_efficiency_;
      return untiled_time(p, kernel::direct_mac(p), efficiency, depthwise_reread_, m);
    }
    case ConvAlgorithm::winograd_fused: return fused_winograd_time(p, t, m);
    case ConvAlgorithm::winograd_nonfused: return nonfused_winograd_time(p, {c.tile_m, c.tile_n}, t, m);
    case ConvAlgorithm::fft: return fft_tiles_time(p, t, m);
    case ConvAlgorithm::implicit_gemm: return direct_time(p, m);
    default: return product_time(p, c, tensor_cores, t, m);
  }
}

}  // namespace voltaic::cost
