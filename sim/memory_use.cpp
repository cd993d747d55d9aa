// SPDX-License-Identifier: MIT
#include "sim/memory_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/kernel/fused.hpp"
#include "sim/kernel/workspace.hpp"
#include "sim/report/units.hpp"

namespace voltaic {
namespace {

/// Keys and values are cached in the activation type, which 8- and 4-bit requests leave at 16 bits.
std::int64_t cache_bytes(const SimulationOptions& options) {
  const double stored = std::max(2.0, bytes_per_element(multiply_type(options.precision)));
  constexpr double kMost = 4e17;
  return std::llround(std::min(options.kv_cache_elements * stored, kMost));
}

/// Engines plan one block for all their activations; the others take and free memory as they go.
bool plans_ahead(const SimulationOptions& options) {
  return options.framework == kernel::Framework::tensorrt;
}

bool reuses_operands(kernel::Framework framework) {
  return framework == kernel::Framework::tensorrt || kernel::generates_kernels(framework);
}

/// Freed segments that fit nothing else, and the last segment of each pool.
std::int64_t fragments(const graph::MemoryPlan& plan, const arch::ParameterTree& footprint) {
  const double share = footprint.number("fragmentation_share");
  const double pools = footprint.number("pool_bytes");
  const auto transient = static_cast<double>(plan.activations + plan.gradients + plan.workspace);
  return std::llround(std::min(share * transient, 1e18) + pools);
}

}  // namespace

report::MemoryUse memory_use(const graph::OpGraph& graph, const arch::ResolvedGpu& gpu,
                             const SimulationOptions& options, std::span<const std::int64_t> scratch) {
  const graph::MemoryPlan plan = graph::plan_memory(graph, {scratch, reuses_operands(options.framework)});
  const arch::ParameterTree footprint = gpu.calibration.at("footprint");
  report::MemoryUse use;
  use.weights = plan.weights;
  use.gradients = plan.gradients;
  use.optimizer_state = plan.optimizer_state;
  use.activations = plan.activations;
  use.kv_cache = plan.kv_cache > 0 ? plan.kv_cache : cache_bytes(options);
  // The backward pass runs in a thread of its own, with a library handle of its own [PyTorchBLAS].
  const double handles = options.training ? 2 : 1;
  use.workspace = plan.workspace + std::llround(handles * footprint.number("workspace_bytes"));
  use.allocator = plan.allocator + (plans_ahead(options) ? 0 : fragments(plan, footprint));
  use.context = std::llround(footprint.number("context_bytes"));
  use.capacity = std::llround(gpu.spec.dram.usable.value);
  if (plan.peak < graph.nodes().size()) {
    const graph::Node& node = graph.node(plan.peak);
    use.peak_layer = node.layer.empty() ? node.id : node.layer;
    use.peak_phase = node.phase;
  }
  return use;
}

std::int64_t scratch_of(const report::DistinctNode& node) {
  double most = 0;
  for (const auto& k : node.kernels) most = std::max(most, kernel::workspace(k.launch).value);
  constexpr double kMost = 1e18;
  return std::llround(std::min(most, kMost));
}

std::string misfit(const report::MemoryUse& use) {
  return fmt::format("needs {} of {}, most of it {}: does not fit in device memory (voltaic fit says what would)",
                     report::format_gib(static_cast<double>(use.total())),
                     report::format_gib(static_cast<double>(use.capacity)), report::spoken(use.largest()));
}

report::MemoryUse memory_of_both(const report::MemoryUse& prefill, const report::MemoryUse& last_step) {
  report::MemoryUse both = last_step;
  if (prefill.activations > last_step.activations) {
    both.activations = prefill.activations;
    both.peak_layer = prefill.peak_layer;
    both.peak_phase = prefill.peak_phase;
  }
  both.weights = std::max(prefill.weights, last_step.weights);
  both.workspace = std::max(prefill.workspace, last_step.workspace);
  both.allocator = std::max(prefill.allocator, last_step.allocator);
  return both;
}

}  // namespace voltaic
