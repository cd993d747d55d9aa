// SPDX-License-Identifier: MIT
#include "sim/cycle/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "sim/cycle/detail/extrapolate.hpp"
#include "sim/cycle/detail/sample_plan.hpp"
#include "sim/cycle/tag_replay.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cycle {
namespace {

constexpr double kSector = 32;
constexpr double kBudget = 400'000;  ///< Warp instructions of a sample: 20 ms at 20 million per second.
constexpr std::int64_t kMostSampled = 200'000'000;
constexpr std::int64_t kMostFull = 20'000'000'000;

int resident_ctas(const Program& program, const arch::GpuSpec& gpu, const Machine& machine) {
  constexpr int kWarp = 32;
  const kernel::CtaResources cta{kWarp * program.warps, program.registers_per_thread, Bytes{program.shared_bytes}};
  int resident = sm::occupancy(cta, gpu.sm).ctas_per_sm;
  resident = std::min(resident, machine.partitions * machine.warps_per_partition / std::max(1, program.warps));
  if (program.ctas_per_sm > 0) resident = std::min(resident, program.ctas_per_sm);
  if (resident >= 1) return resident;
  throw ConfigError(
      "kernel " + program.name, "",
      fmt::format("expected a CTA that one SM can hold ({} registers, {} bytes of shared memory of which "
                  "{} are reserved per CTA, {} threads per CTA), got {} warps of {} registers per thread "
                  "and {} bytes of shared memory",
                  gpu.sm.registers, gpu.sm.shared_memory.value, gpu.sm.shared_reserved_per_cta.value,
                  gpu.sm.max_threads_per_cta, program.warps, program.registers_per_thread, program.shared_bytes));
}

/// Cycles that the busiest resource of this SM needs alone.
double linear_bound(const Counters& c, const Machine& machine, double active_sms) {
  double bound = c.instructions() / machine.partitions;
  for (std::size_t p = 0; p < kPipes; ++p) {
    if (static_cast<Pipe>(p) != Pipe::lsu) bound = std::max(bound, c.pipe_busy[p] / machine.partitions);
  }
  bound = std::max(bound, c.lsu_data_busy);
  if (machine.l2_bytes_per_cycle > 0) {
    const double bytes = kSector * (c.l2_read_sectors + c.l2_write_sectors);
    bound = std::max(bound, active_sms * bytes / machine.l2_bytes_per_cycle);
  }
  if (machine.dram_bytes_per_cycle > 0) {
    bound = std::max(bound, active_sms * (c.dram_read_bytes + c.dram_write_bytes) / machine.dram_bytes_per_cycle);
  }
  return bound;
}

/// Extrapolated shares may end a little below nothing; sums follow their members.
void mend(Counters& c) {
  c.combine(c, [](double& mine, double) { mine = std::max(0.0, mine); });
  c.resident_warp_cycles = 0;
  for (const double x : c.warp_cycles) c.resident_warp_cycles += x;
  c.eligible_warp_cycles = c.warp_cycles[static_cast<std::size_t>(Stall::selected)] +
                           c.warp_cycles[static_cast<std::size_t>(Stall::not_selected)];
  c.issue_cycles = std::min(c.issue_cycles, c.partition_cycles);
}

/// From one SM to all that are alike. The busy cycles of L2 and DRAM are those of the whole already.
void scale(Counters& c, double sms) {
  const double cycles = c.cycles, l2 = c.l2_busy, dram = c.dram_busy;
  c.combine(c, [sms](double& mine, double) { mine *= sms; });
  c.cycles = cycles;
  c.l2_busy = l2;
  c.dram_busy = dram;
}

void set_traffic(Counters& c, const detail::Traffic& t, const Machine& machine) {
  c.l1_sectors = t.l1_sectors;
  c.l1_hit_sectors = t.l1_hit_sectors;
  c.l2_read_sectors = t.l2_read_sectors;
  c.l2_write_sectors = t.l2_write_sectors;
  c.l2_hit_sectors = t.l2_hit_sectors;
  c.far_sectors = std::min(c.far_sectors, c.l2_hit_sectors);
  c.dram_read_bytes = t.dram_read_bytes;
  c.dram_write_bytes = t.dram_write_bytes;
  const double l2 = kSector * (t.l2_read_sectors + t.l2_write_sectors);
  if (machine.l2_bytes_per_cycle > 0) c.l2_busy = l2 / machine.l2_bytes_per_cycle;
  if (machine.dram_bytes_per_cycle > 0) {
    c.dram_busy = (t.dram_read_bytes + t.dram_write_bytes) / machine.dram_bytes_per_cycle;
  }
}

Sampled run_full(const Program& program, const Machine& machine, int resident, L2Model l2) {
  RunOptions o;
  o.sms = std::min(machine.sms, program.ctas());
  o.active_sms = static_cast<double>(o.sms);
  o.ctas = program.ctas();
  o.ctas_per_sm = resident;
  o.l2 = l2;
  o.most_instructions = kMostFull;
  Sampled out;
  out.counters = simulate(program, machine, o).counters;
  out.ctas_per_sm = resident;
  out.simulated_instructions = out.counters.instructions();
  return out;
}

/// One SM of a kernel, run with few trips and CTAs.
class Samples {
 public:
  Samples(const Program& program, const Machine& machine, int resident)
      : program_(program),
        machine_(machine),
        resident_(resident),
        nest_(program),
        plan_(detail::make_plan(program, machine.sms, resident)) {}

