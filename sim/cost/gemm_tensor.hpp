// SPDX-License-Identifier: MIT
// Matrix products on tensor cores: the time of a known kernel at the boost clock, from its waves, pipeline and traffic.
// What the power limit leaves of the clock is the business of power.hpp; which kernel the library takes, of
// tensor_choice.hpp.
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
  double floor_scale = 1;   ///< Start of a kernel over that of the same board: it follows the clock.
};

enum class TensorFamily : std::uint8_t {
  tiled,
  slow_skinny,  ///< A tile for few rows that takes a fixed time more than the law says; cause unknown [AIC].
  gemv,         ///< A row of outputs per warp, on CUDA cores: few rows, quantised weights.
};

/// A tile as the library ships it, for two-byte operands; k step and stages scale with the element.
struct TensorTile {
  std::string name;
  TensorFamily family = TensorFamily::tiled;
  int tile_m = 128, tile_n = 128;
  int warps = 4;
  double k_step = 32;
  double stages = 3;
  int ctas_per_sm = 1;
  int warp_m = 64, warp_n = 64;
  double least_m = 1, most_m = 1e18, least_k = 1;          ///< Problems that it serves.
  double issue = 1, prologue = 1, store = 1, extra_s = 0;  ///< Its own share of the law's numbers.
};

struct TensorProblem {
  TensorProblem(const kernel::GemmProblem& problem, const std::vector<double>& unaligned);
  double b, m, n, k;
  double a, w, o;                 ///< Bytes of one element of activation, weight, output.
  double w_shared;                ///< Bytes of one weight as warps read it from shared memory.
  double step_scale;              ///< Tile k step over that for two-byte operands.
  double issue_scale;             ///< Share of the rate left to operands that are not aligned to 16 bytes.
  double a_off_page, w_off_page;  ///< 1 - gcd(row bytes, 2 KiB) / 2 KiB of operands contiguous along k, else 0.
};

struct TensorTime {
  double clocked = 0;  ///< Seconds of all waves.
  double memory = 0;   ///< Seconds of DRAM traffic.
  double fixed = 0;    ///< Start, and the ramp of the first loads.
  double reduce = 0;   ///< Second kernel of a split product.
  double whole = 0;    ///< fixed + (memory^4 + clocked^4)^(1/4) + reduce
  double smooth = 0;   ///< As the library estimates it: waves counted in fractions.
  double tensor = 0;   ///< Seconds the tensor pipes of a busy SM issue.
  double l2 = 0, shared = 0, latency = 0;
  double dram_bytes = 0;
  double ctas = 0;
};

/// Constants of one operand type on one architecture, and its tiles. Per wave of q CTAs on an SM and unit of k, in
/// cycles: the 8-norm of tensor issue (with the conversion of quantised weights), L2, DRAM, latency over the stages in
/// flight, and shared memory; then pipeline fill, prologue and stores. Fitted: see calibration "gemm_tensor".
class TensorLaw {
 public:
  TensorLaw(const arch::ParameterTree& law, const arch::ParameterTree& shared);
  TensorTime time(const TensorTile& tile, const TensorProblem& problem, double split,
                  const TensorMachine& machine) const;
  double reduce_time(const TensorProblem& problem, double split, const TensorMachine& machine) const;

  const std::vector<TensorTile>& tiles() const { return tiles_; }
  const TensorTile& tile(std::string_view name) const;  ///< The first one when the name is unknown.
  const std::vector<double>& unaligned() const { return unaligned_; }
  double bandwidth_share() const { return bandwidth_share_; }

 private:
  struct Wave;
  struct Block;
  Block block(const TensorTile& tile, const TensorProblem& problem, double in_flight) const;
  /// `active` SMs hold `q` CTAs each; the first waves find operands cold, the last may not fill the GPU.
  struct Place {
    double in_flight = 1, q = 1, active = 1;
    bool first = true, last = false;
  };
  Wave wave(const TensorTile& tile, const TensorProblem& problem, double split, const Place& at,
            const TensorMachine& machine) const;
  double cold_share(const TensorProblem& problem, double copies, const TensorMachine& machine) const;
  TensorTime vector_time(const TensorTile& tile, const TensorProblem& problem, const TensorMachine& machine) const;

  std::vector<TensorTile> tiles_;
  std::vector<double> unaligned_;  ///< Issue left to operands aligned to 8, 4 and 2 bytes.
  double floor_, gap_, issue_, warps_, l2_rate_, l2_cap_, latency_, barrier_, prologue_, store_, store_cap_;
  double fill_, fill_shared_, exposed_, exposed_shared_;  ///< With one CTA per SM, with several.
  double bandwidth_share_, ramp_, l2_share_, shared_share_, reduce_, reduce_rate_, fraction_, copies_;
  double pitch_loss_, convert_, cluster_m_;
  bool activation_warm_;  ///< A kernel before has just written it.
  double gemv_start_ = 0, gemv_per_product_ = 0, gemv_per_weight_ = 0, gemv_cycles_ = 0, gemv_bandwidth_ = 0.9;
};

/// The laws of one GPU.
class TensorModel {
 public:
  explicit TensorModel(const arch::ResolvedGpu& gpu);
  kernel::KernelCost cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel) const;
  kernel::KernelCost reduce_cost(const kernel::GemmKernel& kernel) const;
  /// Index of the law that serves a problem, in the order in which calibration names them.
  std::size_t law_index(const kernel::GemmProblem& problem) const;
  const TensorLaw& law(const kernel::GemmProblem& problem) const { return laws_[law_index(problem)]; }
  const TensorLaw& law_at(std::size_t index) const { return laws_[index]; }
  const std::vector<std::string>& names() const { return names_; }
  TensorMachine machine(const kernel::GemmProblem& problem) const;
  /// The board the library's rules were tuned on, with this GPU's rate per SM.
  TensorMachine reference(const kernel::GemmProblem& problem) const;

 private:
  const arch::GpuSpec& gpu_;
  std::vector<std::string> names_;
  std::vector<TensorLaw> laws_;
  double fitted_clock_, fitted_l2_rate_;
  TensorMachine tuned_;
};

}  // namespace voltaic::cost
