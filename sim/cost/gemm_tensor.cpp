// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace voltaic::cost {

namespace {

double positive(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}
double fourth(double x) {
  return x * x * x * x;
}
double norm4(double a, double b) {
  return std::sqrt(std::sqrt(fourth(a) + fourth(b)));
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
  split_over_warps(t, warp_groups);
  return t;
}

/// assumed: operands whose rows start off 16-byte boundaries are loaded in narrower pieces. The library's own documents
/// show about half the rate for odd sizes of two-byte types; between them the loss is taken to grow evenly.
double alignment_share(const kernel::GemmProblem& p) {
  const std::int64_t run = std::gcd(p.transpose_a ? p.m : p.k, p.transpose_b ? p.k : p.n);
  const double bytes = static_cast<double>(std::gcd<std::int64_t>(run, 16)) * p.a_bytes;
  if (bytes >= 16) return 1;
  return bytes >= 8 ? 0.85 : bytes >= 4 ? 0.7 : 0.5;
}

}  // namespace

TensorProblem::TensorProblem(const kernel::GemmProblem& p)
    : b(positive(p.batch)),
      m(positive(p.m)),
      n(positive(p.n)),
      k(positive(p.k)),
      a(p.a_bytes),
      w(p.b_bytes),
      o(p.c_bytes),
      step_scale(2 / std::max(p.a_bytes, 0.5)),
      issue_scale(alignment_share(p)) {}