  Sampled run() const;

 private:
  /// `sharing`: SMs that work at the same time.
  detail::Extrapolation::Runs runs(double sharing) const {
    return [this, sharing](const detail::Extrapolation::Point& point) {
      RunOptions o;
      o.active_sms = sharing;
      o.ctas = point[detail::kQueue];
      o.cta_stride = machine_.sms;
      o.ctas_per_sm = resident_;
      o.trips.assign(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(program_.loops.size()));
      o.most_instructions = kMostSampled;
      return simulate(program_, machine_, o).counters;
    };
  }
  double queue() const { return static_cast<double>(plan_.queue); }
  /// Cycles of `ctas` on one SM, at most as many as are resident at once.
  double wave(double ctas, double sharing) const {
    detail::Extent mean = plan_.mean, busiest = plan_.busiest;
    mean[detail::kQueue] = busiest[detail::kQueue] = ctas;
    detail::Extrapolation samples(program_, nest_, runs(sharing), kBudget / 4);
    samples.sample(mean, busiest, resident_);
    return samples.at(busiest).cycles;
  }
  /// Cycles if each wave of CTAs began once the one before had ended: no queue takes longer. CTAs that fall out of step
  /// leave the last of a few waves ragged, which lines through two loops and the queue would take for a slope.
  double one_by_one(double sharing) const { return std::ceil(queue() / resident_) * wave(resident_, sharing); }
  /// What the last wave saves where it leaves SMs idle: the others have L2 and DRAM for themselves.
  double saved_by_tail() const;

  const Program& program_;
  const Machine& machine_;
  int resident_;
  detail::LoopNest nest_;
  detail::Plan plan_;
};

double Samples::saved_by_tail() const {
  const auto sms = static_cast<double>(machine_.sms);
  const double tail = std::fmod(plan_.ctas, sms * resident_);
  if (!(tail > 0)) return 0;
  const double each = std::ceil(tail / sms);
  return std::max(0.0, wave(each, sms) - wave(each, tail / each));
}

Sampled Samples::run() const {
  // CTAs of one wave spread over the SMs; of several, all SMs work until the last one.
  const bool waves = plan_.queue > resident_;
  const double sharing = waves ? static_cast<double>(machine_.sms) : plan_.active_sms;
  detail::Extrapolation samples(program_, nest_, runs(sharing), kBudget);
  samples.sample(plan_.mean, plan_.busiest, resident_);
  Sampled out;
  Counters& c = out.counters;
  c = samples.at(plan_.mean);
  if (plan_.busiest != plan_.mean) c.cycles = std::max(c.cycles, samples.at(plan_.busiest).cycles);
  mend(c);
  c.sms = 1;
  scale(c, plan_.active_sms);
  set_traffic(c, detail::traffic(program_, nest_, plan_, machine_), machine_);
  if (samples.lines() > 1) c.cycles = std::min(c.cycles, one_by_one(sharing));
  if (waves) c.cycles -= saved_by_tail();
  Counters one = c;
  one.combine(one, [this](double& mine, double) { mine /= plan_.active_sms; });
  c.cycles = std::max(c.cycles, linear_bound(one, machine_, plan_.active_sms));
  out.ctas_per_sm = resident_;
  out.simulated_instructions = samples.simulated_instructions();
  return out;
}

Sampled run_steady(const Program& program, const Machine& machine, int resident) {
  return Samples(program, machine, resident).run();
}

}  // namespace

Sampled run_kernel(const Program& program, const arch::GpuSpec& gpu, const Machine& machine, SampleOptions options) {
  check(program);
  const int resident = resident_ctas(program, gpu, machine);
  if (options.sample == Sample::full) return run_full(program, machine, resident, options.l2);
  if (options.l2 == L2Model::footprint) return run_steady(program, machine, resident);
  Program replayed = program;
  replay_tags(replayed, machine, resident);
  return run_steady(replayed, machine, resident);
}

}  // namespace voltaic::cycle
