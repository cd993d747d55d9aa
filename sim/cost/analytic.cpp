// SPDX-License-Identifier: MIT
#include "sim/cost/analytic.hpp"

#include <variant>

#include "sim/cost/roofline.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cost {

namespace {

/// A copy over the host link: bytes over the link's rate; protocol overhead is left to the caller's calibration.
kernel::KernelCost transfer_cost(const kernel::TransferKernel& transfer, const arch::GpuSpec& gpu) {
  kernel::KernelCost cost;
  cost.clock = gpu.clocks.boost;
  cost.dram_traffic = transfer.bytes;
  if (gpu.links.pcie_each_way.value > 0) cost.time = transfer.bytes / gpu.links.pcie_each_way;
  cost.roofline = cost.time;
  cost.leg(kernel::Bound::latency) = cost.time;
  return cost;
}

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
    : gpu_(gpu.spec), gemm_(gpu), conv_(gpu), vector_(gpu), attention_(gpu) {}

kernel::KernelCost AnalyticEngine::cost(const kernel::Launch& launch) const {
  kernel::KernelCost cost;
  if (const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail)) {
    cost = gemm_(launch, *gemm);
  } else if (const auto* conv = std::get_if<kernel::ConvKernel>(&launch.detail)) {
    cost = conv_(launch, *conv);
  } else if (const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail)) {
    cost = vector_(launch, *vector);
  } else if (const auto* attention = std::get_if<kernel::AttentionKernel>(&launch.detail)) {
    cost = attention_(launch, *attention);
  } else {
    return transfer_cost(std::get<kernel::TransferKernel>(launch.detail), gpu_);
  }
  respect_roofline(launch, gpu_, cost);
  fill_residency(launch, gpu_, cost);
  return cost;
}

}  // namespace voltaic::cost
