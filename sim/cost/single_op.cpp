// SPDX-License-Identifier: MIT
#include "sim/cost/single_op.hpp"

#include "arch/units/error.hpp"
#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

namespace {

/// Rows, softmax kernels and norms by their kind; pointwise kernels by their function.
std::string_view key_of(const kernel::VectorKernel& kernel) {
  switch (kernel.kind) {
    case kernel::VectorKind::softmax_warp:
    case kernel::VectorKind::softmax_block:
    case kernel::VectorKind::layer_norm: return kernel::to_string(kernel.kind);
    default: return kernel.function;
  }
}

}  // namespace

SingleOp::SingleOp(const arch::ResolvedGpu& gpu) : cost_(gpu) {
  const arch::ParameterTree tree = gpu.calibration.at("single_op");
  for (const auto& name : tree.keys("")) {
    if (!tree.has(name + ".floor_s")) continue;
    const Floor floor{tree.number(name + ".floor_s"), tree.number(name + ".launch_s"),
                      tree.number_or(name + ".exponent", 16)};
    floors_.emplace_back(name, floor);
    if (name == "default") fallback_ = floor;
  }
}

const SingleOp::Floor& SingleOp::floor_of(const kernel::VectorKernel& kernel) const {
  const std::string_view key = key_of(kernel);
  for (const auto& [name, floor] : floors_) {
    if (name == key) return floor;
  }
  return fallback_;
}

Seconds SingleOp::time(const kernel::Launch& launch) const {
  const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail);
  ensure(vector != nullptr, "the single-operation protocol of vector kernels met another kind of launch");
  const Floor& floor = floor_of(*vector);
  const double k = cost_.isolated(launch, *vector).time.value;
  return Seconds{smooth_max2(floor.floor_s, floor.launch_s + k, floor.exponent)};
}

}  // namespace voltaic::cost
