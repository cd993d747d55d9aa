// SPDX-License-Identifier: MIT
#include "sim/cost/single_op.hpp"

#include "sim/cost/analytic.hpp"
#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

SingleOp::SingleOp(const arch::ResolvedGpu& gpu)
    : own_(std::make_unique<AnalyticEngine>(gpu)), engine_(*own_), vector_(gpu) {
  read_floors(gpu);
}

SingleOp::SingleOp(const arch::ResolvedGpu& gpu, const kernel::CostModel& engine) : engine_(engine), vector_(gpu) {
  read_floors(gpu);
}

void SingleOp::read_floors(const arch::ResolvedGpu& gpu) {
  const arch::ParameterTree tree = gpu.calibration.at("single_op");
  for (const auto& name : tree.keys("")) {
    if (!tree.has(name + ".floor_s")) continue;
    const Floor floor{tree.number(name + ".floor_s"),
                      tree.number(name + ".launch_s") + tree.number_or(name + ".delay_s", 0),
                      tree.number_or(name + ".exponent", 16), tree.number_or(name + ".measured_over_predicted.low", 1),
                      tree.number_or(name + ".measured_over_predicted.high", 1)};
    floors_.emplace_back(name, floor);
    if (name == "default") fallback_ = floor;
  }
}

/// Softmax kernels and norms by their kind; other vector kernels by their function.
std::string_view SingleOp::key(const kernel::Launch& launch) {
  if (const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail)) return gemm->problem.linear ? "linear" : "bmm";
  if (std::holds_alternative<kernel::ConvKernel>(launch.detail)) return "conv";
  const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail);
  if (vector == nullptr) return "default";
  switch (vector->kind) {
    case kernel::VectorKind::softmax_warp:
    case kernel::VectorKind::softmax_block:
    case kernel::VectorKind::layer_norm: return kernel::to_string(vector->kind);
    default: return vector->function;
  }
}

const SingleOp::Floor& SingleOp::floor_of(std::string_view key) const {
  for (const auto& [name, floor] : floors_) {
    if (name == key) return floor;
  }
  return fallback_;
}

SingleOp::Timing SingleOp::time(std::span<const kernel::Launch> launches) const {
  Timing out;
  for (const kernel::Launch& launch : launches) {
    const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail);
    const kernel::KernelCost cost = vector != nullptr ? vector_.isolated(launch, *vector) : engine_.cost(launch);
    out.kernel += cost.time;
    if (cost.time > out.main.time) out.main = cost;
  }
  const Floor& floor = launches.empty() ? fallback_ : floor_of(key(launches.front()));
  out.time = Seconds{smooth_max2(floor.floor_s, floor.launch_s + out.kernel.value, floor.exponent)};
  out.floor = Seconds{floor.floor_s};
  out.low = floor.low * out.time;
  out.high = floor.high * out.time;
  return out;
}

}  // namespace voltaic::cost
