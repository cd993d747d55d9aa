// SPDX-License-Identifier: MIT
#include "sim/cycle/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

/// Ten SMs at 1 GHz; L2 gives 1000 bytes per cycle, DRAM 500, the port of an SM 50.
Machine toy_machine() {
  Machine m;
  m.sms = 10;
  m.l2_bytes_per_cycle = 1000;
  m.dram_bytes_per_cycle = 500;
  m.port_bytes = 50;
  m.dram_read_share = 0.9;
  m.dram_mixed_share = 0.7;
  return m;
}

arch::GpuSpec toy_gpu() {
  arch::GpuSpec gpu;
  gpu.sm.count = 10;
  gpu.sm.sub_partitions = 4;
  gpu.sm.max_warps = 64;
  gpu.sm.max_ctas = 32;
  gpu.sm.max_threads_per_cta = 1024;
  gpu.sm.registers = 65536;
  gpu.sm.max_registers_per_thread = 255;
  gpu.sm.register_allocation_unit = 256;
  gpu.sm.warp_allocation_granularity = 4;
  gpu.sm.shared_memory = gpu.sm.shared_memory_per_cta = Bytes{96 * 1024};
  gpu.sm.shared_allocation_unit = Bytes{256};
  gpu.dram.technology = "HBM2";
  gpu.dram.channels = 40;
  gpu.dram.peak_bandwidth = BytesPerSecond{1555.2e9};
  return gpu;
}

Program toy_program() {
  Program p;
  p.name = "toy";
  p.warps = 8;
  p.registers_per_thread = 64;
  p.shared_bytes = 32 * 1024;
  p.grid = {5, 10, 1};
  return p;
}

double& at(Counters& c, Stall s) {
  return c.warp_cycles[static_cast<std::size_t>(s)];
}

/// 1000 cycles, in 800 of which each SM holds CTAs: 10 x 4 x 800 = 32,000 cycles of partitions.
Counters toy_counters() {
  Counters c;
  c.cycles = 1000;
  c.partition_cycles = 32000;
  c.issued[static_cast<std::size_t>(Op::ffma)] = 15000;
  c.issued[static_cast<std::size_t>(Op::load_global)] = 1000;
  c.issue_cycles = 16000;
  c.pipe_busy[static_cast<std::size_t>(Pipe::fma)] = 30000;
  c.pipe_busy[static_cast<std::size_t>(Pipe::lsu)] = 2000;
  at(c, Stall::selected) = 16000;
  at(c, Stall::not_selected) = 8000;
  at(c, Stall::long_scoreboard) = 32000;
  at(c, Stall::wait) = 8000;
  c.resident_warp_cycles = 64000;
  c.eligible_warp_cycles = 24000;
  c.lsu_data_busy = 2000;
  c.shared_wavefronts = 500;
  c.shared_ideal_wavefronts = 400;
  c.l1_sectors = 4000, c.l1_hit_sectors = 1000;
  c.l2_read_sectors = 3000, c.l2_write_sectors = 2000, c.l2_hit_sectors = 1000;
  c.dram_read_bytes = 96000, c.dram_write_bytes = 32000;
  return c;
}

Metrics toy_metrics() {
  static const Machine machine = toy_machine();
  static const Program program = toy_program();
  const Counters counters = toy_counters();
  return metrics({counters, machine, program, 2}, toy_gpu(), Hertz{1e9});
}

double sum(const std::array<double, kStalls>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

}  // namespace

TEST_CASE("issue and pipes are counted against the cycles of partitions that hold a CTA", "[cycle][metrics]") {
  const Metrics m = toy_metrics();
  CHECK_THAT(m.ipc_active, WithinRel(2.0, 1e-12));        // 16,000 / (10 x 800)
  CHECK_THAT(m.ipc_elapsed, WithinRel(1.6, 1e-12));       // 16,000 / (10 x 1000)
  CHECK_THAT(m.issue_slots_busy, WithinRel(0.5, 1e-12));  // 16,000 / 32,000
  CHECK_THAT(m.pipe(Pipe::fma), WithinRel(0.9375, 1e-12));
  CHECK_THAT(m.pipe(Pipe::lsu), WithinRel(0.25, 1e-12));  // One unit per SM: 2,000 / 8,000
  CHECK_THAT(m.sm_busy, WithinRel(0.9375, 1e-12));
  CHECK_THAT(m.sm_throughput, WithinRel(0.75, 1e-12));  // 0.9375 x 800 / 1000
  CHECK_THAT(m.sm_active_cycles, WithinRel(800.0, 1e-12));
  CHECK_THAT(m.duration.value, WithinRel(1e-6, 1e-12));
}

TEST_CASE("memory throughputs are bytes over what each level could have moved", "[cycle][metrics]") {
  const Metrics m = toy_metrics();
  CHECK_THAT(m.l2_throughput, WithinRel(0.16, 1e-12));     // 5,000 x 32 / (1000 x 1000)
  CHECK_THAT(m.dram_throughput, WithinRel(0.256, 1e-12));  // 128,000 / (500 x 1000)
  CHECK_THAT(m.l1_throughput, WithinRel(0.25, 1e-12));     // data 2,000 / 8,000; port 96,000 / (50 x 8,000) = 0.24
  CHECK_THAT(m.memory_throughput, WithinRel(0.256, 1e-12));
  // A quarter written: half of the way from 0.9 to 0.7, so 0.256 / 0.8.
  CHECK_THAT(m.memory_busy, WithinRel(0.32, 1e-12));
  CHECK_THAT(m.dram_rate.value, WithinRel(128e9, 1e-12));
  CHECK_THAT(m.l1_hit_rate, WithinRel(0.25, 1e-12));
  CHECK_THAT(m.l2_hit_rate, WithinRel(0.2, 1e-12));
  CHECK_THAT(m.bank_conflicts, WithinRel(100.0, 1e-12));
}