TensorLaw::TensorLaw(const arch::ParameterTree& law, const arch::ParameterTree& tiles)
    : bias_(law.numbers("tile_bias")),
      choice_(law.numbers("choice")),
      floor_(law.number("floor_s")),
      gap_(law.number("gap_s")),
      issue_(law.number("issue_efficiency")),
      warps_(law.number("half_fill_warps")),
      l2_rate_(law.number("l2_bytes_per_cycle_per_sm")),
      l2_cap_(law.number("l2_bytes_per_cycle_one_sm")),
      latency_(law.number("latency_cycles")),
      barrier_(law.number("barrier_cycles")),
      prologue_(law.number("prologue_cycles")),
      fill_(law.number("fill_exposed")),
      store_(law.number("store_bytes_per_cycle_per_sm")),
      store_cap_(law.number("store_bytes_per_cycle_one_sm")),
      exposed_(law.number("epilogue_exposed")),
      bandwidth_share_(law.number("bandwidth_share")),
      ramp_(law.number("ramp_s")),
      l2_share_(law.number("l2_share")),
      shared_share_(law.number("shared_share")),
      reduce_(law.number("reduce_s")),
      reduce_rate_(law.number("reduce_rate")),
      power_activity_(law.number("power_activity")),
      power_exponent_(law.number("power_exponent")),
      power_tau_(law.number("power_tau_s")),
      power_dram_(law.number("power_dram")),
      fraction_(law.number("wave_fraction")),
      copies_(law.number("operand_copies")),
      guard_(std::max(1.0, law.number("guard"))) {
  const bool warp_groups = tiles.number_or("warp_groups", 0) > 0;
  for (const auto& t : tiles.elements("tiles")) tiles_.push_back(read_tile(t, warp_groups));
  ensure(!tiles_.empty() && choice_.size() == 8, "a tensor-core calibration lists no tile or not eight choice weights");
  bias_.resize(tiles_.size(), 0.0);
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

TensorLaw::Wave TensorLaw::wave(const TensorTile& tile, const TensorProblem& p, double in_flight, double split,
                                double q, double active, double cold, const TensorMachine& machine) const {
  const double tm = tile.tile_m;
  const double tn = tile.tile_n;
  const double step = tile.k_step * p.step_scale;
  const double steps = std::ceil(p.k / (split * step)) * step;
  const double idle_share = machine.sms / active;

  // Per unit of k, in cycles.
  const double tensor = q * tm * tn / (machine.rate * issue_ * p.issue_scale) * (1 + warps_ / (q * tile.warps));
  const double l2 = q * (p.a * tm + p.w * tn) / (machine.l2_scale * std::min(l2_rate_ * idle_share, l2_cap_));
  double dram = 0;
  if (cold > 0) {
    // The rasteriser keeps a square block of tiles in flight; the block reads each of its panels once.
    const double tiles_m = std::ceil(p.m / tm);
    const double tiles_n = std::ceil(p.n / tn);
    double um = std::clamp(std::sqrt(in_flight * tn / tm), 1.0, tiles_m);
    double un = in_flight / um;
    if (un > tiles_n) {
      un = tiles_n;
      um = std::min(in_flight / tiles_n, tiles_m);
    }
    dram = (p.a * std::min(um * tm, p.m) + p.w * std::min(un * tn, p.n)) * cold * machine.clock /
           (bandwidth_share_ * machine.bandwidth);
  }
  const double latency = latency_ / ((tile.stages - 1) * step) + barrier_ / (32 * p.step_scale);
  const double shared =
      q * (tm * tn * p.a * (1.0 / tile.warp_n + 1.0 / tile.warp_m) + p.a * tm + p.w * tn) / (128 * shared_share_);

  const double sum8 = fourth(tensor) * fourth(tensor) + fourth(l2) * fourth(l2) + fourth(dram) * fourth(dram) +
                      fourth(latency) * fourth(latency) + fourth(shared) * fourth(shared);
  Wave out;
  out.loop = steps * std::sqrt(std::sqrt(std::sqrt(sum8))) +
             fill_ * std::min(steps, (tile.stages - 1) * step) * std::max(l2, dram);
  out.store = q * tm * tn * (split > 1 ? 4 : p.o) / std::min(store_ * idle_share, store_cap_);
  out.tensor = steps * tensor;
  out.l2 = steps * l2;
  out.shared = steps * shared;
  out.latency = steps * latency;
  return out;
}

/// Clock left under the power limit, over the boost clock, for a kernel of duration `time` (seconds at full clock).
double TensorLaw::power_share(double activity, double time, double power_scale) const {
  const double limit = power_activity_ * power_scale;
  if (!(activity > limit)) return 1;
  const double settled = std::pow(limit / activity, 1 / power_exponent_);
  return 1 / (1 + (1 / settled - 1) * time / (time + power_tau_));
}

double TensorLaw::reduce_time(const TensorProblem& p, double split, const TensorMachine& machine) const {
  return reduce_ + (8 * split + p.o) * p.m * p.n * p.b / (reduce_rate_ * machine.bandwidth);
}

TensorTime TensorLaw::time(const TensorTile& tile, const TensorProblem& p, double split,
                           const TensorMachine& machine) const {
  const double tiles_m = std::ceil(p.m / tile.tile_m);
  const double tiles_n = std::ceil(p.n / tile.tile_n);
  TensorTime out;
  out.ctas = tiles_m * tiles_n * split * p.b;
  const double slots = machine.sms * tile.ctas_per_sm;
  const double full = std::floor(out.ctas / slots);
  const double rest = out.ctas - full * slots;
  const double operands = (p.m * p.k * p.a + p.n * p.k * p.w);  // one batch entry
  const double cache = l2_share_ * machine.l2;
  const double x4 = cache > 0 ? fourth(copies_ * operands / cache) : 1e30;
  const double cold = x4 / (1 + x4);

  double cycles = 0;
  double fractional = 0;
  double issue = 0;
  const auto account = [&](const Wave& w, double count, double exposed) {
    cycles += count * (w.loop + exposed * (prologue_ + w.store));
    issue += count * w.tensor;
    out.l2 += count * w.l2;
    out.shared += count * w.shared;
    out.latency += count * (w.latency + prologue_);
  };
  const double in_flight = std::max(1.0, slots / (split * p.b));
  if (full > 0) {
    const double early = std::min(full, 2.0);
    account(wave(tile, p, in_flight, split, tile.ctas_per_sm, machine.sms, cold, machine), early, exposed_);
    if (full > 2)
      account(wave(tile, p, in_flight, split, tile.ctas_per_sm, machine.sms, 0, machine), full - 2, exposed_);
    fractional = out.ctas / slots * cycles / full;
  }
  if (rest > 0) {
    const double active = std::min(rest, machine.sms);
    const double q = std::ceil(rest / machine.sms);
    const double flying = std::max(1.0, rest / (split * p.b));
    account(wave(tile, p, flying, split, q, active, full >= 2 ? 0 : cold, machine), 1, 1);
  }
  if (!(full > 0)) fractional = cycles;

  // Whole kernel: panels read again where L2 does not hold them.
  const double block = std::max(1.0, full > 0 ? in_flight : rest / (split * p.b));
  double um = std::clamp(std::sqrt(block * tile.tile_n / tile.tile_m), 1.0, tiles_m);
  double un = block / um;
  if (un > tiles_n) {
    un = tiles_n;
    um = std::min(block / tiles_n, tiles_m);
  }
  const double once = operands * p.b;
  const double panels = (tiles_m * tiles_n / block) *
                        (p.a * std::min(um * tile.tile_m, p.m) + p.w * std::min(un * tile.tile_n, p.n)) * p.k * p.b;
  const double again = std::max(panels, once) - once;
  const double hit = std::min(1.0, cache / operands);
  const double result = p.m * p.n * p.b * p.o;
  out.dram_bytes = once * cold + again * (1 - hit) + result * (copies_ * p.m * p.n * p.o > cache ? 1 : 0.3);
  out.dram = out.dram_bytes / (bandwidth_share_ * machine.bandwidth);

  const double overhead = floor_ - gap_ + ramp_ * std::log1p(once * cold / 5e6);
  const double reduce = split > 1 ? reduce_time(p, split, machine) : 0;
  const double full_clock = norm4(cycles / machine.clock, out.dram) + overhead + reduce;
  const double estimate = fraction_ * fractional + (1 - fraction_) * cycles;
  const double activity = (issue / machine.clock + power_dram_ * out.dram_bytes / machine.bandwidth) / full_clock;
  out.clock_share = power_share(activity, full_clock, machine.power_scale);
  out.whole = full_clock / out.clock_share;
  out.total = out.whole - reduce;
  out.smooth = norm4(estimate / machine.clock, out.dram) + overhead + reduce;
  const double hz = machine.clock * out.clock_share;
  out.tensor = issue / hz;
  out.l2 /= hz;
  out.shared /= hz;
  out.latency /= hz;
  return out;
}

TensorModel::TensorModel(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {
  const auto tree = gpu.calibration.at("gemm_tensor");
  laws_.emplace_back(tree.at("two_byte"), tree);
  if (tree.has("one_byte")) laws_.emplace_back(tree.at("one_byte"), tree);
  reference_sms_ = tree.number("choice_sm_count");
  reference_clock_ = tree.number("reference.clock_hz");
  reference_bandwidth_ = tree.number("reference.bandwidth_bytes_per_s");
  reference_l2_ = tree.number("reference.l2_bytes");
  reference_l2_rate_ = tree.number("reference.l2_bytes_per_cycle_per_sm");
  const double rate =
      tree.number("reference.sm_count") * tree.number("reference.fp16_fma_per_cycle") * reference_clock_;
  reference_power_ = (tree.number("reference.power_limit_w") - tree.number("reference.power_idle_w")) / rate;
}

const TensorLaw& TensorModel::law(DataType math) const {
  return bytes_per_element(math) <= 1 && laws_.size() > 1 ? laws_[1] : laws_[0];
}

TensorMachine TensorModel::reference(DataType math) const {
  TensorMachine out;
  out.sms = reference_sms_;
  out.rate = gpu_.sm.tensor[math];
  out.clock = reference_clock_;
  out.bandwidth = reference_bandwidth_;
  out.l2 = reference_l2_;
  return out;
}

TensorMachine TensorModel::machine(DataType math) const {
  TensorMachine out;
  out.sms = positive(gpu_.sm.count);
  out.rate = gpu_.sm.tensor[math];
  out.clock = gpu_.clocks.boost.value;
  out.bandwidth = gpu_.dram.peak_bandwidth.value;
  out.l2 = gpu_.l2.capacity.value;
  if (gpu_.l2.bytes_per_cycle_per_sm > 0) out.l2_scale = gpu_.l2.bytes_per_cycle_per_sm / reference_l2_rate_;
  const double rate = out.sms * gpu_.sm.tensor[DataType::fp16] * out.clock;
  const double budget = gpu_.power.limit.value - gpu_.power.idle.value;
  if (rate > 0 && budget > 0) out.power_scale = budget / rate / reference_power_;
  return out;
}

kernel::KernelCost TensorModel::cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel) const {
  using kernel::Bound;
  const TensorLaw& law = this->law(launch.math);
  const TensorTile& tile = law.tile(kernel.tile.name);
  const TensorProblem p(kernel.problem);
  const TensorMachine machine = this->machine(launch.math);
  const double split = positive(kernel.tile.split_k);
  const TensorTime t = law.time(tile, p, split, machine);

  kernel::KernelCost out;
  out.time = {t.total};
  out.clock = {machine.clock * t.clock_share};
  out.leg(Bound::tensor) = {t.tensor};
  out.leg(Bound::dram) = {t.dram};
  out.leg(Bound::l2) = {t.l2};
  out.leg(Bound::shared) = {t.shared};
  out.leg(Bound::latency) = {t.latency};
  const double step = tile.k_step * p.step_scale;
  const double k_padded = std::ceil(p.k / (split * step)) * step;
  out.l2_traffic = {t.ctas * (p.a * tile.tile_m + p.w * tile.tile_n) * k_padded +
                    p.m * p.n * p.b * (split > 1 ? 4 * split : p.o)};
  out.shared_traffic = {t.ctas * k_padded *
                        (tile.tile_m * tile.tile_n * p.a * (1.0 / tile.warp_m + 1.0 / tile.warp_n) + p.a * tile.tile_m +
                         p.w * tile.tile_n)};
  out.dram_traffic = {t.dram_bytes};
  return out;
}

kernel::KernelCost TensorModel::reduce_cost(const kernel::GemmKernel& kernel) const {
  const TensorLaw& law = this->law(kernel.problem.math);
  const TensorProblem p(kernel.problem);
  const TensorMachine machine = this->machine(kernel.problem.math);
  const double split = positive(kernel.tile.split_k);
  kernel::KernelCost out;
  out.time = {law.reduce_time(p, split, machine)};
  out.clock = {machine.clock};
  out.l2_traffic = {(4 * split + p.o) * p.m * p.n * p.b};
  out.dram_traffic = {p.o * p.m * p.n * p.b};
  out.leg(kernel::Bound::dram) = {out.dram_traffic.value / (law.bandwidth_share() * machine.bandwidth)};
  out.leg(kernel::Bound::latency) = {std::max(0.0, out.time.value - out.leg(kernel::Bound::dram).value)};
  return out;
}

}  // namespace voltaic::cost
