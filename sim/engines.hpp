// SPDX-License-Identifier: MIT
// Every engine by its kind. The roofline and the analytic engine do not know the cycle engine, which needs the analytic
// one for clocks and power: they meet here.
#pragma once

#include <memory>
#include <optional>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cycle/engine.hpp"

namespace voltaic {

/// The cycle engine over an analytic engine of its own.
class CycleOverAnalytic final : public kernel::CostModel {
 public:
  /// `gpu` must outlive it. Throws UnsupportedError where the SM is not modelled.
  CycleOverAnalytic(const arch::ResolvedGpu& gpu, cycle::SampleOptions sampling);
  kernel::KernelCost cost(const kernel::Launch& launch) const override { return engine_.cost(launch); }
  kernel::KernelCost isolated(const kernel::Launch& launch) const override { return engine_.isolated(launch); }
  const cycle::CycleEngine& cycle() const { return engine_; }

 private:
  std::unique_ptr<kernel::CostModel> reference_;
  cycle::CycleEngine engine_;
};

/// Engine for one resolved GPU, which must outlive it.
std::unique_ptr<kernel::CostModel> make_engine(cost::EngineKind kind, const arch::ResolvedGpu& gpu,
                                               cycle::SampleOptions sampling = {});

/// "steady", "full"; "footprint", "tags".
std::string_view to_string(cycle::Sample sample);
std::string_view to_string(cycle::L2Model model);
std::optional<cost::EngineKind> parse_engine(std::string_view name);
std::optional<cycle::Sample> parse_sample(std::string_view name);
std::optional<cycle::L2Model> parse_l2_model(std::string_view name);

}  // namespace voltaic
