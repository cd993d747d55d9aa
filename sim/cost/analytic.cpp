// SPDX-License-Identifier: MIT
#include "sim/cost/analytic.hpp"

#include <variant>

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

}  // namespace

AnalyticEngine::AnalyticEngine(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec), gemm_(gpu), conv_(gpu), vector_(gpu), attention_(gpu), transfer_(gpu) {}

kernel::KernelCost AnalyticEngine::priced(const kernel::Launch& launch, bool isolated) const {
  kernel::KernelCost cost;
  if (const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail)) {
    cost = gemm_(launch, *gemm, isolated);
  } else if (const auto* conv = std::get_if<kernel::ConvKernel>(&launch.detail)) {
    cost = conv_(launch, *conv);
  } else if (const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail)) {
    cost = isolated ? vector_.isolated(launch, *vector) : vector_(launch, *vector);
  } else if (const auto* attention = std::get_if<kernel::AttentionKernel>(&launch.detail)) {
    cost = attention_(launch, *attention);
  } else {
    return transfer_(std::get<kernel::TransferKernel>(launch.detail));
  }
  respect_roofline(launch, gpu_, cost);
  fill_residency(launch, gpu_, cost);
  return cost;
}

}  // namespace voltaic::cost
