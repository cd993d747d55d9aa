// SPDX-License-Identifier: MIT
// What a profiler would say about a simulated kernel: the metrics of Nsight Compute's sections, from counters. Shares
// lie in [0, 1] here; metric_list() turns them into the percentages that the profiler prints.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/counters.hpp"
#include "sim/cycle/machine.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle {

/// A kernel that has run. The counters are those of the whole kernel on all SMs.
struct Executed {
  const Counters& counters;
  const Machine& machine;
  const Program& program;  ///< Of several parts, the one that takes longest: its launch is the one described.
  int ctas_per_sm = 0;
};

struct Metrics {
  // GPU Speed Of Light Throughput: of what the hardware could do in the elapsed cycles, the most used part of each.
  double sm_throughput = 0;      ///< Issue slots and pipes.
  double memory_throughput = 0;  ///< L1, L2 and DRAM.
  double l1_throughput = 0;      ///< Of the cycles in which SMs hold a CTA.
  double l2_throughput = 0, dram_throughput = 0;
  Seconds duration;
  double elapsed_cycles = 0;
  double sm_active_cycles = 0;  ///< In which an SM holds a CTA, mean over all SMs of the GPU.
  Hertz sm_clock;
  std::optional<Hertz> dram_clock;  ///< Not known for every memory.

  // Compute Workload Analysis; instructions per cycle and SM.
  double ipc_active = 0, ipc_elapsed = 0;
  double issue_slots_busy = 0;
  double sm_busy = 0;                   ///< The busiest of issue slots and pipes, of active cycles.
  std::array<double, kPipes> pipes{};   ///< Of active cycles.
  std::array<double, kOps> executed{};  ///< Warp instructions by class.
  double instructions = 0;

  // Memory Workload Analysis.
  BytesPerSecond dram_rate;
  double l1_hit_rate = 0, l2_hit_rate = 0;
  double memory_busy = 0;    ///< The busiest of L1's data stage, L2 and DRAM with the time its pages and refresh take.
  double max_bandwidth = 0;  ///< The busiest of the paths between SM and L2, of L2 and of DRAM's pins.
  Bytes dram_read, dram_written;
  double l2_read_sectors = 0, l2_write_sectors = 0, far_sectors = 0;
  double shared_wavefronts = 0, bank_conflicts = 0;  ///< Conflicts: wavefronts that a layout without them would save.

  // Scheduler Statistics; per scheduler and active cycle.
  double active_warps = 0, eligible_warps = 0, issued_warps = 0;
  double one_or_more_eligible = 0, no_eligible = 0;  ///< Sum to 1 for a kernel that runs.

  // Warp State Statistics.
  double warp_cycles_per_instruction = 0;
  std::array<double, kStalls> stalls{};  ///< Shares of resident warp cycles; sum to 1 for a kernel that runs.

  // Launch Statistics.
  std::array<std::int64_t, 3> grid{};
  int threads_per_cta = 0, registers_per_thread = 0;
  Bytes shared_per_cta;
  double threads = 0, waves_per_sm = 0;
  std::int64_t sms = 0;  ///< Of the GPU.

  // Occupancy; limits are CTAs per SM, none where a resource is not used.
  double theoretical_occupancy = 0, achieved_occupancy = 0;
  double theoretical_warps = 0, achieved_warps = 0;  ///< Per SM.
  std::optional<int> limit_ctas, limit_registers, limit_shared, limit_warps;

  double stall(Stall s) const { return stalls[static_cast<std::size_t>(s)]; }
  double pipe(Pipe p) const { return pipes[static_cast<std::size_t>(p)]; }
  /// Cycles of a warp in this state per instruction that it issues.
  double stall_cycles(Stall s) const { return stall(s) * warp_cycles_per_instruction; }
};

/// All zero where nothing ran; never NaN, no share outside [0, 1].
Metrics metrics(const Executed& kernel, const arch::GpuSpec& gpu, Hertz clock);

/// The profiler's sections, in its order.
enum class Section : std::uint8_t { speed_of_light, compute, memory, scheduler, warp_state, launch, occupancy };
inline constexpr std::size_t kSections = static_cast<std::size_t>(Section::occupancy) + 1;
std::string_view to_string(Section section);  ///< "GPU Speed Of Light Throughput"

enum class MetricUnit : std::uint8_t {
  percent,
  cycle,
  second,
  hertz,
  bytes,
  bytes_per_second,
  instructions_per_cycle,
  instructions,
  sectors,
  wavefronts,
  warps,
  ctas,
  threads,
  registers,
  plain,
};

struct Metric {
  Section section = Section::speed_of_light;
  std::string label;  ///< As on the profiler's page: "Executed Ipc Active".
  std::string name;   ///< As on its command line: "sm__inst_executed.avg.per_cycle_active".
  MetricUnit unit = MetricUnit::plain;
  double value = 0;   ///< In the base unit; percentages 0 to 100.
  bool shown = true;  ///< On the page; the others are in JSON only.
};

/// Every metric, section by section. What is not known is left out.
std::vector<Metric> metric_list(const Metrics& metrics);

/// "Long Scoreboard", as the profiler labels its stalls.
std::string_view label(Stall stall);

}  // namespace voltaic::cycle
