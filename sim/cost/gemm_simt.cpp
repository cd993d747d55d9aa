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

/// Share of a footprint `x` that a cache of `capacity` cannot keep.
double miss(double capacity, double x) {
  return x > capacity ? 1 - capacity / x : 0;
}

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
  if (tree.has("bias")) {
    const auto bias = tree.numbers("bias");
    std::copy_n(bias.begin(), std::min<std::size_t>(bias.size(), 5), k.bias);
  }
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
      ramp_(tree.number_or("ramp_s", 0)),
      l2_share_(tree.number("l2_share")),
      overlap_(tree.number("overlap_p")),
      reread_(tree.number("reread")),
      drift_(tree.number_or("drift", 0)),
      reduce_(tree.number_or("reduce_s", 0)),
      serial_(tree.number_or("serial_s", 0)),
      evening_(tree.number_or("evening", 0)),
      row_fetch_(tree.number("row_fetch")),
      row_exponent_(tree.number_or("row_fetch_exponent", 0)),
      row_unaligned_(tree.number_or("row_fetch_unaligned", 1)),
      store_(tree.number("store")),
      store_unaligned_(tree.number_or("store_unaligned", 1)) {
  for (const auto& name : tree.keys("kernels")) kernels_.push_back(read_kernel(name, tree.at("kernels." + name)));
  ensure(!kernels_.empty(), "a matrix calibration lists no kernel");
}

const SimtKernel& SimtLaw::kernel(std::string_view name) const {
  for (const auto& k : kernels_) {
    if (k.name == name) return k;
  }
  return kernels_.front();
}

bool SimtLaw::reduces_apart(const SimtProblem& p, double split) const {
  return split > 1 && 4 * split * p.m * p.n <= kernel::kSplitWorkspace;
}

double SimtLaw::reduce_time(const SimtProblem& p, double split, const SimtMachine& machine) const {
  return reduce_ + (split + 1) * p.c_bytes / (2 * machine.bandwidth);
}

SimtTraffic SimtLaw::compulsory(const SimtProblem& p, const SimtMachine& machine) const {
  SimtTraffic out;
  out.cache = l2_share_ * machine.l2;
  out.all_miss = miss(out.cache, p.a_bytes + p.b_bytes + p.c_bytes);
  double rows_apart = row_fetch_ * (std::fmod(p.k, 8) != 0 ? row_unaligned_ : 1);
  if (row_exponent_ != 0) rows_apart *= std::pow(std::clamp(p.k, 32.0, 1024.0) / 128, row_exponent_);
  const double a_factor = p.a_along_k ? rows_apart : 1;
  const double b_factor = p.b_along_k ? rows_apart : 1;
  const double c_factor = store_ * (std::fmod(p.n, 8) != 0 ? store_unaligned_ : 1);
  out.compulsory = (a_factor * p.a_bytes + b_factor * p.b_bytes + c_factor * p.c_bytes) * out.all_miss;
  return out;
}

/// Bytes from device memory: compulsory ones that miss a warm L2, panels read again by later waves, sharing lost when
/// the CTAs of a long k loop drift apart, partial sums added in place.
double SimtLaw::traffic(const SimtKernel& kernel, const SimtProblem& p, const SimtTraffic& shared, double split,
                        const SimtMachine& machine, double ctas, double k_padded) const {
  double bytes = shared.compulsory;
  const double across = std::ceil(p.n / kernel.tile_n);
  const double down = std::ceil(p.m / kernel.tile_m);
  const double at_once = machine.sms * kernel.ctas_per_sm;
  const double rows = std::clamp(std::floor(at_once / across), 1.0, down);
  const double passes_b = std::ceil(down / rows);
  const double passes_a = std::max(1.0, std::ceil(across / at_once));
  bytes += reread_ * (p.b_bytes * (passes_b - 1) * miss(shared.cache, p.b_bytes / (p.b * split)) +
                      p.a_bytes * (passes_a - 1) * miss(shared.cache, p.a_bytes / (p.b * split)));
  if (p.linear) {
    bytes += ctas * (kernel.tile_m * p.a_element + kernel.tile_n * p.b_element) * (p.k / split) * shared.all_miss *
             std::min(1.0, drift_ * k_padded / 4096);
  }
  if (split > 1 && !reduces_apart(p, split)) bytes += 2 * p.c_bytes * (split - 1);
  return bytes;
}

