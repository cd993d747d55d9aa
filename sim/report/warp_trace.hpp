// SPDX-License-Identifier: MIT
// The warps of one SM over a window of cycles as a Chrome trace, which Perfetto and chrome://tracing load.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "sim/cycle/simulate.hpp"

namespace voltaic::report {

struct WarpTrace {
  std::string kernel, gpu;
  int partitions = 4;
  std::span<const cycle::WarpSpan> spans;
};

/// One process per sub-partition, one track per warp slot, one event per state a warp was in: the instruction's name
/// where it issues, the stall's where it waits. Cycles stand where such traces have microseconds, so 1 us reads as
/// 1 cycle. Equal spans in any order give equal bytes.
void write_warp_trace(const WarpTrace& trace, std::ostream& out);

}  // namespace voltaic::report
