// SPDX-License-Identifier: MIT
// Device memory of one step of a graph: what persists, and the peak over time of what comes and goes.
#pragma once

#include <cstdint>
#include <span>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

/// What the graph cannot know of the memory it needs.
struct MemoryOptions {
  std::span<const std::int64_t> scratch;  ///< By node: bytes its kernels need beside tensors while they run.
  /// Compilers and engines write a pointwise result over an operand that dies there. Eager frameworks do so only where
  /// the model asks for it, as convolution networks do for activations and residual sums.
  bool reuse_operands = false;
};

/// Bytes by part. All but `allocator` are the bytes of the tensors themselves; the parts add up to the peak.
///
///     total = persistent + max over nodes of (activations + gradients that have arrived + scratch), in whole blocks
///
/// Gradients arrive during backward while activations die, so that their room is partly the same: `gradients` counts
/// all of them, `activations` what the peak needs beyond.
struct MemoryPlan {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer_state = 0;
  std::int64_t activations = 0;
  std::int64_t kv_cache = 0;
  std::int64_t workspace = 0;  ///< Scratch of the kernel that runs at the peak.
  std::int64_t allocator = 0;  ///< Lost to whole blocks and segments [PyTorchAlloc].
  NodeId peak = kNoNode;       ///< The node at which the peak lies.
  std::int64_t total() const {
    return weights + gradients + optimizer_state + activations + kv_cache + workspace + allocator;
  }
};

/// Liveness by first and last use in program order, views sharing storage; backward nodes say what forward must keep.
/// Throws UnsupportedError where sums leave 1e18 bytes.
MemoryPlan plan_memory(const OpGraph& graph, const MemoryOptions& options = {});

}  // namespace voltaic::graph
