// SPDX-License-Identifier: MIT
// Runs a program on SMs, event by event: warp schedulers, scoreboards, pipes, memory queues, L2 and DRAM.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cycle/counters.hpp"
#include "sim/cycle/machine.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle {

enum class L2Model : std::uint8_t {
  footprint,  ///< Tensor::l2_hit decides.
  tags,       ///< A tag array does, from the addresses of accesses.
};

/// One warp's cycles in one state, for traces.
struct WarpSpan {
  std::int64_t from = 0, to = 0;  ///< Cycles.
  std::uint16_t warp = 0;         ///< 32 (sub-partition + sub-partitions x slot of its CTA) + index within the CTA.
  Stall state = Stall::selected;
  Op op = Op::nop;  ///< Of the instruction that issues (selected) or is waited with.
};

struct RunOptions {
  std::int64_t sms = 1;   ///< SMs simulated, each with all its state.
  double active_sms = 1;  ///< SMs that share L2 and DRAM, at least `sms`: the simulated ones have sms / active of both.
  std::int64_t ctas = 1;  ///< CTAs handed to the simulated SMs, in order, as slots free up.
  std::int64_t first_cta = 0;       ///< Index in the grid of the first one,
  std::int64_t cta_stride = 1;      ///< and how far the next one lies.
  int ctas_per_sm = 1;              ///< Resident at once.
  std::vector<std::int64_t> trips;  ///< Trips of each loop; empty: the program's own. 0 in a place: the program's.
  L2Model l2 = L2Model::footprint;
  std::int64_t trace_from = 0, trace_to = 0;  ///< Cycles of the first SM whose warps are recorded.
  std::int64_t most_instructions = 0;         ///< Above this the run ends with UnsupportedError; 0: no limit.
};

struct Run {
  Counters counters;
  std::vector<WarpSpan> trace;
};

/// Throws ConfigError naming the waiting warps when no warp can ever issue again (a barrier not all warps reach).
Run simulate(const Program& program, const Machine& machine, const RunOptions& options);

}  // namespace voltaic::cycle
