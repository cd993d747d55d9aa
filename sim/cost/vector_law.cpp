// SPDX-License-Identifier: MIT
#include "sim/cost/vector_law.hpp"

#include <algorithm>

namespace voltaic::cost {

namespace {

VectorLaw read_law(const arch::ParameterTree& tree, VectorLaw law) {
  const auto take = [&tree](std::string_view name, double& value) { value = tree.number_or(name, value); };
  const bool single_share = tree.has("stream_share") && !tree.has("stream_share_two");
  take("stream_share", law.stream_share);
  if (single_share) law.stream_share_two = law.stream_share;
  take("stream_share_two", law.stream_share_two);
  take("l2_share", law.l2_share);
  take("all_hit_share", law.region.all_hit);
  take("all_miss_share", law.region.all_miss);
  take("efficiency", law.efficiency);
  take("unaligned", law.unaligned);
  take("short_run_efficiency", law.short_run_efficiency);
  take("exponent", law.exponent);
  take("fixed_s", law.fixed_s);
  take("reread_l1_share", law.reread.l1_share);
  take("reread_l2_share", law.reread.l2_share);
  take("row_cycles", law.row_cycles);
  take("step_cycles", law.step_cycles);
  take("least_latency_s", law.least_latency_s);
  take("element_slots", law.element_slots);
  take("elements_in_flight", law.elements_in_flight);
  law.whole_waves = tree.number_or("whole_waves", law.whole_waves ? 1 : 0) > 0;
  return law;
}

}  // namespace

VectorLaws::VectorLaws(const arch::ParameterTree& calibration) {
  const arch::ParameterTree vector = calibration.at("vector");
  const VectorLaw base = read_law(vector.at("kinds.default"), VectorLaw{});
  for (std::size_t i = 0; i < kVectorKinds; ++i) {
    const std::string name(kernel::to_string(static_cast<kernel::VectorKind>(i)));
    const std::string path = "kinds." + name;
    laws_[i] = vector.has(path) ? read_law(vector.at(path), base) : base;
    const std::string idle = "idle_clock." + name;
    if (!vector.has(idle)) continue;
    idle_[i].slowdown = vector.number_or(idle + ".slowdown", 0);
    idle_[i].below_s = vector.number_or(idle + ".below_s", 0);
  }
  for (const auto& name : vector.keys("function_slots")) {
    if (name == "source") continue;
    functions_.emplace_back(name, vector.number("function_slots." + name));
  }
  std::sort(functions_.begin(), functions_.end());
  default_function_ = vector.number_or("function_slots.default", 0);
}

double VectorLaws::function_slots(std::string_view function) const {
  const auto at = std::lower_bound(functions_.begin(), functions_.end(), function,
                                   [](const auto& entry, std::string_view name) { return entry.first < name; });
  return at != functions_.end() && at->first == function ? at->second : default_function_;
}

}  // namespace voltaic::cost
