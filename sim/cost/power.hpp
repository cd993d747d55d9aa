// SPDX-License-Identifier: MIT
// Power of a running kernel, and the clock that the power limit leaves it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// What it takes to run, from calibration section "power"; where each number comes from stands there.
struct PowerLaw {
  double constant_w = 0;  ///< Board, leakage, memory standby.
  double clock_w = 0;     ///< Clock tree and idle pipes at the boost clock.
  double dram_j = 0;      ///< Per byte through DRAM, its way through L2 and L1 included.
  double l2_j = 0;        ///< Per byte that L2 serves without DRAM.
  /// Per operation (a multiply-add is two) on random operands, by the type multiplied.
  std::array<double, kDataTypes.size()> tensor_j{}, lane_j{};
  double dram_fp16 = 1;      ///< Times the energy of DRAM traffic, for random FP16 operands.
  double instruction_j = 0;  ///< Per instruction of one lane: operations outside products count as half of one.
  double special_j = 0;      ///< Per special function.
  /// Instructions of one lane per element of a pointwise function, by name; the gradient takes as many.
  std::map<std::string, double, std::less<>> function_instructions;
  double constant_math = 1;    ///< Share of the energy of tensor-core products on operands that never change.
  double constant_lanes = 1;   ///< The same of other products. Those in FP64 were measured on such operands.
  double constant_dram = 1;    ///< The same of DRAM traffic.
  double voltage_slope = 0;    ///< Relative voltage lost per relative clock lost.
  double voltage_least = 1;    ///< Lowest relative voltage.
  double clock_least = 0.1;    ///< Lowest clock over boost that the controller takes.
  double gap_share = 1;        ///< Of `clock_w` while the host keeps the GPU waiting.
  double limit_share = 1;      ///< Average power it holds, over the limit that was set.
  double controller_s = 1e-3;  ///< Time it needs: shorter calls keep their clock.
};

/// With F the clock over the boost clock, V(F) = max(least, 1 - slope (1 - F)) the relative voltage, E the energy of
/// switching at full voltage:
///     t(F) = fixed + (m^4 + (c/F)^4)^(1/4)      m DRAM time, c everything that follows the clock
///     P(F) = constant + clock V^2 F + (V^2 E + dram bytes) / t(F)
/// The controller takes the largest F with P(F) <= limit. A lone call of t seconds feels it for t/(t + controller) of
/// its length. Laws whose constants were measured on this very board hold its clock already: they move by the ratio of
/// F under the cap that was asked for to F under the board's own limit. [ANTEPARA], [ZEUS], [FLAGPERF], [AIC], [RRZE]: see
/// calibration.
class PowerModel {
 public:
  explicit PowerModel(const arch::ResolvedGpu& gpu);

  /// Sets clock, time, legs and energy of a kernel that was priced at `cost.clock`. `isolated`: a lone call rather than
  /// one of a lasting stream.
  void apply(const kernel::Launch& launch, kernel::KernelCost& cost, bool isolated = false) const;
  /// The energy alone, at the time and clock that `cost` has.
  void charge(const kernel::Launch& launch, kernel::KernelCost& cost) const;
  /// While the host keeps the GPU waiting: clocks stay up, nothing switches.
  Watts gap() const;
  /// Watts that the controller holds.
  Watts cap() const { return cap_; }

 private:
  PowerModel(const arch::ResolvedGpu& gpu, const arch::GpuSpec& sold);

  struct Load;
  Load load(const kernel::Launch& launch, const kernel::KernelCost& cost) const;
  double switching(const kernel::Launch& launch, const kernel::KernelCost& cost) const;
  double function_energy(const kernel::Launch& launch, const kernel::VectorKernel& kernel) const;
  double clock_for(const Load& load, double t) const;
  Watts held(double watts, double least) const;
  double voltage(double f) const;
  double power(const Load& load, double f) const;
  double clock_under(const Load& load, double watts, double most) const;

  PowerLaw law_;
  Hertz boost_;
  Watts cap_, own_limit_;  ///< Asked for, and the board's own.
  BytesPerSecond l2_rate_;
  double over_sold_ = 1;  ///< Boost clock over that of the board as sold.
  double most_ = 1;       ///< Locked clock over boost.
  double math_share_ = 1, lane_share_ = 1, dram_share_ = 1;
};

}  // namespace voltaic::cost