TEST_CASE("warps per scheduler and their states come from resident warp cycles", "[cycle][metrics]") {
  const Metrics m = toy_metrics();
  CHECK_THAT(m.active_warps, WithinRel(2.0, 1e-12));     // 64,000 / 32,000
  CHECK_THAT(m.eligible_warps, WithinRel(0.75, 1e-12));  // 24,000 / 32,000
  CHECK_THAT(m.issued_warps, WithinRel(0.5, 1e-12));
  CHECK_THAT(m.no_eligible + m.one_or_more_eligible, WithinRel(1.0, 1e-12));
  CHECK_THAT(m.warp_cycles_per_instruction, WithinRel(4.0, 1e-12));  // 64,000 / 16,000
  CHECK_THAT(m.stall(Stall::long_scoreboard), WithinRel(0.5, 1e-12));
  CHECK_THAT(m.stall_cycles(Stall::long_scoreboard), WithinRel(2.0, 1e-12));
  CHECK_THAT(sum(m.stalls), WithinRel(1.0, 1e-12));
  CHECK_THAT(m.achieved_occupancy, WithinRel(0.125, 1e-12));    // 2 of 16 warps
  CHECK_THAT(m.theoretical_occupancy, WithinRel(0.25, 1e-12));  // 2 CTAs x 8 of 64 warps
}

TEST_CASE("each resource has its own limit of resident CTAs", "[cycle][metrics]") {
  Metrics m = toy_metrics();
  CHECK(m.limit_ctas == 32);
  CHECK(m.limit_warps == 8);                          // 64 / 8
  CHECK(m.limit_registers == 4);                      // 16,384 / 2,048 = 8 warps in each of 4 partitions, 8 to a CTA
  CHECK(m.limit_shared == 3);                         // 96 / 32 KiB
  CHECK_THAT(m.waves_per_sm, WithinRel(2.5, 1e-12));  // 50 / (2 x 10)
  Program program = toy_program();
  program.shared_bytes = 0;
  program.registers_per_thread = 256;  // One more than a thread may have.
  const Machine machine = toy_machine();
  const Counters counters = toy_counters();
  m = metrics({counters, machine, program, 0}, toy_gpu(), Hertz{1e9});
  CHECK_FALSE(m.limit_shared.has_value());
  CHECK(m.limit_registers == 0);
  CHECK(m.waves_per_sm == 0);
}

TEST_CASE("the memory clock follows from pins and their rate", "[cycle][metrics]") {
  CHECK_THAT(toy_metrics().dram_clock.value().value, WithinRel(1.215e9, 1e-12));  // 1555.2e9 / (40 x 16 x 2)
  arch::GpuSpec gpu = toy_gpu();
  gpu.dram.technology = "core rope";
  const Machine machine = toy_machine();
  const Program program = toy_program();
  const Counters counters;
  const Metrics m = metrics({counters, machine, program, 1}, gpu, Hertz{1e9});
  CHECK_FALSE(m.dram_clock.has_value());
  for (const Metric& metric : metric_list(m)) CHECK(metric.label != "DRAM Frequency");
}

TEST_CASE("a kernel that never ran has metrics of zero, not of nothing", "[cycle][metrics]") {
  const Machine machine;  // Without any rate.
  Program program;
  program.grid = {0, 1, 1};
  const Counters counters;
  const Metrics m = metrics({counters, machine, program, 0}, arch::GpuSpec{}, Hertz{});
  for (const Metric& metric : metric_list(m)) {
    INFO(metric.name);
    CHECK(std::isfinite(metric.value));
    CHECK(metric.value >= 0);
  }
  CHECK(sum(m.stalls) == 0);
}

TEST_CASE("no percentage leaves 0 to 100, whatever was counted", "[cycle][metrics]") {
  const Machine machine = toy_machine();
  const Program program = toy_program();
  std::uint64_t state = 1;
  const auto random = [&state] {  // 64-bit LCG of Knuth; from 0 to 1e6, at times nothing.
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double x = static_cast<double>(state >> 33) / 2147483648.0;
    return x < 0.2 ? 0.0 : std::pow(10.0, 6 * x);
  };
  for (int n = 0; n < 500; ++n) {
    Counters counters;
    counters.combine(counters, [&](double& mine, double) { mine = random(); });
    const Metrics m = metrics({counters, machine, program, 2}, toy_gpu(), Hertz{1e9});
    for (const Metric& metric : metric_list(m)) {
      INFO(metric.name << " = " << metric.value);
      CHECK(std::isfinite(metric.value));
      CHECK(metric.value >= 0);
      if (metric.unit == MetricUnit::percent) CHECK(metric.value <= 100.0);
    }
    const double resident = std::accumulate(counters.warp_cycles.begin(), counters.warp_cycles.end(), 0.0);
    CHECK_THAT(sum(m.stalls), WithinAbs(resident > 0 ? 1.0 : 0.0, 1e-9));
  }
}

TEST_CASE("metrics carry the profiler's names, each once", "[cycle][metrics]") {
  std::set<std::string> names;
  for (const Metric& metric : metric_list(toy_metrics())) CHECK(names.insert(metric.name).second);
  for (const char* name :
       {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed", "l1tex__t_sector_hit_rate.pct",
        "lts__t_sector_hit_rate.pct", "sm__warps_active.avg.pct_of_peak_sustained_active",
        "smsp__issue_active.avg.per_cycle_active", "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"}) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
}

}  // namespace voltaic::cycle
