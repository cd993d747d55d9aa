// SPDX-License-Identifier: MIT
#include "sim/cost/single_op.hpp"

#include <algorithm>
#include <cmath>

#include "arch/calibration_document.hpp"
#include "arch/units/error.hpp"
#include "sim/cost/analytic.hpp"
#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

SingleOp::SingleOp(const arch::ResolvedGpu& gpu) : own_(std::make_unique<AnalyticEngine>(gpu)), engine_(*own_) {
  read_floors(gpu);
}

SingleOp::SingleOp(const arch::ResolvedGpu& gpu, const kernel::CostModel& engine) : engine_(engine) {
  read_floors(gpu);
}

SingleOp::Floor SingleOp::read_floor(const arch::ParameterTree& tree) {
  Floor floor;
  floor.floor_s = tree.number("floor_s");
  floor.launch_s = tree.number("launch_s");
  floor.exponent = tree.number_or("exponent", 16);
  // An interval holds its prediction, also where all that was measured lay on one side.
  floor.known = tree.has("measured_over_predicted");
  floor.low = std::min(1.0, tree.number_or("measured_over_predicted.low", 1));
  floor.high = std::max(1.0, tree.number_or("measured_over_predicted.high", 1));
  floor.delay.scale_s = tree.number_or("delay_s", 0);
  if (floor.delay.scale_s > 0) {
    floor.delay.short_share = tree.number("delay_short_share");
    floor.delay.shortest = tree.number("delay_short");
    floor.delay.longest = tree.number("delay_long");
    floor.delay.quantile = tree.number("delay_quantile");
    const HostDelay& d = floor.delay;
    if (!(d.shortest > 0) || !(d.longest > d.shortest) || !(d.short_share > 0) || !(d.short_share < 1)) {
      throw ConfigError(tree.file(), "single_op",
                        "expected 0 < delay_short < delay_long and a delay_short_share between 0 and 1");
    }
  }
  return floor;
}

void SingleOp::read_floors(const arch::ResolvedGpu& gpu) {
  const arch::ParameterTree tree = gpu.calibration.at("single_op");
  for (const auto& name : tree.keys("")) {
    if (!tree.has(name + ".floor_s")) continue;
    floors_.emplace_back(name, read_floor(tree.at(name)));
    if (name == "default") fallback_ = floors_.back().second;
  }
  board_measured_ = arch::is_measured(gpu);
  if (!gpu.calibration.has("intervals")) return;
  for (const auto& family : gpu.calibration.keys("intervals")) {
    half_widths_[family] = gpu.calibration.number("intervals." + family + ".half_width");
  }
}

/// Softmax kernels and norms by their kind; other vector kernels by their function.
std::string_view SingleOp::key(const kernel::Launch& launch) {
  if (const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail))
    return gemm->problem.linear ? "linear" : "bmm";
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

/// A call meets the floor of the first of its kernels that has one: rows of a norm that are no whole vectors begin with
/// a kernel of another kind.
const SingleOp::Floor& SingleOp::floor_of(std::span<const kernel::Launch> launches) const {
  for (const auto& launch : launches) {
    const std::string_view wanted = key(launch);
    for (const auto& [name, floor] : floors_) {
      if (name == wanted && name != "default") return floor;
    }
  }
  return fallback_;
}

double SingleOp::half_width(std::string_view family) const {
  constexpr double kWider = 1.5;  // nothing of this kind was measured here: DEVIATIONS.md D19
  auto found = half_widths_.find(family);
  if (found == half_widths_.end()) found = half_widths_.find("unknown");
  return found == half_widths_.end() ? 0.5 : kWider * found->second;
}

double SingleOp::widening(const Floor& floor, std::span<const kernel::Launch> launches, Seconds time) const {
  if (launches.empty() || (floor.known && board_measured_)) return 0;
  double h = half_width(launches.front().family);
  const auto host = half_widths_.find("host");
  if (host != half_widths_.end()) h += host->second * std::min(1.0, floor.floor_s / time.value);
  return h;
}

SingleOp::Timing SingleOp::time(std::span<const kernel::Launch> launches) const {
  Timing out;
  for (const kernel::Launch& launch : launches) {
    const kernel::KernelCost cost = engine_.isolated(launch);
    out.kernel += cost.time;
    if (cost.time > out.main.time) out.main = cost;
  }
  const Floor& floor = floor_of(launches);
  const double base = floor.launch_s + out.kernel.value;
  const double gpu = floor.delay.time(base);
  out.time = Seconds{smooth_max2(floor.floor_s, gpu, floor.exponent)};
  out.floor = Seconds{floor.floor_s};
  if (!(floor.delay.scale_s > 0)) {
    const double h = widening(floor, launches, out.time);
    out.low = std::max(0.0, floor.low - h) * out.time;
    out.high = (floor.high + h) * out.time;
    return out;
  }
  // Delay and kernel err independently of each other.
  out.delay_below = Seconds{gpu - base - floor.delay.at(0.05)};
  out.delay_above = Seconds{floor.delay.at(0.95) - (gpu - base)};
  const double below = std::hypot(out.delay_below.value, (1 - floor.low) * out.kernel.value);
  const double above = std::hypot(out.delay_above.value, (floor.high - 1) * out.kernel.value);
  out.low = Seconds{std::max(out.time.value - below, std::min(floor.floor_s, out.time.value))};
  out.high = Seconds{out.time.value + above};
  return out;
}

/// The density of the time y is flat over each part of z, so weighted by 1/y its integral is a logarithm.
double HostDelay::time(double base) const {
  if (!(scale_s > 0) || !(base > 0)) return base;
  const double middle = base + scale_s * shortest;
  const double end = base + scale_s * longest;
  const double dense = short_share / shortest;
  const double sparse = (1 - short_share) / (longest - shortest);
  const double first = dense * std::log(middle / base);
  const double wanted = quantile * (first + sparse * std::log(end / middle));
  return wanted <= first ? base * std::exp(wanted / dense) : middle * std::exp((wanted - first) / sparse);
}

double HostDelay::at(double q) const {
  if (!(scale_s > 0)) return 0;
  if (q <= short_share) return scale_s * shortest * q / short_share;
  return scale_s * (shortest + (longest - shortest) * (q - short_share) / (1 - short_share));
}

}  // namespace voltaic::cost
