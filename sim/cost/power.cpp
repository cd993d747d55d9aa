// SPDX-License-Identifier: MIT
#include "sim/cost/power.hpp"

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

namespace {

std::array<double, kDataTypes.size()> by_type(const arch::ParameterTree& tree, const std::string& path) {
  std::array<double, kDataTypes.size()> out{};
  for (const auto& d : kDataTypes) {
    out[static_cast<std::size_t>(d.type)] = tree.number_or(path + '.' + std::string(d.name), 0);
  }
  return out;
}

std::map<std::string, double, std::less<>> by_function(const arch::ParameterTree& tree) {
  std::map<std::string, double, std::less<>> out;
  if (!tree.has("function_instructions")) return out;
  for (const auto& name : tree.keys("function_instructions")) {
    out[name] = tree.number("function_instructions." + name);
  }
  return out;
}

PowerLaw read_law(const arch::ParameterTree& tree) {
  PowerLaw law;
  law.constant_w = tree.number("constant_w");
  law.clock_w = tree.number("clock_w");
  law.dram_j = tree.number("dram_j_per_byte");
  law.l2_j = tree.number("l2_j_per_byte");
  law.tensor_j = by_type(tree, "tensor_j_per_flop");
  law.lane_j = by_type(tree, "lane_j_per_flop");
  law.dram_fp16 = tree.number("dram_fp16_factor");
  law.instruction_j = tree.number("instruction_j");
  law.special_j = tree.number("special_j");
  law.function_instructions = by_function(tree);
  law.constant_math = tree.number("constant_operands_math");
  law.constant_lanes = tree.number_or("constant_operands_lanes", law.constant_math);
  law.constant_dram = tree.number("constant_operands_dram");
  law.voltage_slope = tree.number("voltage_slope");
  law.voltage_least = tree.number("voltage_least");
  law.clock_least = tree.number("clock_least");
  law.gap_share = tree.number_or("gap_share", 1);
  law.limit_share = tree.number("limit_share");
  law.controller_s = tree.number("controller_s");
  return law;
}

/// Locked clocks are requests: no board runs above boost.
double locked_share(const arch::ResolvedGpu& gpu, double least) {
  if (!gpu.operating.clock) return 1;
  return std::clamp(*gpu.operating.clock / gpu.spec.clocks.boost, least, 1.0);
}

/// The board as it is sold, whatever was set on it: its voltage curve and its own limit belong to that.
arch::GpuSpec as_sold(const arch::ResolvedGpu& gpu) {
  if (!gpu.modified) return gpu.spec;
  const auto names = arch::gpu_names();
  if (std::find(names.begin(), names.end(), gpu.board) == names.end()) return gpu.spec;
  return arch::resolve_gpu(gpu.board).spec;
}

}  // namespace

/// A kernel as the controller sees it. Times are at the clock `at`, over boost.
struct PowerModel::Load {
  double at = 1;
  double fixed_s = 0, memory_s = 0;  ///< Do not move with the clock.
  double clocked_s = 0;              ///< At the boost clock.
  double switching_j = 0;
  double dram_j = 0;

  double time(double f) const { return fixed_s + fourth_root(fourth(memory_s) + fourth(clocked_s / f)); }
};

PowerModel::PowerModel(const arch::ResolvedGpu& gpu) : PowerModel(gpu, as_sold(gpu)) {}

PowerModel::PowerModel(const arch::ResolvedGpu& gpu, const arch::GpuSpec& sold)
    : law_(read_law(gpu.calibration.at("power"))),
      boost_(gpu.spec.clocks.boost),
      cap_(law_.limit_share * gpu.operating.power_cap.value_or(gpu.spec.power.limit)),
      own_limit_(law_.limit_share * sold.power.limit),
      l2_rate_{gpu.spec.l2.bytes_per_cycle_per_sm * static_cast<double>(gpu.spec.sm.count) *
               gpu.spec.clocks.boost.value},
      over_sold_(sold.clocks.boost.value > 0 ? gpu.spec.clocks.boost / sold.clocks.boost : 1),
      most_(locked_share(gpu, law_.clock_least)),
      math_share_(law_.constant_math + (1 - law_.constant_math) * gpu.operating.toggle),
      lane_share_(law_.constant_lanes + (1 - law_.constant_lanes) * gpu.operating.toggle),
      dram_share_(law_.constant_dram + (1 - law_.constant_dram) * gpu.operating.toggle) {}

