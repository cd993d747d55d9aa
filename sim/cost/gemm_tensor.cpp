// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

namespace {

double positive(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}

/// The part of a tile whose operands are read from shared memory at once. Before Hopper a warp's: the CTA tile halved
/// along its longer side until every warp has one. On Hopper a warp group multiplies 64 rows by the whole width.
void split_over_warps(TensorTile& tile, bool warp_groups) {
  tile.warp_m = warp_groups ? std::min(tile.tile_m, 64) : tile.tile_m;
  tile.warp_n = tile.tile_n;
  if (warp_groups) return;
  for (int w = tile.warps; w > 1; w /= 2) (tile.warp_m >= tile.warp_n ? tile.warp_m : tile.warp_n) /= 2;
}

TensorTile read_tile(const arch::ParameterTree& tree, bool warp_groups) {
  TensorTile t;
  t.name = tree.word("name");
  t.tile_m = static_cast<int>(tree.number("tile_m"));
  t.tile_n = static_cast<int>(tree.number("tile_n"));
  t.warps = static_cast<int>(tree.number("warps"));
  t.k_step = tree.number("k_step");
  t.stages = tree.number("stages");
  t.ctas_per_sm = static_cast<int>(tree.number("ctas_per_sm"));
  t.most_m = tree.number_or("most_m", t.most_m);
  split_over_warps(t, warp_groups);
  t.warp_m = static_cast<int>(tree.number_or("warp_m", t.warp_m));
  t.warp_n = static_cast<int>(tree.number_or("warp_n", t.warp_n));
  return t;
}

/// One multiplier per tile, 1 where the law lists none.
void read_own(const arch::ParameterTree& law, std::string_view name, std::vector<TensorTile>& tiles,
              double TensorTile::*member) {
  if (!law.has(name)) return;
  const std::vector<double> values = law.numbers(name);
  ensure(values.size() == tiles.size(), "a tensor-core calibration has one multiplier per tile");
  for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i].*member = values[i];
}

/// Operands and outputs whose rows start off 16-byte boundaries are moved in narrower pieces.
double alignment_share(const kernel::GemmProblem& p, const std::vector<double>& unaligned) {
  const std::int64_t run = std::gcd(std::gcd(p.transpose_a ? p.m : p.k, p.transpose_b ? p.k : p.n), p.n);
  const double bytes = static_cast<double>(std::gcd<std::int64_t>(run, 16)) * p.a_bytes;
  if (bytes >= 16 || unaligned.size() < 3) return 1;
  return unaligned[bytes >= 8 ? 0 : bytes >= 4 ? 1 : 2];
}

/// Bytes of one weight in its row: scales lie apart.
double weight_bytes(const kernel::GemmProblem& p) {
  if (!p.dequantise) return p.b_bytes;
  return p.b_bytes < 0.75 ? 0.5 : 1;
}

/// How far rows of `elements` lie off the start of DRAM pages, from 0 to almost 1.
double off_page(bool contiguous, std::int64_t elements, double bytes) {
  constexpr std::int64_t kPage = 2048;
  if (!contiguous) return 0;
  const auto row = static_cast<std::int64_t>(positive(elements) * bytes);
  return 1 - static_cast<double>(std::gcd(std::max<std::int64_t>(row, 1), kPage)) / static_cast<double>(kPage);
}

}  // namespace

TensorProblem::TensorProblem(const kernel::GemmProblem& p, const std::vector<double>& unaligned)
    : b(positive(p.batch)),
      m(positive(p.m)),
      n(positive(p.n)),
      k(positive(p.k)),
      a(p.a_bytes),
      w(p.b_bytes),
      o(p.c_bytes),
      w_shared(p.sparse ? p.b_bytes : p.a_bytes),
      step_scale(2 / std::max(p.a_bytes, 0.5)),
      issue_scale(alignment_share(p, unaligned)),
      a_off_page(off_page(!p.transpose_a, p.k, p.a_bytes)),
      w_off_page(off_page(p.transpose_b, p.k, weight_bytes(p))) {}

