// SPDX-License-Identifier: MIT
// What would help most: the same request again with one thing changed at a time.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/simulator.hpp"

namespace voltaic {

/// Ways to make the changed requests; the caller knows how the GPU and the workload were named.
struct SensitivityInputs {
  /// The same GPU with these overrides on top. Empty: hardware is not varied.
  std::function<std::shared_ptr<const arch::ResolvedGpu>(const std::vector<arch::Override>&)> resolve;
  /// The forward graph and its options at twice the batch; nullopt when the workload has no batch. Empty: not varied.
  std::function<std::optional<std::pair<graph::OpGraph, SimulationOptions>>()> double_batch;
};

/// Fields of the GPU that are varied together, and by how much.
struct HardwareChange {
  std::string_view path;
  std::string_view factor;
  std::vector<std::string_view> overrides;  ///< Paths that move.
};
const std::vector<HardwareChange>& hardware_changes();

/// Time ratios, the most helpful first (ties in a fixed order). The batch's ratio is per sample, so below 1 is a gain.
std::vector<report::Sensitivity> sensitivities(const graph::OpGraph& forward, const SimulationOptions& options,
                                               const Simulator& simulator, Seconds base_total,
                                               const SensitivityInputs& inputs);

}  // namespace voltaic
