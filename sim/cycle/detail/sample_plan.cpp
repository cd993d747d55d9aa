// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/sample_plan.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "sim/cycle/detail/memory_unit.hpp"

namespace voltaic::cycle::detail {
namespace {

double trips_at(const Loop& loop, std::int64_t x) {
  return static_cast<double>(loop.trips_at(x));
}

/// Mean over the CTAs in x; over evenly spaced ones where there are very many.
double mean_trips(const Loop& loop, std::int64_t width) {
  if (loop.trips_per_x == 0) return static_cast<double>(loop.trips_at(0));
  constexpr std::int64_t kMost = 65536;
  const std::int64_t n = std::min(width, kMost);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += trips_at(loop, n < width ? i * (width / n) : i);
  return sum / static_cast<double>(n);
}

/// Trips on the SM that has most of them, when each SM takes the next CTA as one of its own ends.
double busiest_load(const Loop& loop, const Program& program, std::int64_t sms, int ctas_per_sm) {
  std::vector<double> load(static_cast<std::size_t>(sms), 0.0);
  const std::int64_t ctas = program.ctas();
  const auto trips = [&](std::int64_t i) { return trips_at(loop, i % program.grid[0]); };
  const std::int64_t first = std::min(ctas, sms * ctas_per_sm);
  for (std::int64_t i = 0; i < first; ++i) load[static_cast<std::size_t>(i % sms)] += trips(i);
  std::priority_queue<double, std::vector<double>, std::greater<>> least(load.begin(), load.end());
  double most = *std::max_element(load.begin(), load.end());
  for (std::int64_t i = first; i < ctas; ++i) {
    const double next = least.top() + trips(i);
    least.pop();
    least.push(next);
    most = std::max(most, next);
  }
  return most;
}

}  // namespace

LoopNest::LoopNest(const Program& program) : program_(program), loops_(program.loops.size()) {
  for (std::size_t l = 0; l < loops_.size(); ++l) loops_[l] = {program.loops[l].begin, program.loops[l].begin};
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& in = program.code[i];
    if (in.op == Op::branch) loops_[in.argument].end = std::max(loops_[in.argument].end, i + 1);
  }
}

bool LoopNest::nested(std::size_t a, std::size_t b) const {
  const auto holds = [](const Range& outer, const Range& inner) {
    return outer.begin <= inner.begin && inner.end <= outer.end;
  };
  return holds(loops_[a], loops_[b]) || holds(loops_[b], loops_[a]);
}

double LoopNest::issues(std::size_t i, const Extent& trips) const {
  const Instruction& in = program_.code[i];
  double times = static_cast<double>(in.repeat) * std::min<int>(in.warps, program_.warps);
  if (in.op == Op::exit) times = program_.warps;
  for (std::size_t l = 0; l < loops_.size(); ++l) {
    if (loops_[l].begin <= i && i < loops_[l].end) times *= trips[l];
  }
  return times;
}

double LoopNest::issues(const Extent& trips) const {
  double sum = 0;
  for (std::size_t i = 0; i < program_.code.size(); ++i) sum += issues(i, trips);
  return sum;
}

Plan make_plan(const Program& program, std::int64_t sms, int ctas_per_sm) {
  Plan plan;
  plan.ctas = static_cast<double>(program.ctas());
  plan.queue = (program.ctas() + sms - 1) / sms;
  plan.active_sms = plan.ctas / static_cast<double>(plan.queue);
  plan.mean[kQueue] = static_cast<double>(plan.queue);
  for (std::size_t l = 0; l < program.loops.size(); ++l) plan.mean[l] = mean_trips(program.loops[l], program.grid[0]);
  plan.busiest = plan.mean;
  constexpr std::int64_t kMostListed = 1 << 20;  // beyond, waves even out
  if (program.ctas() > kMostListed) return plan;
  for (std::size_t l = 0; l < program.loops.size(); ++l) {
    const Loop& loop = program.loops[l];
    if (loop.trips_per_x == 0) continue;
    const double load = busiest_load(loop, program, sms, ctas_per_sm);
    plan.busiest[l] = std::max(plan.mean[l], load / static_cast<double>(plan.queue));
  }
  return plan;
}

Traffic traffic(const Program& program, const LoopNest& nest, const Plan& plan, const Machine& machine) {
  constexpr double kSector = 32;
  Traffic out;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& in = program.code[i];
    if (!is_global(in.op)) continue;
    const Access& access = program.accesses[in.argument];
    if (access.lines == 0) continue;
    const Tensor& tensor = program.tensors[access.tensor];
    const double sectors = plan.ctas * nest.issues(i, plan.mean) * access.sectors;
    if (in.op == Op::store_global || in.op == Op::atomic) {
      const double through = sectors * tensor.write_back;
      out.l2_write_sectors += sectors;
      out.l2_hit_sectors += sectors;
      if (machine.fills_cut_sectors) out.dram_read_bytes += kSector * through * cut_share(access);
      out.dram_write_bytes += kSector * through;
      continue;
    }
    const double asked = sectors * (1 - access.l1_hit);
    out.l1_sectors += sectors;
    out.l1_hit_sectors += sectors - asked;
    out.l2_read_sectors += asked;
    out.l2_hit_sectors += asked * tensor.l2_hit;
    out.dram_read_bytes += kSector * asked * (1 - tensor.l2_hit);
  }
  return out;
}

}  // namespace voltaic::cycle::detail
