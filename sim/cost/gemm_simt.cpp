// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_simt.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/overlap.hpp"
#include "sim/kernel/gemm.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cost {

namespace {

double positive(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}

constexpr double kPartial = 4;  ///< Bytes of a partial sum: FP32.

SimtKernel read_kernel(std::string name, const arch::ParameterTree& tree) {
  SimtKernel k;
  k.name = std::move(name);
  k.tile_m = static_cast<int>(tree.number("tile_m"));
  k.tile_n = static_cast<int>(tree.number("tile_n"));
  k.k_step = static_cast<int>(tree.number("k_step"));
  k.ctas_per_sm = static_cast<int>(tree.number("ctas_per_sm"));
  k.threads = static_cast<int>(tree.number("threads"));
  k.efficiency = tree.number("efficiency");
  k.prologue = tree.number("prologue_cycles");
  k.fill = tree.number("fill_ctas");
  if (tree.has("splits")) k.splits = tree.numbers("splits");
  if (tree.has("score")) k.score = tree.numbers("score");
  return k;
}

}  // namespace

SimtProblem::SimtProblem(const kernel::GemmProblem& p)
    : b(positive(p.batch)),
      m(positive(p.m)),
      n(positive(p.n)),
      k(positive(p.k)),
      a_element(p.a_bytes),
      b_element(p.b_bytes),
      c_element(p.c_bytes),
      a_bytes(p.a_bytes * b * m * k),
      b_bytes(p.b_bytes * b * k * n),
      c_bytes(p.c_bytes * b * m * n),
      a_along_k(!p.transpose_a),
      b_along_k(p.transpose_b),
      linear(p.linear) {}

SimtLaw::SimtLaw(const arch::ParameterTree& tree)
    : clock_share_(tree.number_or("clock_share", 1)),
      start_share_(tree.number_or("start_share", 1)),
      ramp_(tree.number_or("ramp_s", 0)),
      l2_keep_(tree.number("l2_keep_share")),
      l2_knee_(tree.number("l2_knee_share")),
      overlap_(tree.number("overlap_p")),
      latency_(tree.number("latency_cycles")),
      latency_first_(tree.number("latency_first_cycles")),
      row_sector_(tree.number("row_sector_cycles")),
      prologue_filled_(tree.number("prologue_filled_share")),
      evening_(tree.number("evening")),
      row_short_(tree.number("row_fetch_short")),
      row_long_(tree.number("row_fetch_long")),
      row_short_bytes_(tree.number("row_short_bytes")),
      row_long_bytes_(tree.number("row_long_bytes")),
      spill_(tree.number("spill")),
      spill_from_(tree.number("spill_from")),
      spill_across_(tree.number("spill_across")),
      spill_columns_(tree.number("spill_columns")),
      sector_aligned_(tree.number("sector_aligned")),
      line_aligned_(tree.number("line_aligned")),
      store_(tree.number("store")),
      store_unaligned_(tree.number("store_unaligned")),
      reread_(tree.number("reread")),
      drift_(tree.number("drift")),
      reduce_(tree.number("reduce_s")),
      serial_(tree.number("serial_s")),
      in_place_(tree.number("in_place_s")),
      in_place_part_(tree.number("in_place_part_s")),
      tlb_(tree.number("tlb")),
      tlb_span_(tree.number("tlb_span_bytes")) {
  for (const auto& name : tree.keys("kernels")) kernels_.push_back(read_kernel(name, tree.at("kernels." + name)));
  ensure(!kernels_.empty(), "a matrix calibration lists no kernel");
}

const SimtKernel& SimtLaw::kernel(std::string_view name) const {
  for (const auto& k : kernels_) {
    if (k.name == name) return k;
  }
  return kernels_.front();
}

bool SimtLaw::reduces_apart(const SimtProblem& p, double split) {
  return split > 1 && kPartial * split * p.m * p.n <= kernel::kSplitWorkspace;
}

