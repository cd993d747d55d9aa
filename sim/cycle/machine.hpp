// SPDX-License-Identifier: MIT
// One GPU as the cycle engine sees it: everything in SM cycles and bytes per SM cycle at one clock.
#pragma once

#include <array>
#include <cstdint>

#include "arch/spec.hpp"
#include "sim/cycle/counters.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle {

/// How one instruction class runs on a sub-partition.
struct OpTiming {
  Pipe pipe = Pipe::alu;
  double interval = 1;  ///< Cycles the pipe is taken by one warp instruction.
  double latency = 4;   ///< From issue to a dependent's issue; of memory accesses, that of a hit in the nearest level.
};

struct Machine {
  std::int64_t sms = 1;
  int partitions = 4;
  int warps_per_partition = 16;
  std::array<OpTiming, kOps> ops{};    ///< `mma` holds what one instruction of the program's shape takes.
  double register_bank_conflicts = 0;  ///< Extra dispatch cycles per three-operand math instruction, as a rate.
  double branch_latency = 0;   ///< Cycles until the first instruction after a taken branch may issue, beyond `stall`.
  double barrier_latency = 0;  ///< From the last arrival to the first issue.
  double cta_launch = 0;       ///< From a free slot to the first instruction of the next CTA.

  // Shared LSU and MIO queue of the SM.
  int queue_entries = 4;     ///< Memory instructions a sub-partition may have waiting.
  double port_interval = 2;  ///< Cycles between two requests of one sub-partition into the shared unit.
  double shared_latency = 23, l1_latency = 33;
  double tag_lines = 1;            ///< Lines looked up per cycle.
  double data_bytes = 128;         ///< Per cycle: shared memory and L1 data, one stage.
  double l1_bytes = 0;             ///< Capacity left beside shared memory: bounds what is in flight.
  double port_bytes = 64;          ///< L2 to one SM, per cycle.
  double store_bytes = 64;         ///< One SM to L2: what stores carry.
  double stores_under_way = 1e18;  ///< Bytes of stores that L2 has not taken yet.

  // Behind the SM: whole GPU.
  double l2_bytes_per_cycle = 0, l2_latency = 0, l2_far_latency = 0, l2_capacity = 0;
  double l2_far_share = 1;  ///< Of l2_bytes_per_cycle: what is not copied to the near partition.
  int l2_partitions = 1, l2_slices = 1, l2_ways = 16;
  double dram_bytes_per_cycle = 0;  ///< At the pins.
  double dram_latency = 0;          ///< From issue to data, a row miss in an idle channel.
  int dram_channels = 1;
  double dram_read_share = 1;      ///< Of the pin rate: refresh and row misses of a long read.
  double dram_mixed_share = 1;     ///< The same with half writes: bus turnarounds too.
  bool fills_cut_sectors = false;  ///< L2 reads a sector from DRAM before a part of it is written.
  double dram_sector_pairs = 1;    ///< Share of the rate left when each 64 bytes open a row of DRAM of their own,
  double dram_lines = 1;           ///< and when each 128 do.

  double kernel_start = 0;  ///< Cycles from the start of a kernel to the first instruction of its first CTA.
};

/// The machine at `clock`, for a program with this MMA shape and `carve_out` bytes of shared memory in use per SM.
/// Throws UnsupportedError where the GPU has no such tensor instruction.
Machine make_machine(const arch::GpuSpec& gpu, Hertz clock, const Program& program);

}  // namespace voltaic::cycle