/// A boost clock beyond the board's own takes the voltage that its curve would have there.
double PowerModel::voltage(double f) const {
  return std::max(law_.voltage_least, 1 - law_.voltage_slope * (1 - f * over_sold_));
}

/// Of functions that the law knows; special functions of others count twelve each in special_j.
double PowerModel::function_energy(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const {
  const double elements = static_cast<double>(kernel.rows) * static_cast<double>(kernel.cols);
  double joules = 0;
  bool known = false;
  const auto add = [&](std::string_view function) {
    const auto at = law_.function_instructions.find(function);
    if (at == law_.function_instructions.end()) return;
    joules += elements * at->second * law_.instruction_j;
    known = true;
  };
  add(kernel.function);
  for (const auto function : kernel.fused) add(function);
  return known ? joules : launch.work.special * law_.special_j;
}

double PowerModel::switching(const kernel::Launch& launch, const kernel::KernelCost& cost) const {
  const auto type = static_cast<std::size_t>(launch.math);
  const double each = launch.tensor_cores ? law_.tensor_j[type] : law_.lane_j[type];
  const kernel::Work& work = launch.work;
  const double lanes = launch.math == DataType::fp64 ? 1 : lane_share_;
  // assumed: choosing the operands of a sparse product costs what its idle multipliers save
  const double product = (launch.tensor_cores ? math_share_ : lanes) * 2 * work.mac * each;
  if (const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail)) {
    const double l2_only = std::max(0.0, cost.l2_traffic.value - cost.dram_traffic.value);
    return product + work.other_flop * law_.instruction_j / 2 + function_energy(launch, *vector) + l2_only * law_.l2_j;
  }
  // What a product's energy per operation was measured with holds its way through L2 and its epilogue.
  constexpr double kInside = 0.4;  // assumed: an exponential between products takes 5 of the 12 instructions of a call
  return product + kInside * work.special * law_.special_j;
}

/// Fixed, memory and clocked part as the law tells them, else from the legs: the largest that follows the clock against
/// DRAM; scaled so that they give the kernel's time.
PowerModel::Load PowerModel::load(const kernel::Launch& launch, const kernel::KernelCost& cost) const {
  Load out;
  out.at = boost_.value > 0 && cost.clock.value > 0 ? std::min(1.0, cost.clock / boost_) : 1;
  const double t = cost.time.value;
  const kernel::TimeParts& parts = cost.parts;
  double clocked = parts.clocked.value;
  out.fixed_s = parts.fixed.value;
  out.memory_s = parts.memory.value;
  if (!(out.memory_s + clocked > 0)) {
    out.memory_s = cost.leg(kernel::Bound::dram).value;
    for (std::size_t b = 0; b < kernel::kBounds; ++b) {
      if (static_cast<kernel::Bound>(b) != kernel::Bound::dram) clocked = std::max(clocked, cost.legs[b].value);
    }
    if (l2_rate_.value > 0) clocked = std::max(clocked, (cost.l2_traffic / l2_rate_).value / out.at);
  }
  const double sum = out.fixed_s + fourth_root(fourth(out.memory_s) + fourth(clocked));
  const double scale = sum > 0 ? t / sum : 0;
  out.fixed_s = sum > 0 ? scale * out.fixed_s : t;
  out.memory_s *= scale;
  out.clocked_s = scale * clocked * out.at;
  out.switching_j = switching(launch, cost);
  const double wide = launch.math == DataType::fp16 ? law_.dram_fp16 : 1;
  out.dram_j = dram_share_ * wide * cost.dram_traffic.value * law_.dram_j;
  return out;
}