TensorLaw::TensorLaw(const arch::ParameterTree& law, const arch::ParameterTree& shared)
    : floor_(law.number("floor_s")),
      gap_(law.number("gap_s")),
      issue_(law.number("issue_efficiency")),
      warps_(law.number("half_fill_warps")),
      l2_rate_(law.number("l2_bytes_per_cycle_per_sm")),
      l2_cap_(law.number("l2_bytes_per_cycle_one_sm")),
      latency_(law.number("latency_cycles")),
      barrier_(law.number("barrier_cycles")),
      prologue_(law.number("prologue_cycles")),
      store_(law.number("store_bytes_per_cycle_per_sm")),
      store_cap_(law.number("store_bytes_per_cycle_one_sm")),
      fill_(law.number("fill_exposed")),
      fill_shared_(law.number_or("fill_exposed_shared", fill_)),
      exposed_(law.number("epilogue_exposed")),
      exposed_shared_(law.number_or("epilogue_exposed_shared", exposed_)),
      bandwidth_share_(law.number("bandwidth_share")),
      ramp_(law.number("ramp_s")),
      l2_share_(law.number("l2_share")),
      shared_share_(law.number("shared_share")),
      reduce_(law.number("reduce_s")),
      reduce_rate_(law.number("reduce_rate")),
      fraction_(law.number("wave_fraction")),
      copies_(law.number("operand_copies")),
      pitch_loss_(law.number_or("pitch_loss", 0)),
      convert_(law.number_or("convert_ops_per_weight", 0)),
      cluster_m_(std::max(1.0, law.number_or("cluster_m", 1))),
      activation_warm_(law.number_or("activation_warm", 0) > 0) {
  const bool warp_groups = shared.number_or("warp_groups", 0) > 0;
  if (shared.has("unaligned_issue")) unaligned_ = shared.numbers("unaligned_issue");
  for (const auto& t : (law.has("tiles") ? law : shared).elements("tiles")) tiles_.push_back(read_tile(t, warp_groups));
  ensure(!tiles_.empty(), "a tensor-core calibration lists no tile");
  read_own(law, "tile_issue", tiles_, &TensorTile::issue);
  read_own(law, "tile_prologue", tiles_, &TensorTile::prologue);
  read_own(law, "tile_store", tiles_, &TensorTile::store);
  if (law.has("slow_skinny")) {
    const auto tree = law.at("slow_skinny");
    TensorTile t = read_tile(tree, warp_groups);
    t.family = TensorFamily::slow_skinny;
    t.least_m = tree.number("least_m");
    t.least_k = tree.number("least_k");
    t.issue = tree.number("issue");
    t.prologue = tree.number("prologue");
    t.store = tree.number("store");
    t.extra_s = tree.number("extra_s");
    tiles_.push_back(t);
  }
  if (law.has("gemv")) {
    const auto tree = law.at("gemv");
    TensorTile t;
    t.name = "gemv";
    t.family = TensorFamily::gemv;
    t.tile_m = t.warp_m = static_cast<int>(tree.number("most_m"));
    t.tile_n = t.warp_n = t.warps;
    t.most_m = tree.number("most_m");
    tiles_.push_back(t);
    gemv_start_ = tree.number("start_s");
    gemv_per_product_ = tree.number("ops_per_multiply_add");
    gemv_per_weight_ = tree.number("ops_per_weight");
    gemv_cycles_ = tree.number("cycles_per_1024_k");
    gemv_bandwidth_ = tree.number("bandwidth_share");
  }
}

const TensorTile& TensorLaw::tile(std::string_view name) const {
  for (const auto& t : tiles_) {
    if (t.name == name) return t;
  }
  return tiles_.front();
}

/// Cycles of one wave: the main loop by leg, and the stores of its output.
struct TensorLaw::Wave {
  double loop = 0, store = 0;
  double tensor = 0, l2 = 0, shared = 0, latency = 0;
};

/// Rows and columns of the output that the tiles in flight cover: the rasteriser keeps a square block of tiles, which
/// reads each of its panels once.
struct TensorLaw::Block {
  double rows = 1, columns = 1;
};

TensorLaw::Block TensorLaw::block(const TensorTile& tile, const TensorProblem& p, double in_flight) const {
  const double tiles_m = std::ceil(p.m / tile.tile_m);
  const double tiles_n = std::ceil(p.n / tile.tile_n);
  double um = std::clamp(std::sqrt(in_flight * tile.tile_n / tile.tile_m), 1.0, tiles_m);
  double un = in_flight / um;
  if (un > tiles_n) {
    un = tiles_n;
    um = std::min(in_flight / tiles_n, tiles_m);
  }
  return {std::min(um * tile.tile_m, p.m), std::min(un * tile.tile_n, p.n)};
}

