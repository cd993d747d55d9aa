// SPDX-License-Identifier: MIT
// Matrix products on tensor cores: the time of a known kernel from its waves, pipeline and traffic, and the power cap.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// The machine as this law sees it; rates per SM and cycle.
struct TensorMachine {
  double sms = 1;
  double clock = 1e9;
  double rate = 1024;       ///< Multiply-adds per cycle of one SM.
  double bandwidth = 1e12;  ///< Bytes/s at the pins.
  double l2 = 0;            ///< Bytes.
  double l2_scale = 1;      ///< L2 bytes per cycle over those of the board the law was fitted on.
  double power_scale = 1;   ///< Power budget per peak operation over that of the board the law was fitted on.
};

/// A tile as the library ships it, for two-byte operands; k step and stages scale with the element.
struct TensorTile {
  std::string name;
  int tile_m = 128, tile_n = 128;
  int warps = 4;
  double k_step = 32;
  double stages = 3;
  int ctas_per_sm = 1;
  int warp_m = 64, warp_n = 64;
};

struct TensorProblem {
  explicit TensorProblem(const kernel::GemmProblem& problem);
  double b, m, n, k;
  double a, w, o;      ///< Bytes of one element of activation, weight, output.
  double step_scale;   ///< Tile k step over that for two-byte operands.
  double issue_scale;  ///< Share of the rate left to operands that are not aligned to 16 bytes.
};

struct TensorTime {
  double total = 0;   ///< Seconds of the product, without a reduction of its splits.
  double smooth = 0;  ///< As the library estimates it: waves counted in fractions; the reduction included.
  double whole = 0;   ///< `total` and the reduction.
  double tensor = 0;  ///< Seconds the tensor pipes of a busy SM issue.
  double l2 = 0, shared = 0, latency = 0;
  double dram = 0;  ///< Seconds for `dram_bytes`.
  double dram_bytes = 0;
  double clock_share = 1;  ///< Clock under the power cap over the boost clock.
  double ctas = 0;
};

/// Constants of one operand type on one architecture, and the tiles with their bias in the choice.
class TensorLaw {
 public:
  TensorLaw(const arch::ParameterTree& law, const arch::ParameterTree& tiles);
  TensorTime time(const TensorTile& tile, const TensorProblem& problem, double split,
                  const TensorMachine& machine) const;
  double reduce_time(const TensorProblem& problem, double split, const TensorMachine& machine) const;

  const std::vector<TensorTile>& tiles() const { return tiles_; }
  const std::vector<double>& bias() const { return bias_; }
  const std::vector<double>& choice() const { return choice_; }  ///< c0..c7
  const TensorTile& tile(std::string_view name) const;           ///< The first one when the name is unknown.
  double guard() const { return guard_; }                        ///< Slowest choice over the fastest.
  double bandwidth_share() const { return bandwidth_share_; }

 private:
  struct Wave;
  Wave wave(const TensorTile& tile, const TensorProblem& problem, double ctas, double split, double q, double active,
            double cold, const TensorMachine& machine) const;
  double power_share(double activity, double time, double power_scale) const;

  std::vector<TensorTile> tiles_;
  std::vector<double> bias_, choice_;
  double floor_, gap_, issue_, warps_, l2_rate_, l2_cap_, latency_, barrier_, prologue_, fill_, store_, store_cap_,
      exposed_;
  double bandwidth_share_, ramp_, l2_share_, shared_share_, reduce_, reduce_rate_, power_activity_, power_exponent_,
      power_tau_, power_dram_, fraction_, copies_, guard_;
};

/// The laws of one GPU.
class TensorModel {
 public:
  explicit TensorModel(const arch::ResolvedGpu& gpu);
  kernel::KernelCost cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel) const;
  kernel::KernelCost reduce_cost(const kernel::GemmKernel& kernel) const;
  const TensorLaw& law(DataType math) const;
  TensorMachine machine(DataType math) const;
  /// The board the library's rules were tuned on, with this GPU's rate per SM.
  TensorMachine reference(DataType math) const;

 private:
  const arch::GpuSpec& gpu_;
  std::vector<TensorLaw> laws_;  ///< Two-byte and wider operands first, then one byte where it was fitted.
  double reference_sms_, reference_clock_, reference_bandwidth_, reference_l2_, reference_l2_rate_, reference_power_;
};

}  // namespace voltaic::cost
