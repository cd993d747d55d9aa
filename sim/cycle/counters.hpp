// SPDX-License-Identifier: MIT
// What a simulated kernel counts, as a profiler would. Every count is linear in the work, so that samples extrapolate
// and parts add up; shares and percentages are derived (metrics.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/cycle/program.hpp"

namespace voltaic::cycle {

/// Where a resident warp's cycles go, by the profiler's names (warp states).
enum class Stall : std::uint8_t {
  selected,          ///< Issued an instruction.
  wait,              ///< Fixed latency of the instruction before.
  long_scoreboard,   ///< Result of a global or local access.
  short_scoreboard,  ///< Result of shared memory, special function, shuffle.
  barrier,
  lg_throttle,         ///< The queue of global accesses is full.
  mio_throttle,        ///< The queue to shared memory, special functions and shuffles is full.
  math_pipe_throttle,  ///< The pipe is busy.
  dispatch_stall,      ///< Register-file ports.
  no_instruction,      ///< After a jump, or a cold instruction cache.
  branch_resolving,
  drain,         ///< Exits once its stores have left.
  not_selected,  ///< Eligible, another warp issued.
};
inline constexpr std::size_t kStalls = static_cast<std::size_t>(Stall::not_selected) + 1;
std::string_view to_string(Stall stall);  ///< "long_scoreboard", as JSON and tables have it.

/// Execution pipes whose busy cycles are counted.
enum class Pipe : std::uint8_t { fma, alu, fp16, fp64, xu, tensor, lsu, control };
inline constexpr std::size_t kPipes = static_cast<std::size_t>(Pipe::control) + 1;
std::string_view to_string(Pipe pipe);

/// Sums over the SMs that were simulated. Cycles of partitions add up over partitions, cycles of warps over warps.
struct Counters {
  double cycles = 0;  ///< From the first CTA's launch until the last access is done: not a sum over SMs.
  double sms = 0;     ///< SMs simulated, weighted as they stand for others.
  double ctas = 0;
  std::array<double, kOps> issued{};          ///< Warp instructions.
  std::array<double, kStalls> warp_cycles{};  ///< Sums to resident_warp_cycles.
  std::array<double, kPipes> pipe_busy{};     ///< Cycles of a partition's pipe (lsu: of the SM's).
  double partition_cycles = 0;                ///< Cycles x partitions of SMs that hold a CTA.
  double issue_cycles = 0;                    ///< Of those, with an issue.
  double resident_warp_cycles = 0;
  double eligible_warp_cycles = 0;  ///< selected + not_selected.
  double shared_wavefronts = 0, shared_ideal_wavefronts = 0;
  double l1_sectors = 0, l1_hit_sectors = 0;                             ///< Loads.
  double l2_read_sectors = 0, l2_write_sectors = 0, l2_hit_sectors = 0;  ///< Hits: of reads and writes.
  double far_sectors = 0;                                                ///< Served by the other partition of L2.
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double l2_busy = 0, dram_busy = 0;  ///< Cycles that the simulated SMs' share of them is busy.
  double lsu_data_busy = 0;           ///< Cycles of the SM's 128-byte data stage.

  double instructions() const;
  /// Applies `f(double& mine, double other)` to every member: sums, scaling, extrapolation.
  template <class F>
  void combine(const Counters& other, F f);
};

template <class F>
void Counters::combine(const Counters& o, F f) {
  f(cycles, o.cycles), f(sms, o.sms), f(ctas, o.ctas);
  for (std::size_t i = 0; i < kOps; ++i) f(issued[i], o.issued[i]);
  for (std::size_t i = 0; i < kStalls; ++i) f(warp_cycles[i], o.warp_cycles[i]);
  for (std::size_t i = 0; i < kPipes; ++i) f(pipe_busy[i], o.pipe_busy[i]);
  f(partition_cycles, o.partition_cycles), f(issue_cycles, o.issue_cycles);
  f(resident_warp_cycles, o.resident_warp_cycles), f(eligible_warp_cycles, o.eligible_warp_cycles);
  f(shared_wavefronts, o.shared_wavefronts), f(shared_ideal_wavefronts, o.shared_ideal_wavefronts);
  f(l1_sectors, o.l1_sectors), f(l1_hit_sectors, o.l1_hit_sectors);
  f(l2_read_sectors, o.l2_read_sectors), f(l2_write_sectors, o.l2_write_sectors), f(l2_hit_sectors, o.l2_hit_sectors);
  f(far_sectors, o.far_sectors);
  f(dram_read_bytes, o.dram_read_bytes), f(dram_write_bytes, o.dram_write_bytes);
  f(l2_busy, o.l2_busy), f(dram_busy, o.dram_busy), f(lsu_data_busy, o.lsu_data_busy);
}

}  // namespace voltaic::cycle