/// Share of first touches that miss L2, for operands that are used in turn with `copies` of their size.
double TensorLaw::cold_share(const TensorProblem& p, double copies, const TensorMachine& machine) const {
  const double cache = l2_share_ * machine.l2;
  if (!(cache > 0)) return 1;
  const double x4 = fourth(copies * (p.m * p.k * p.a + p.n * p.k * p.w) / cache);
  return std::isfinite(x4) ? x4 / (1 + x4) : 1;
}

TensorLaw::Wave TensorLaw::wave(const TensorTile& tile, const TensorProblem& p, double split, const Place& at,
                                const TensorMachine& machine) const {
  const double q = at.q;
  const double tm = tile.tile_m;
  const double tn = tile.tile_n;
  const double step = tile.k_step * p.step_scale;
  const double steps = std::ceil(p.k / (split * step)) * step;
  const double idle_share = machine.sms / at.active;

  // Per unit of k, in cycles.
  const double issue = std::min(1.0, issue_ * tile.issue) * p.issue_scale;
  const double tensor = q * tm * tn / (machine.rate * issue) * (1 + warps_ / (q * tile.warps));
  constexpr double kLanes = 128;  // that convert weights: all 32-bit lanes of an SM, with their integer halves
  const double convert = q * tn * convert_ / kLanes * std::max(1.0, tm / tile.warp_m);
  const double l2 = q * (p.a * tm + p.w * tn) / (machine.l2_scale * std::min(l2_rate_ * idle_share, l2_cap_));
  double dram = 0;
  if (at.first) {
    const Block panels = block(tile, p, at.in_flight);
    const double cold_w = cold_share(p, copies_, machine);
    const double cold_a = activation_warm_ ? cold_share(p, 1, machine) : cold_w;
    dram = (p.a * panels.rows * (1 + pitch_loss_ * p.a_off_page) * cold_a +
            p.w * panels.columns * (1 + pitch_loss_ * p.w_off_page) * cold_w) *
           machine.clock / (bandwidth_share_ * machine.bandwidth);
  }
  const double latency = latency_ / ((tile.stages - 1) * step) + barrier_ / (32 * p.step_scale);
  const double shared =
      q * (tm * tn * (p.a / tile.warp_n + p.w_shared / tile.warp_m) + p.a * tm + p.w * tn) / (128 * shared_share_);

  const double math = tensor + convert;
  const double sum8 = fourth(math) * fourth(math) + fourth(l2) * fourth(l2) + fourth(dram) * fourth(dram) +
                      fourth(latency) * fourth(latency) + fourth(shared) * fourth(shared);
  const double fill = tile.ctas_per_sm > 1 && !at.last ? fill_shared_ : fill_;
  Wave out;
  out.loop = steps * std::sqrt(std::sqrt(std::sqrt(sum8))) +
             fill * std::min(steps, (tile.stages - 1) * step) * std::max(l2, dram);
  out.store = q * tm * tn * tile.store * (split > 1 ? 4 : p.o) / std::min(store_ * idle_share, store_cap_);
  out.tensor = steps * tensor;
  out.l2 = steps * l2;
  out.shared = steps * shared;
  out.latency = steps * latency;
  return out;
}

double TensorLaw::reduce_time(const TensorProblem& p, double split, const TensorMachine& machine) const {
  return reduce_ + (8 * split + p.o) * p.m * p.n * p.b / (reduce_rate_ * machine.bandwidth);
}

/// Warps that each multiply rows of the weights with the few activations: the larger of weight bytes, instructions of
/// products and conversion, and the latency of the walk along k.
TensorTime TensorLaw::vector_time(const TensorTile& tile, const TensorProblem& p, const TensorMachine& machine) const {
  constexpr double kLeastCold = 0.3;  // part of what is in L2 crosses its halves all the same
  constexpr double kLanes = 128;
  const double operands = (p.m * p.k * p.a + p.n * p.k * p.w) * p.b;
  const double cold = cold_share(p, copies_, machine);
  const double work = (gemv_per_product_ * p.m + gemv_per_weight_) * p.n * p.k * p.b;
  TensorTime out;
  out.dram_bytes = operands * std::max(cold, kLeastCold);
  out.memory = out.dram_bytes / (gemv_bandwidth_ * machine.bandwidth);
  out.tensor = work / (machine.sms * kLanes * machine.clock);
  out.latency = gemv_cycles_ * p.k / 1024 / machine.clock;
  out.clocked = norm4(out.tensor, out.latency);
  out.fixed = floor_ * machine.floor_scale - gap_ + gemv_start_ + ramp_ * std::log1p(operands * cold / 5e6);
  out.whole = out.smooth = out.fixed + norm4(out.memory, out.clocked);
  out.ctas = std::ceil(p.n / tile.tile_n) * p.b;
  return out;
}

