// SPDX-License-Identifier: MIT
#include "sim/cost/analytic.hpp"

#include <variant>

#include "arch/calibration_document.hpp"
#include "sim/cost/roofline.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cost {

namespace {

/// Residency figures that a model left open follow from the CTA's resources.
void fill_residency(const kernel::Launch& launch, const arch::GpuSpec& gpu, kernel::KernelCost& cost) {
  if (cost.ctas_per_sm > 0) return;
  const sm::Occupancy occupancy = sm::occupancy(launch.cta, gpu.sm);
  cost.ctas_per_sm = occupancy.ctas_per_sm;
  cost.occupancy = occupancy.share;
  cost.waves = sm::waves(launch.ctas(), occupancy, gpu.sm);
}

bool fitted_on(const arch::ResolvedGpu& gpu, const std::string& boards) {
  return gpu.calibration.has(boards + '.' + arch::calibration_key(gpu.board));
}

}  // namespace

AnalyticEngine::AnalyticEngine(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      gemm_(gpu),
      conv_(gpu),
      vector_(gpu),
      attention_(gpu),
      moe_(gpu),
      transfer_(gpu),
      power_(gpu),
      measured_(arch::is_measured(gpu)),
      convolutions_measured_(fitted_on(gpu, "settled.tensor_convolutions")),
      experts_measured_(fitted_on(gpu, "settled.experts")) {}

/// Laws that were fitted on this board's own times hold the clock that it settles at; calibration "settled" names the
/// boards of convolutions on tensor cores and of mixtures of experts. Tensor-core products and attention were fitted
/// with the power law, boards of no measurement follow it.
bool AnalyticEngine::settled(const kernel::Launch& launch) const {
  if (std::holds_alternative<kernel::TransferKernel>(launch.detail)) return true;
  if (std::holds_alternative<kernel::ExpertKernel>(launch.detail)) return experts_measured_;
  if (std::holds_alternative<kernel::AttentionKernel>(launch.detail)) return false;
  if (!launch.tensor_cores) return measured_;
  return std::holds_alternative<kernel::ConvKernel>(launch.detail) && convolutions_measured_;
}

kernel::KernelCost AnalyticEngine::at_own_clock(const kernel::Launch& launch, bool isolated) const {
  if (const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail)) return gemm_(launch, *gemm, isolated);
  if (const auto* conv = std::get_if<kernel::ConvKernel>(&launch.detail)) return conv_(launch, *conv);
  if (const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail)) {
    return isolated ? vector_.isolated(launch, *vector) : vector_(launch, *vector);
  }
  if (const auto* attention = std::get_if<kernel::AttentionKernel>(&launch.detail)) return attention_(launch, *attention);
  if (const auto* experts = std::get_if<kernel::ExpertKernel>(&launch.detail)) return moe_(launch, *experts);
  return transfer_(std::get<kernel::TransferKernel>(launch.detail));
}

kernel::KernelCost AnalyticEngine::priced(const kernel::Launch& launch, bool isolated) const {
  kernel::KernelCost cost = at_own_clock(launch, isolated);
  if (!std::holds_alternative<kernel::TransferKernel>(launch.detail)) {
    respect_roofline(launch, gpu_, cost);
    fill_residency(launch, gpu_, cost);
  }
  cost.settled = settled(launch);
  power_.apply(launch, cost, isolated);
  return cost;
}

}  // namespace voltaic::cost