double SimtLaw::waves_time(const SimtKernel& kernel, const SimtProblem& p, double split, double in_turn,
                           const SimtMachine& machine) const {
  const double k_padded = std::ceil(std::ceil(p.k / split) / kernel.k_step) * kernel.k_step;
  const double per_k = kernel.tile_m * kernel.tile_n / (machine.lanes * kernel.efficiency);
  const double seconds = in_turn * (kernel.prologue + per_k * k_padded) / machine.clock;
  return split > 1 && !reduces_apart(p, split) ? std::max(seconds, split * serial_) : seconds;
}

double SimtLaw::reduce_time(const SimtProblem& p, double split, const SimtMachine& machine) const {
  return reduce_ + (split * kPartial * p.b * p.m * p.n + p.c_bytes) / (2 * machine.bandwidth);
}

/// One kernel on one problem, counted.
struct SimtLaw::Tiles {
  Tiles(const SimtKernel& k, const SimtProblem& p, double parts, const SimtMachine& m)
      : kernel(k), problem(p), machine(m), split(parts) {
    across = std::ceil(p.n / k.tile_n);
    down = std::ceil(p.m / k.tile_m);
    ctas = across * down * split * p.b;
    in_turn = std::ceil(ctas / m.sms);
    at_once = m.sms * k.ctas_per_sm;
    rows = p.m / down;
    columns = p.n / across;
    k_padded = std::ceil(std::ceil(p.k / split) / k.k_step) * k.k_step;
  }
  const SimtKernel& kernel;
  const SimtProblem& problem;
  const SimtMachine& machine;
  double split;
  double across = 1, down = 1, ctas = 1, in_turn = 1, at_once = 1;
  double rows = 1, columns = 1;  ///< Filled, of a mean tile.
  double k_padded = 1;
  double miss = 0;  ///< Of both operands and the output together.
};

double SimtLaw::miss(const SimtMachine& machine, double footprint) const {
  return std::clamp((footprint / std::max(machine.l2, 1.0) - l2_keep_) / l2_knee_, 0.0, 1.0);
}

/// Cycles of the busiest SM.
double SimtLaw::cycles(const Tiles& t) const {
  const SimtKernel& kernel = t.kernel;
  const SimtProblem& p = t.problem;
  const double area = static_cast<double>(kernel.tile_m) * kernel.tile_n;
  // Dense layers were fitted with both operands along k; traced networks show that other layouts take as long.
  double per_k = area / (t.machine.lanes * kernel.efficiency) +
                 row_sector_ * ((p.a_along_k || p.linear ? t.rows : 0) + (p.b_along_k || p.linear ? t.columns : 0));
  if (tlb_ > 0 && p.a_along_k && p.b_along_k) {
    const double span = kernel.ctas_per_sm * (kernel.tile_m * p.a_element + kernel.tile_n * p.b_element) * p.k;
    per_k *= 1 + tlb_ * std::clamp(span / tlb_span_ - 1, 0.0, 1.0) * 8 / kernel.k_step;
  }
  double in_turn = t.in_turn;
  if (kernel.threads == 64) {
    // Two warps keep two of the four partitions busy; CTAs take the halves of an SM two by two.
    constexpr double kHalves[4] = {0, 2, 4, 4};
    const double fours = std::floor(in_turn / 4);
    in_turn = 4 * fours + kHalves[static_cast<int>(in_turn - 4 * fours)];
  }
  const double evened = (1 - evening_) * in_turn + evening_ * std::max(t.ctas / t.machine.sms, 1.0);
  const double prologue = kernel.prologue * (1 - prologue_filled_ + prologue_filled_ * t.rows * t.columns / area);
  const double loop = per_k * t.k_padded;
  // However CTAs even out, the busiest SM multiplies its own.
  const double busiest = t.in_turn * area / t.machine.lanes * t.k_padded;
  const double issue = std::max(busiest, evened * prologue + std::max(evened, kernel.fill) * loop);
  const double rounds = std::max(1.0, t.in_turn / kernel.ctas_per_sm);
  // A step is as many bytes in every type.
  const double steps = t.k_padded * p.a_element / (4 * kernel.k_step);
  const double wait = rounds * t.miss * (latency_ * steps + latency_first_);
  if (!(wait > 0)) return issue;
  const double i2 = issue * issue, w2 = wait * wait;
  return std::sqrt(std::sqrt(i2 * i2 + w2 * w2));
}