TensorTime TensorLaw::time(const TensorTile& tile, const TensorProblem& p, double split,
                           const TensorMachine& machine) const {
  if (tile.family == TensorFamily::gemv) return vector_time(tile, p, machine);
  double tiles_m = std::ceil(p.m / tile.tile_m);
  // A cluster's CTAs share the weights that they multiply; the last one is filled up with empty CTAs.
  if (tile.tile_m >= 128) tiles_m = cluster_m_ * std::ceil(tiles_m / cluster_m_);
  const double tiles_n = std::ceil(p.n / tile.tile_n);
  TensorTime out;
  out.ctas = tiles_m * tiles_n * split * p.b;
  const double slots = machine.sms * tile.ctas_per_sm;
  const double full = std::floor(out.ctas / slots);
  const double rest = out.ctas - full * slots;
  const double prologue = prologue_ * tile.prologue;
  const double exposed = tile.ctas_per_sm > 1 ? exposed_shared_ : exposed_;

  double cycles = 0;
  double fractional = 0;
  double issue = 0;
  const auto account = [&](const Wave& w, double count, double share) {
    cycles += count * (w.loop + share * (prologue + w.store));
    issue += count * w.tensor;
    out.l2 += count * w.l2;
    out.shared += count * w.shared;
    out.latency += count * (w.latency + prologue);
  };
  const double in_flight = std::max(1.0, slots / (split * p.b));
  if (full > 0) {
    const double early = std::min(full, 2.0);
    Place at{in_flight, static_cast<double>(tile.ctas_per_sm), machine.sms, true, false};
    account(wave(tile, p, split, at, machine), early, exposed);
    at.first = false;
    if (full > 2) account(wave(tile, p, split, at, machine), full - 2, exposed);
    fractional = out.ctas / slots * cycles / full;
  }
  const double flying = std::max(1.0, rest / (split * p.b));
  if (rest > 0) {
    const Place at{flying, std::ceil(rest / machine.sms), std::min(rest, machine.sms), full < 2, true};
    account(wave(tile, p, split, at, machine), 1, 1);
  }
  if (!(full > 0)) fractional = cycles;

  // Whole kernel: panels read again where L2 does not hold them.
  const double operands = p.m * p.k * p.a + p.n * p.k * p.w;  // of one batch entry
  const double cache = l2_share_ * machine.l2;
  const double in_block = std::max(1.0, full > 0 ? in_flight : flying);
  const Block panels = block(tile, p, in_block);
  const double read = (tiles_m * tiles_n / in_block) * (p.a * panels.rows + p.w * panels.columns) * p.k * p.b;
  const double again = (std::max(read, operands * p.b) - operands * p.b) * (1 - std::min(1.0, cache / operands));
  const double result = p.m * p.n * p.b * p.o;
  const double written = result * (copies_ * p.m * p.n * p.o > cache ? 1 : 0.3);
  const double cold = cold_share(p, copies_, machine);
  const double cold_a = activation_warm_ ? cold_share(p, 1, machine) : cold;
  const double first_a = p.m * p.k * p.a * p.b * cold_a;
  const double first_w = p.n * p.k * p.w * p.b * cold;
  out.dram_bytes = first_a + first_w + again + written;
  const double slowed = out.dram_bytes + pitch_loss_ * (p.a_off_page * first_a + p.w_off_page * first_w);
  out.memory = slowed / (bandwidth_share_ * machine.bandwidth);

  out.clocked = cycles / machine.clock;
  out.fixed = floor_ * machine.floor_scale - gap_ + tile.extra_s + ramp_ * std::log1p(operands * p.b * cold / 5e6);
  out.reduce = split > 1 ? reduce_time(p, split, machine) : 0;
  out.whole = norm4(out.clocked, out.memory) + out.fixed + out.reduce;
  const double estimate = (fraction_ * fractional + (1 - fraction_) * cycles) / machine.clock;
  out.smooth = norm4(estimate, out.memory) + out.fixed + out.reduce;
  out.tensor = issue / machine.clock;
  out.l2 /= machine.clock;
  out.shared /= machine.clock;
  out.latency /= machine.clock;
  return out;
}

}  // namespace voltaic::cost
