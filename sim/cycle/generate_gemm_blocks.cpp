// SPDX-License-Identifier: MIT
// Blocks of matrices as warp-wide requests, and the waves of CTAs that touch them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/cycle/generate_gemm.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cycle::gemm {
namespace {

constexpr double kSector = 32, kLine = 128, kLanes = 32;
constexpr double kMostStride = 1e15;  ///< Strides beyond do not matter to any cache and would overflow sums.
constexpr double kMostRequests = 512;

std::uint16_t small(double v, double least = 1) {
  return static_cast<std::uint16_t>(std::clamp(std::ceil(v - 1e-9), least, 65535.0));
}

std::int64_t stride(double v) {
  return std::abs(v) < kMostStride ? static_cast<std::int64_t>(v) : 0;
}

/// Units of `unit` bytes that a run touches, whose start is a multiple of gcd(pitch, unit) anywhere in a unit.
double touched(double run, double pitch, double unit) {
  if (!(run > 0)) return 0;
  const auto whole = static_cast<std::int64_t>(std::min(std::max(std::floor(pitch), 1.0), 1e15));
  const double grain = static_cast<double>(std::gcd(whole, static_cast<std::int64_t>(unit)));
  return 1 + std::max(0.0, run - grain) / unit;
}

/// Sectors of `run` bytes that requests move in pieces.
double sectors_of_run(double run, double piece, double pitch) {
  const double pieces = std::floor(run / piece + 1e-9);
  const double rest = run - pieces * piece;
  return pieces * touched(piece, pitch, kSector) + (rest > 1e-6 ? touched(rest, pitch, kSector) : 0);
}

Access whole_request(std::uint16_t tensor, const Block& b, double piece, double runs) {
  Access a;
  a.tensor = tensor;
  const double sectors = runs * touched(piece, b.pitch, kSector);
  a.sectors = small(sectors);
  a.lines = small(std::min(std::round(runs * touched(piece, b.pitch, kLine)), static_cast<double>(a.sectors)));
  a.bytes = small(runs * piece);
  a.wavefronts = a.ideal_wavefronts = small(runs * piece / kLine);
  const double cut = 1 - runs * piece / kSector / sectors;
  a.l1_hit = std::clamp(1 - (1 - b.kept_sectors * cut) * (1 - b.reused), 0.0, 1.0);
  a.line_stride = piece > kLine ? static_cast<std::int64_t>(kLine) : stride(b.pitch);
  return a;
}

}  // namespace

std::vector<Request> requests(Emitter& e, std::uint16_t tensor, const Block& b, const Place& place, int warps) {
  const double bytes = kLanes * std::max(b.widest, 1.0 / 8);
  const double piece = std::max(1e-3, std::min({b.run, b.most_run, bytes}));
  const double runs = std::max(1.0, bytes / piece);
  Access whole = whole_request(tensor, b, piece, runs);
  for (std::size_t i = 0; i < 3; ++i) whole.per_cta[i] = stride(place.per_cta[i]);
  for (std::size_t i = 0; i < kLoopDepth; ++i) whole.per_trip[i] = stride(place.per_trip[i]);
  const double apart = b.run > piece ? piece : runs * b.pitch;
  whole.per_warp = stride(apart);

  const double each = runs * touched(piece, b.pitch, kSector);
  const double all = b.filled_rows * sectors_of_run(std::min(b.filled_run, b.run), piece, b.pitch);
  const double full = std::min(std::floor(all / each + 1e-6), kMostRequests * warps);
  const double rest = all - full * each;
  std::vector<Request> out;
  double left = full;
  double base = place.base;
  for (; left >= 1; left -= warps, base += apart * warps) {
    whole.base = stride(base);
    out.push_back({e.access(whole), static_cast<int>(std::min<double>(left, warps))});
  }
  if (rest / each > 1e-6) {
    Access part = whole;
    const double share = std::min(1.0, rest / each);
    part.base = stride(base);
    part.sectors = small(rest);
    part.lines = small(std::min(std::round(whole.lines * share), rest));
    part.bytes = small(whole.bytes * share);
    part.wavefronts = part.ideal_wavefronts = small(whole.wavefronts * share);
    out.push_back({e.access(part), 1});
  }
  return out;
}

Block step_block(const Operand& o, double tile_k, double k_filled) {
  Block b;
  b.pitch = o.pitch;
  b.widest = o.widest;
  b.most_run = o.most_run;
  b.reused = o.reused;
  b.rows = o.along_k ? o.tile : tile_k;
  b.run = o.element * (o.along_k ? tile_k : o.tile);
  b.filled_rows = o.along_k ? o.filled : tile_k * k_filled;
  b.filled_run = o.element * (o.along_k ? tile_k * k_filled : o.filled);
  // The sector that a row's step ends in is where its next step begins.
  if (o.along_k && !o.past_l1) b.kept_sectors = 1;
  return b;
}

int resident(const kernel::CtaResources& cta, int most, const arch::GpuSpec& gpu) {
  const int fit = std::max(1, sm::occupancy(cta, gpu.sm).ctas_per_sm);
  return most > 0 ? std::min(most, fit) : fit;
}

void shape_program(Emitter& e, const Product& p, const arch::GpuSpec& gpu) {
  e.program.warps = std::clamp(p.tile.warps, 1, 32);
  e.program.registers_per_thread = p.cta.registers_per_thread;
  e.program.shared_bytes = p.cta.shared_memory.value;
  e.program.ctas_per_sm = resident(p.cta, p.tile.ctas_per_sm, gpu);
  e.program.grid = p.grid;
}

Panels wave_panels(double across, double down, double deep, double in_flight, double area_ratio, bool square) {
  const double tiles = across * down;
  const double ctas = tiles * deep;
  if (in_flight >= tiles) return {down * deep, across * deep};
  const double waves = std::max(1.0, ctas / in_flight);
  if (square) {
    double rows = std::clamp(std::sqrt(in_flight * area_ratio), 1.0, down);
    double columns = in_flight / rows;
    if (columns > across) {
      columns = across;
      rows = std::min(in_flight / across, down);
    }
    return {std::clamp(waves * rows, down * deep, ctas), std::clamp(waves * columns, across * deep, ctas)};
  }
  // Along rows of tiles: a wave that ends inside a row leaves the row's panel of A to the next one as well.
  const double cut = std::fmod(in_flight, across) == 0 ? 0 : std::ceil(waves) - 1;
  const double columns = std::min(in_flight, across);
  return {std::clamp(down * deep + cut, down * deep, ctas), std::clamp(waves * columns, across * deep, ctas)};
}

}  // namespace voltaic::cycle::gemm