double PowerModel::power(const Load& load, double f) const {
  const double v2 = voltage(f) * voltage(f);
  const double t = load.time(f);
  const double moving = t > 0 ? (v2 * load.switching_j + load.dram_j) / t : 0;
  return law_.constant_w + law_.clock_w * v2 * f * over_sold_ + moving;
}

/// The largest clock share up to `most` that stays within `watts`; the lowest there is where none does. Power grows
/// with the clock, so halving the interval finds it.
double PowerModel::clock_under(const Load& load, double watts, double most) const {
  if (power(load, most) <= watts) return most;
  double low = std::min(law_.clock_least, most), high = most;
  if (power(load, low) >= watts) return low;
  constexpr int kHalvings = 30;  // 1e-9 of the clock
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (power(load, middle) <= watts ? low : high) = middle;
  }
  return low;
}

void PowerModel::apply(const kernel::Launch& launch, kernel::KernelCost& cost, bool isolated) const {
  if (!(cost.time.value > 0)) return;
  const Load load = this->load(launch, cost);
  double f = 0;
  if (cost.settled) {
    const double here = clock_under(load, cap_.value, 1);
    if (cap_ == own_limit_) {
      f = load.at;
    } else if (load.at <= most_ && most_ < 1) {
      f = std::min(load.at, here);  // the lock holds it already
    } else {
      f = std::min(1.0, load.at * here / clock_under(load, own_limit_.value, 1));
    }
    f = std::min(f, most_);
  } else {
    f = clock_under(load, cap_.value, std::min(load.at, most_));
  }
  const double full = std::min(load.at, most_);
  double t = load.time(f);
  if (isolated && f < full) {
    // The controller acts late: the call runs at its full clock first.
    const double quick = load.time(full);
    t = quick * (1 + (t / quick - 1) * quick / (quick + law_.controller_s));
  }
  double share = f;
  if (f != load.at) {
    // The average over the call: a late controller leaves the first part of a lone one at its full clock.
    share = f < full ? std::clamp(clock_for(load, t), f, full) : f;
    const double stretch = load.at / share;
    const Seconds dram = cost.leg(kernel::Bound::dram);
    for (Seconds& leg : cost.legs) leg = std::min(stretch * leg, Seconds{t});
    cost.leg(kernel::Bound::dram) = std::min(dram, Seconds{t});
    cost.parts = {Seconds{load.fixed_s}, Seconds{load.memory_s}, Seconds{load.clocked_s / share}};
    cost.time = Seconds{t};
    cost.clock = share * boost_;
  }
  // A late controller lets a lone call exceed the limit.
  cost.energy =
      (share > f ? Watts{power(load, share)} : held(power(load, f), power(load, std::min(law_.clock_least, f)))) *
      cost.time;
}

/// The clock share at which the load takes `t`; 1 where its time does not move.
double PowerModel::clock_for(const Load& load, double t) const {
  const double rest = fourth(std::max(0.0, t - load.fixed_s)) - fourth(load.memory_s);
  return rest > 0 && load.clocked_s > 0 ? load.clocked_s / fourth_root(rest) : 1;
}

/// A measured clock may lie a little above what these constants allow: the controller's limit holds all the same, but
/// for loads that exceed it at the lowest clock.
Watts PowerModel::held(double watts, double least) const {
  return std::min(Watts{watts}, std::max(cap_, Watts{least}));
}

void PowerModel::charge(const kernel::Launch& launch, kernel::KernelCost& cost) const {
  const Load load = this->load(launch, cost);
  cost.energy = held(power(load, load.at), power(load, std::min(law_.clock_least, load.at))) * cost.time;
}

Watts PowerModel::gap() const {
  const double v2 = voltage(most_) * voltage(most_);
  return std::min(Watts{law_.constant_w + law_.gap_share * law_.clock_w * v2 * most_ * over_sold_}, cap_);
}

}  // namespace voltaic::cost
