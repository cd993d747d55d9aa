// SPDX-License-Identifier: MIT
#include "sim/engines.hpp"

namespace voltaic {

CycleOverAnalytic::CycleOverAnalytic(const arch::ResolvedGpu& gpu, cycle::SampleOptions sampling)
    : reference_(cost::make_engine(cost::EngineKind::analytic, gpu)), engine_(gpu.spec, *reference_, sampling) {}

std::unique_ptr<kernel::CostModel> make_engine(cost::EngineKind kind, const arch::ResolvedGpu& gpu,
                                               cycle::SampleOptions sampling) {
  if (kind == cost::EngineKind::cycle) return std::make_unique<CycleOverAnalytic>(gpu, sampling);
  return cost::make_engine(kind, gpu);
}

std::string_view to_string(cycle::Sample sample) {
  return sample == cycle::Sample::full ? "full" : "steady";
}
std::string_view to_string(cycle::L2Model model) {
  return model == cycle::L2Model::tags ? "tags" : "footprint";
}

std::optional<cost::EngineKind> parse_engine(std::string_view name) {
  for (const auto kind : {cost::EngineKind::roofline, cost::EngineKind::analytic, cost::EngineKind::cycle}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}
std::optional<cycle::Sample> parse_sample(std::string_view name) {
  for (const auto sample : {cycle::Sample::steady, cycle::Sample::full}) {
    if (name == to_string(sample)) return sample;
  }
  return std::nullopt;
}
std::optional<cycle::L2Model> parse_l2_model(std::string_view name) {
  for (const auto model : {cycle::L2Model::footprint, cycle::L2Model::tags}) {
    if (name == to_string(model)) return model;
  }
  return std::nullopt;
}

}  // namespace voltaic