/// How many times an operand's bytes cross DRAM.
double SimtLaw::row_factor(const Tiles& t, double element, bool along_k) const {
  if (!along_k || (row_short_ == 1 && row_long_ == 1)) return 1;
  constexpr double kLine = 128, kSector = 32, kMostLines = 1.5, kMostAcross = 8;
  const double row = t.problem.k * element;
  const double length = std::clamp((row - row_short_bytes_) / (row_long_bytes_ - row_short_bytes_), 0.0, 1.0);
  double factor = row_short_ + (row_long_ - row_short_) * length;
  if (spill_ > 0) {
    const double lines = std::min(t.ctas, t.at_once) * (t.rows + spill_columns_ * t.columns) * kLine / t.machine.l2;
    factor *= 1 + spill_ * std::max(0.0, std::min(lines, kMostLines) - spill_from_) *
                      (1 + spill_across_ * (std::min(t.across, kMostAcross) - 1));
  }
  const double straddling = std::fmod(row, kLine) == 0     ? line_aligned_
                            : std::fmod(row, kSector) == 0 ? sector_aligned_
                                                           : 1;
  return 1 + (factor - 1) * straddling;
}

/// Bytes from device memory: compulsory ones that miss a warm L2, panels read again by later waves, sharing lost when
/// the CTAs of a long k loop drift apart, partial sums added in place.
double SimtLaw::traffic(const Tiles& t) const {
  const SimtProblem& p = t.problem;
  const double stores = store_ * (std::fmod(p.n * p.c_element, 32) != 0 ? store_unaligned_ : 1);
  double bytes = (row_factor(t, p.a_element, p.a_along_k) * p.a_bytes +
                  row_factor(t, p.b_element, p.b_along_k) * p.b_bytes + stores * p.c_bytes) *
                 t.miss;
  const double rows = std::clamp(std::floor(t.at_once / t.across), 1.0, t.down);
  const double passes_b = std::ceil(t.down / rows);
  const double passes_a = std::max(1.0, std::ceil(t.across / t.at_once));
  bytes += reread_ * (p.b_bytes * (passes_b - 1) * miss(t.machine, p.b_bytes / (p.b * t.split)) +
                      p.a_bytes * (passes_a - 1) * miss(t.machine, p.a_bytes / (p.b * t.split)));
  if (p.linear && drift_ > 0) {
    bytes += t.ctas * (t.rows * p.a_element + t.columns * p.b_element) * (p.k / t.split) * t.miss *
             std::min(1.0, drift_ * t.k_padded / 4096);
  }
  if (t.split > 1 && !reduces_apart(p, t.split)) bytes += 2 * p.c_bytes * (t.split - 1);
  return bytes;
}

/// An isolated kernel starts at the clock that idle gaps allow and nears the settled one as it lasts: the power
/// controller needs time.
double SimtLaw::clock(const SimtMachine& machine, double cycles) const {
  const double start = machine.boost * start_share_;
  if (!machine.isolated || !(ramp_ > 0) || start <= machine.clock) return machine.clock;
  const double x = cycles / machine.boost / ramp_;
  return (start + machine.clock * x) / (1 + x);
}

SimtTime SimtLaw::time(const SimtKernel& kernel, const SimtProblem& p, double split, const SimtMachine& machine) const {
  Tiles t(kernel, p, split, machine);
  t.miss = miss(machine, p.a_bytes + p.b_bytes + p.c_bytes);
  const double cycles = this->cycles(t);
  SimtTime out;
  out.ctas = t.ctas;
  out.clock = clock(machine, cycles);
  out.main_loop = cycles / out.clock;
  out.fma = t.in_turn * kernel.tile_m * kernel.tile_n / machine.lanes * t.k_padded / out.clock;
  out.dram_bytes = traffic(t);
  out.total = smooth_max2(out.main_loop, out.dram_bytes / machine.bandwidth, overlap_);
  if (split > 1 && !reduces_apart(p, split)) {
    out.total = smooth_max6(out.total, split * serial_) + in_place_ + in_place_part_ * (split - 1);
  }
  return out;
}

