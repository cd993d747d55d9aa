// SPDX-License-Identifier: MIT
#include "sim/cost/engine.hpp"

#include <array>

#include "arch/units/error.hpp"
#include "sim/cost/analytic.hpp"
#include "sim/cost/conv_choice.hpp"
#include "sim/cost/gemm_choice.hpp"
#include "sim/cost/power.hpp"
#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

namespace {

class Library final : public kernel::LibraryChoice {
 public:
  explicit Library(const arch::ResolvedGpu& gpu) : gemm_(gpu), conv_(gpu) {}
  kernel::GemmTile choose(const kernel::GemmProblem& problem) const override { return gemm_(problem); }
  kernel::ConvKernel choose(const kernel::ConvProblem& problem) const override { return conv_(problem); }

 private:
  GemmChoice gemm_;
  ConvChoice conv_;
};

/// The bound with the energy that it would take: the clock stays up, as the bound asks.
class ChargedRoofline final : public kernel::CostModel {
 public:
  explicit ChargedRoofline(const arch::ResolvedGpu& gpu) : bound_(gpu.spec), power_(gpu) {}
  kernel::KernelCost cost(const kernel::Launch& launch) const override {
    kernel::KernelCost cost = bound_.cost(launch);
    power_.charge(launch, cost);
    return cost;
  }

 private:
  RooflineEngine bound_;
  PowerModel power_;
};

}  // namespace

std::string_view to_string(EngineKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"roofline", "analytic", "cycle"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::unique_ptr<kernel::CostModel> make_engine(EngineKind kind, const arch::ResolvedGpu& gpu) {
  ensure(kind != EngineKind::cycle, "the cycle engine is made over a reference");
  if (kind == EngineKind::roofline) return std::make_unique<ChargedRoofline>(gpu);
  return std::make_unique<AnalyticEngine>(gpu);
}

std::unique_ptr<kernel::LibraryChoice> make_library(const arch::ResolvedGpu& gpu) {
  return std::make_unique<Library>(gpu);
}

}  // namespace voltaic::cost
