// SPDX-License-Identifier: MIT
#include "sim/cost/analytic.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "arch/calibration_document.hpp"
#include "sim/cost/overlap.hpp"
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

arch::ResolvedGpu with_operands_at_hand(const arch::ResolvedGpu& gpu) {
  constexpr double kFaster = 1e9;
  arch::ResolvedGpu out = gpu;
  out.spec.dram.peak_bandwidth = kFaster * gpu.spec.dram.peak_bandwidth;
  out.spec.dram.idle_latency = gpu.spec.dram.idle_latency / kFaster;
  return out;
}

}  // namespace

AnalyticEngine::Laws::Laws(const arch::ResolvedGpu& gpu)
    : gemm(gpu), conv(gpu), vector(gpu), attention(gpu), moe(gpu), recurrent(gpu), sparse(gpu), transfer(gpu) {}

AnalyticEngine::AnalyticEngine(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      at_hand_gpu_(with_operands_at_hand(gpu)),
      laws_(gpu),
      at_hand_(at_hand_gpu_),
      power_(gpu),
      measured_(arch::is_measured(gpu)),
      convolutions_measured_(fitted_on(gpu, "settled.tensor_convolutions")),
      experts_measured_(fitted_on(gpu, "settled.experts")),
      recurrent_measured_(fitted_on(gpu, "settled.recurrent")) {}

/// Laws that were fitted on this board's own times hold the clock that it settles at; calibration "settled" names the
/// boards of convolutions on tensor cores, of mixtures of experts and of recurrent layers. Tensor-core products and
/// attention were fitted with the power law, boards of no measurement follow it.
bool AnalyticEngine::settled(const kernel::Launch& launch) const {
  if (std::holds_alternative<kernel::TransferKernel>(launch.detail)) return true;
  if (std::holds_alternative<kernel::ExpertKernel>(launch.detail)) return experts_measured_;
  if (std::holds_alternative<kernel::RecurrentKernel>(launch.detail)) return recurrent_measured_;
  if (std::holds_alternative<kernel::AttentionKernel>(launch.detail)) return false;
  if (!launch.tensor_cores) return measured_;
  return std::holds_alternative<kernel::ConvKernel>(launch.detail) && convolutions_measured_;
}

kernel::KernelCost AnalyticEngine::Laws::operator()(const kernel::Launch& launch, bool isolated) const {
  if (const auto* k = std::get_if<kernel::GemmKernel>(&launch.detail)) return gemm(launch, *k, isolated);
  if (const auto* k = std::get_if<kernel::ConvKernel>(&launch.detail)) return conv(launch, *k);
  if (const auto* k = std::get_if<kernel::VectorKernel>(&launch.detail)) {
    return isolated ? vector.isolated(launch, *k) : vector(launch, *k);
  }
  if (const auto* k = std::get_if<kernel::AttentionKernel>(&launch.detail)) return attention(launch, *k);
  if (const auto* k = std::get_if<kernel::ExpertKernel>(&launch.detail)) return moe(launch, *k);
  if (const auto* k = std::get_if<kernel::RecurrentKernel>(&launch.detail)) return recurrent(launch, *k);
  if (const auto* k = std::get_if<kernel::SparseKernel>(&launch.detail)) return sparse(launch, *k);
  return transfer(std::get<kernel::TransferKernel>(launch.detail));
}

/// What a kernel would take with all operands at hand follows the clock; what remains of its time is memory's. More
/// bandwidth leaves the first and shortens the second, so that it is never slower at any clock.
void AnalyticEngine::set_parts(const kernel::Launch& launch, bool isolated, kernel::KernelCost& cost) const {
  const double t = cost.time.value - cost.parts.fixed.value;
  const double clocked = std::min(t, at_hand_(launch, isolated).time.value - cost.parts.fixed.value);
  if (!(clocked > 0)) return;
  const double memory = fourth_root(std::max(0.0, fourth(t) - fourth(clocked)));
  cost.parts = {cost.parts.fixed, Seconds{memory}, Seconds{clocked}};
}

kernel::KernelCost AnalyticEngine::priced(const kernel::Launch& launch, bool isolated) const {
  kernel::KernelCost cost = laws_(launch, isolated);
  if (!std::holds_alternative<kernel::TransferKernel>(launch.detail)) {
    respect_roofline(launch, gpu_, cost);
    fill_residency(launch, gpu_, cost);
    set_parts(launch, isolated, cost);
  }
  cost.settled = settled(launch);
  power_.apply(launch, cost, isolated);
  return cost;
}

}  // namespace voltaic::cost
