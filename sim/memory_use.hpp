// SPDX-License-Identifier: MIT
// From the graph that runs to the device memory it takes: the graph's plan, what libraries and the framework add.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/simulator.hpp"

namespace voltaic {

/// `scratch`: by node, what its kernels ask for while they run (kernel::workspace).
report::MemoryUse memory_use(const graph::OpGraph& graph, const arch::ResolvedGpu& gpu,
                             const SimulationOptions& options, std::span<const std::int64_t> scratch);

/// What the kernels of one node ask for: one runs after the other, so the largest counts.
std::int64_t scratch_of(const report::DistinctNode& node);

/// "needs 93.2 GiB of 79.3 GiB, most of it weights: does not fit (voltaic fit says what would)".
std::string misfit(const report::MemoryUse& use);

/// A completion holds the cache of its last step beside whichever phase needs more of each other part.
report::MemoryUse memory_of_both(const report::MemoryUse& prefill, const report::MemoryUse& last_step);

}  // namespace voltaic
