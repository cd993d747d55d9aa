// SPDX-License-Identifier: MIT
#include "sim/cycle/metrics.hpp"

#include <algorithm>
#include <climits>
#include <cmath>

#include "sim/sm/occupancy.hpp"

namespace voltaic::cycle {
namespace {

constexpr double kSectorBytes = 32;
constexpr int kWarpSize = 32;

double ratio(double part, double whole) {
  const double r = whole > 0 ? part / whole : 0;
  return std::isfinite(r) && r > 0 ? r : 0;
}

/// Sampled counts are extrapolated one by one, so a full resource may come out a hair above full.
double share(double part, double whole) {
  return std::min(1.0, ratio(part, whole));
}

double largest(const std::array<double, kPipes>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// Clock of the memory's pins, which carry a bit at both of its edges. None for memories of unknown channel width.
std::optional<Hertz> dram_clock(const arch::DramSpec& dram) {
  constexpr std::array<std::pair<std::string_view, double>, 3> kChannelBytes{{{"HBM2", 16}, {"HBM3", 8}, {"GDDR6", 2}}};
  constexpr double kEdges = 2;
  for (const auto& [technology, bytes] : kChannelBytes) {
    if (dram.technology.rfind(technology, 0) != 0 || dram.channels <= 1) continue;
    return Hertz{dram.peak_bandwidth.value / (dram.channels * bytes * kEdges)};
  }
  return std::nullopt;
}

/// The cycles against which shares are taken.
struct CycleSums {
  explicit CycleSums(const Executed& k)
      : elapsed(k.counters.cycles),
        all_sms(k.counters.cycles * static_cast<double>(k.machine.sms)),
        active_partitions(k.counters.partition_cycles),
        active_sms(k.counters.partition_cycles / std::max(1, k.machine.partitions)) {}
  double elapsed, all_sms, active_partitions, active_sms;
};

void compute(Metrics& m, const Executed& k, const CycleSums& cycles) {
  const Counters& c = k.counters;
  m.executed = c.issued;
  m.instructions = c.instructions();
  m.ipc_active = ratio(m.instructions, cycles.active_sms);
  m.ipc_elapsed = ratio(m.instructions, cycles.all_sms);
  m.issue_slots_busy = share(m.instructions, cycles.active_partitions);
  for (std::size_t i = 0; i < kPipes; ++i) {
    const bool of_sm = i == static_cast<std::size_t>(Pipe::lsu);
    m.pipes[i] = share(c.pipe_busy[i], of_sm ? cycles.active_sms : cycles.active_partitions);
  }
  m.sm_busy = std::max(m.issue_slots_busy, largest(m.pipes));
  m.sm_throughput = m.sm_busy * share(cycles.active_sms, cycles.all_sms);
}

void memory(Metrics& m, const Executed& k, const CycleSums& cycles) {
  const Counters& c = k.counters;
  const Machine& machine = k.machine;
  const double l2_bytes = kSectorBytes * (c.l2_read_sectors + c.l2_write_sectors);
  const double dram_bytes = c.dram_read_bytes + c.dram_write_bytes;
  const double port_bytes = kSectorBytes * c.l2_read_sectors;
  m.l1_throughput =
      std::max(share(c.lsu_data_busy, cycles.active_sms), share(port_bytes, machine.port_bytes * cycles.active_sms));
  m.l2_throughput = share(l2_bytes, machine.l2_bytes_per_cycle * cycles.elapsed);
  m.dram_throughput = share(dram_bytes, machine.dram_bytes_per_cycle * cycles.elapsed);
  const double active = share(cycles.active_sms, cycles.all_sms);
  m.memory_throughput = std::max({m.l1_throughput * active, m.l2_throughput, m.dram_throughput});
  m.max_bandwidth =
      std::max({share(port_bytes, machine.port_bytes * cycles.all_sms), m.l2_throughput, m.dram_throughput});
  // Turnarounds are most frequent when half the bytes are written.
  const double written = share(c.dram_write_bytes, dram_bytes);
  const double mixed = 2 * std::min(written, 1 - written);
  const double usable = machine.dram_read_share + mixed * (machine.dram_mixed_share - machine.dram_read_share);
  m.memory_busy = std::max({share(c.lsu_data_busy, cycles.all_sms), m.l2_throughput,
                            share(m.dram_throughput, std::clamp(usable, 1e-3, 1.0))});
  m.l1_hit_rate = share(c.l1_hit_sectors, c.l1_sectors);
  m.l2_hit_rate = share(c.l2_hit_sectors, c.l2_read_sectors + c.l2_write_sectors);
  m.dram_read = Bytes{c.dram_read_bytes};
  m.dram_written = Bytes{c.dram_write_bytes};
  m.l2_read_sectors = c.l2_read_sectors;
  m.l2_write_sectors = c.l2_write_sectors;
  m.far_sectors = c.far_sectors;
  m.shared_wavefronts = c.shared_wavefronts;
  m.bank_conflicts = std::max(0.0, c.shared_wavefronts - c.shared_ideal_wavefronts);
}

void warps(Metrics& m, const Executed& k, const CycleSums& cycles) {
  const Counters& c = k.counters;
  double resident = 0;
  for (const double x : c.warp_cycles) resident += std::max(0.0, x);
  m.active_warps = ratio(resident, cycles.active_partitions);
  m.eligible_warps = ratio(c.eligible_warp_cycles, cycles.active_partitions);
  m.issued_warps = ratio(m.instructions, cycles.active_partitions);
  m.one_or_more_eligible = m.issue_slots_busy;
  m.no_eligible = cycles.active_partitions > 0 ? 1 - m.one_or_more_eligible : 0;
  m.warp_cycles_per_instruction = ratio(resident, m.instructions);
  for (std::size_t i = 0; i < kStalls; ++i) m.stalls[i] = share(c.warp_cycles[i], resident);
}

/// CTAs per SM that one resource alone allows: the calculator with the others out of the way. None: it does not limit.
std::optional<int> limit_by(sm::OccupancyLimit what, kernel::CtaResources cta, arch::SmSpec sm) {
  using sm::OccupancyLimit;
  if (what != OccupancyLimit::warps) sm.max_warps = INT_MAX, sm.max_threads_per_cta = 0;
  if (what != OccupancyLimit::registers) sm.registers = 0, sm.max_registers_per_thread = 0;
  if (what != OccupancyLimit::ctas) sm.max_ctas = 0;
  if (what != OccupancyLimit::shared_memory) cta.shared_memory = sm.shared_reserved_per_cta = Bytes{};
  const sm::Occupancy found = sm::occupancy(cta, sm);
  const bool fits = found.limit != OccupancyLimit::does_not_fit;
  if (fits && found.limit != what) return std::nullopt;
  return found.ctas_per_sm;
}

void launch(Metrics& m, const Executed& k, const arch::GpuSpec& gpu) {
  const Program& p = k.program;
  m.grid = p.grid;
  m.threads_per_cta = kWarpSize * p.warps;
  m.registers_per_thread = p.registers_per_thread;
  m.shared_per_cta = Bytes{p.shared_bytes};
  const auto ctas = static_cast<double>(p.grid[0]) * static_cast<double>(p.grid[1]) * static_cast<double>(p.grid[2]);
  m.threads = ctas * m.threads_per_cta;
  m.sms = k.machine.sms;
  m.waves_per_sm = ratio(ctas, static_cast<double>(k.ctas_per_sm) * static_cast<double>(k.machine.sms));
  const kernel::CtaResources cta{m.threads_per_cta, p.registers_per_thread, m.shared_per_cta};
  m.limit_ctas = limit_by(sm::OccupancyLimit::ctas, cta, gpu.sm);
  m.limit_registers = limit_by(sm::OccupancyLimit::registers, cta, gpu.sm);
  m.limit_shared = limit_by(sm::OccupancyLimit::shared_memory, cta, gpu.sm);
  m.limit_warps = limit_by(sm::OccupancyLimit::warps, cta, gpu.sm);
}

void occupancy(Metrics& m, const Executed& k) {
  const double slots = static_cast<double>(k.machine.partitions) * k.machine.warps_per_partition;
  m.theoretical_warps = std::min(slots, static_cast<double>(k.ctas_per_sm) * k.program.warps);
  m.theoretical_occupancy = share(m.theoretical_warps, slots);
  m.achieved_warps = std::min(slots, m.active_warps * k.machine.partitions);
  m.achieved_occupancy = share(m.achieved_warps, slots);
}

}  // namespace

Metrics metrics(const Executed& kernel, const arch::GpuSpec& gpu, Hertz clock) {
  Metrics m;
  const CycleSums cycles(kernel);
  m.elapsed_cycles = cycles.elapsed;
  m.sm_active_cycles = ratio(cycles.active_sms, static_cast<double>(kernel.machine.sms));
  m.sm_clock = clock;
  m.dram_clock = dram_clock(gpu.dram);
  m.duration = Seconds{ratio(cycles.elapsed, clock.value)};
  compute(m, kernel, cycles);
  memory(m, kernel, cycles);
  m.dram_rate = BytesPerSecond{ratio(m.dram_read.value + m.dram_written.value, m.duration.value)};
  warps(m, kernel, cycles);
  launch(m, kernel, gpu);
  occupancy(m, kernel);
  return m;
}

}  // namespace voltaic::cycle