SimtTime SimtLaw::time(const SimtKernel& kernel, const SimtProblem& p, const SimtTraffic& shared, double split,
                       const SimtMachine& machine) const {
  SimtTime out;
  out.ctas = std::ceil(p.n / kernel.tile_n) * std::ceil(p.m / kernel.tile_m) * split * p.b;
  const double k_padded = std::ceil(std::ceil(p.k / split) / kernel.k_step) * kernel.k_step;
  const double in_turn = std::ceil(out.ctas / machine.sms);
  const double per_k = kernel.tile_m * kernel.tile_n / (machine.lanes * kernel.efficiency);
  const double evened = (1 - evening_) * in_turn + evening_ * std::max(out.ctas / machine.sms, 1.0);
  const double unfilled = std::max(0.0, kernel.fill - in_turn) * per_k * k_padded;
  const double cycles = evened * (kernel.prologue + per_k * k_padded) + unfilled;

  double clock = machine.clock;
  if (ramp_ > 0 && machine.boost_ratio > 1) {
    // Short kernels end before the power controller lowers the boost clock.
    const double x = cycles / (clock * machine.boost_ratio) / ramp_;
    clock *= machine.boost_ratio * (1 + x / machine.boost_ratio) / (1 + x);
  }
  out.main_loop = cycles / clock;
  out.fma = std::min(out.main_loop, in_turn * kernel.tile_m * kernel.tile_n / machine.lanes * k_padded / clock);
  out.dram_bytes = traffic(kernel, p, shared, split, machine, out.ctas, k_padded);
  out.total = smooth_max2(out.main_loop, out.dram_bytes / machine.bandwidth, overlap_);
  if (split > 1 && !reduces_apart(p, split)) out.total = smooth_max6(out.total, split * serial_);
  return out;
}

SimtModel::SimtModel(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec), linear_(gpu.calibration.at("gemm_simt.linear")), batched_(gpu.calibration.at("gemm_simt.bmm")) {}

SimtMachine SimtModel::machine(DataType math, const SimtLaw& law) const {
  SimtMachine out;
  out.sms = positive(gpu_.sm.count);
  out.lanes = gpu_.sm.cuda_core[math];
  const double settled = std::min(gpu_.clocks.sustained.value, gpu_.clocks.boost.value);
  out.clock = settled * law.clock_share();
  out.boost_ratio = gpu_.clocks.boost.value / out.clock;
  out.bandwidth = gpu_.dram.peak_bandwidth.value * gpu_.dram.stream_efficiency;
  out.l2 = gpu_.l2.capacity.value;
  return out;
}

kernel::KernelCost SimtModel::cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel) const {
  using kernel::Bound;
  const SimtLaw& law = this->law(kernel.problem.linear);
  const SimtKernel& simt = law.kernel(kernel.tile.name);
  const SimtProblem problem(kernel.problem);
  const SimtMachine machine = this->machine(launch.math, law);
  const double split = positive(kernel.tile.split_k);
  const SimtTime t = law.time(simt, problem, law.compulsory(problem, machine), split, machine);

  kernel::KernelCost out;
  out.time = {t.total};
  out.clock = {machine.clock};
  const double k_padded = std::ceil(problem.k / split) * split;
  out.l2_traffic = {t.ctas / split * (simt.tile_m * problem.a_element + simt.tile_n * problem.b_element) * k_padded +
                    problem.c_bytes * split};
  // Warps of a CTA read their rows and columns of the tile once per k step; filling the tile writes it once.
  const double warps = std::max(1, simt.threads / 32);
  const double side = std::sqrt(simt.tile_m * simt.tile_n / warps);
  out.shared_traffic = {t.ctas / split * k_padded * problem.a_element * (2 * side * warps + simt.tile_m + simt.tile_n)};
  out.dram_traffic = {t.dram_bytes};
  const double cycles_per_s = machine.sms * machine.clock;
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
  out.l2_traffic = {(split + 1) * problem.c_bytes};
  out.dram_traffic = {(split + 1) * problem.c_bytes / 2};
  out.leg(kernel::Bound::dram) = {out.dram_traffic.value / machine.bandwidth};
  out.leg(kernel::Bound::latency) = {out.time.value - out.leg(kernel::Bound::dram).value};
  return out;
}

}  // namespace voltaic::cost