SimtModel::SimtModel(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec), linear_(gpu.calibration.at("gemm_simt.linear")), batched_(gpu.calibration.at("gemm_simt.bmm")) {}

SimtMachine SimtModel::machine(DataType math, const SimtLaw& law) const {
  SimtMachine out;
  out.sms = positive(gpu_.sm.count);
  out.lanes = gpu_.sm.cuda_core[math];
  const double settled = std::min(gpu_.clocks.sustained.value, gpu_.clocks.boost.value);
  // Types that multiply at a fraction of the FP32 rate draw too little power to be throttled.
  out.clock = settled * (out.lanes < gpu_.sm.cuda_core[DataType::fp32] ? 1 : law.clock_share());
  out.boost = gpu_.clocks.boost.value;
  out.bandwidth = gpu_.dram.peak_bandwidth.value * gpu_.dram.stream_efficiency;
  out.l2 = gpu_.l2.capacity.value;
  return out;
}

kernel::KernelCost SimtModel::cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel,
                                   bool isolated) const {
  using kernel::Bound;
  const SimtLaw& law = this->law(kernel.problem.linear);
  const SimtKernel& simt = law.kernel(kernel.tile.name);
  const SimtProblem problem(kernel.problem);
  SimtMachine machine = this->machine(launch.math, law);
  machine.isolated = isolated;
  const double split = positive(kernel.tile.split_k);
  const SimtTime t = law.time(simt, problem, split, machine);

  kernel::KernelCost out;
  out.time = {t.total};
  out.clock = {t.clock};
  const double k_padded = std::ceil(problem.k / split) * split;
  out.l2_traffic = {t.ctas / split * (simt.tile_m * problem.a_element + simt.tile_n * problem.b_element) * k_padded +
                    problem.c_bytes * split};
  // Warps of a CTA read their rows and columns of the tile once per k step; filling the tile writes it once.
  const double warps = std::max(1, simt.threads / 32);
  const double side = std::sqrt(simt.tile_m * simt.tile_n / warps);
  out.shared_traffic = {t.ctas / split * k_padded * problem.a_element * (2 * side * warps + simt.tile_m + simt.tile_n)};
  out.dram_traffic = {t.dram_bytes};
  const double cycles_per_s = machine.sms * t.clock;
  out.leg(Bound::fma) = {t.fma};
  out.leg(Bound::dram) = {t.dram_bytes / machine.bandwidth};
  out.leg(Bound::issue) = {std::max(0.0, t.main_loop - t.fma)};
  if (gpu_.l2.bytes_per_cycle_per_sm > 0) {
    out.leg(Bound::l2) = {out.l2_traffic.value / (gpu_.l2.bytes_per_cycle_per_sm * cycles_per_s)};
  }
  if (gpu_.sm.shared_bytes_per_cycle > 0) {
    out.leg(Bound::shared) = {out.shared_traffic.value / (gpu_.sm.shared_bytes_per_cycle * cycles_per_s)};
  }
  return out;
}

kernel::KernelCost SimtModel::reduce_cost(const kernel::GemmKernel& kernel) const {
  const SimtLaw& law = this->law(kernel.problem.linear);
  const SimtProblem problem(kernel.problem);
  const SimtMachine machine = this->machine(DataType::fp32, law);
  const double split = positive(kernel.tile.split_k);
  kernel::KernelCost out;
  out.time = {law.reduce_time(problem, split, machine)};
  out.clock = {machine.clock};
  out.l2_traffic = {split * kPartial * problem.b * problem.m * problem.n + problem.c_bytes};
  out.dram_traffic = {out.l2_traffic.value / 2};
  out.leg(kernel::Bound::dram) = {out.dram_traffic.value / machine.bandwidth};
  out.leg(kernel::Bound::latency) = {out.time.value - out.leg(kernel::Bound::dram).value};
  return out;
}

}  // namespace voltaic::cost
