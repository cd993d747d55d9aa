// SPDX-License-Identifier: MIT
// A whole kernel from a sample of it: one representative SM with its share of L2 and DRAM, few trips of long loops, few
// CTAs of long queues, all counts extrapolated along the lines that they follow.
#pragma once

#include "sim/cycle/simulate.hpp"

namespace voltaic::cycle {

enum class Sample : std::uint8_t {
  steady,  ///< Representative SM, loops and waves extrapolated from their steady state.
  full,    ///< Every CTA of every SM.
};

struct SampleOptions {
  Sample sample = Sample::steady;
  L2Model l2 = L2Model::footprint;
};

struct Sampled {
  Counters counters;  ///< Of the whole kernel: counts of all SMs.
  int ctas_per_sm = 0;
  double simulated_instructions = 0;  ///< Warp instructions that were really run.
};

/// Throws ConfigError for a CTA that no SM can hold.
Sampled run_kernel(const Program& program, const arch::GpuSpec& gpu, const Machine& machine, SampleOptions options);

}  // namespace voltaic::cycle
