// SPDX-License-Identifier: MIT
#include "sim/sensitivity.hpp"

#include <algorithm>
namespace voltaic {

const std::vector<HardwareChange>& hardware_changes() {
  static const std::vector<HardwareChange> changes{
      {"gpu.sm.count", "1.1", {"gpu.sm.count"}},
      {"gpu.clocks.boost", "1.1", {"gpu.clocks.boost", "gpu.clocks.sustained"}},
      {"gpu.dram.peak_bandwidth", "1.1", {"gpu.dram.peak_bandwidth"}},
      {"gpu.l2.capacity", "1.25", {"gpu.l2.capacity"}},
  };
  return changes;
}

namespace {

double ratio(Seconds a, Seconds b) {
  return b.value > 0 ? a / b : 1;
}

}  // namespace

std::vector<report::Sensitivity> sensitivities(const graph::OpGraph& forward, const SimulationOptions& options,
                                               const Simulator& simulator, Seconds base_total,
                                               const SensitivityInputs& inputs) {
  std::vector<report::Sensitivity> out;
  const auto add = [&](std::string_view path, std::string change, double r) {
    out.push_back({std::string(path), std::move(change), r});
  };
  if (inputs.resolve) {
    for (const HardwareChange& c : hardware_changes()) {
      std::vector<arch::Override> overrides;
      for (const auto path : c.overrides) overrides.push_back({std::string(path), std::string(c.factor), true});
      const Simulator changed(inputs.resolve(overrides), options.engine);
      add(c.path, "*" + std::string(c.factor), ratio(changed.predict(forward, options).total, base_total));
    }
  }
  SimulationOptions faster_host = options;
  faster_host.host_scale *= 0.5;
  add("host.launch_cost", "*0.5", ratio(simulator.predict(forward, faster_host).total, base_total));
  if (inputs.double_batch) {
    if (auto doubled = inputs.double_batch()) {
      const Seconds total = simulator.predict(std::move(doubled->first), doubled->second).total;
      const double growth = options.samples > 0 ? doubled->second.samples / options.samples : 1;
      add("batch", "*2", ratio(total, base_total) / std::max(growth, 1.0));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.time_ratio < b.time_ratio; });
  return out;
}

}  // namespace voltaic
