// SPDX-License-Identifier: MIT
// Matrix products on the CUDA cores: the time of a known kernel, from its tiles and traffic.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// The machine as this law sees it. The library's choice uses another one than the time (see gemm_choice.hpp).
struct SimtMachine {
  double sms = 1;
  double lanes = 64;        ///< Multiply-adds per cycle of one SM in the type multiplied.
  double clock = 1e9;       ///< Hz at which the main loop runs under lasting load.
  double boost = 1e9;       ///< Hz of the boost clock.
  bool isolated = false;    ///< Between idle gaps: short kernels end before the clock has settled.
  double bandwidth = 1e12;  ///< Bytes/s that a long stream reaches.
  double l2 = 0;            ///< Bytes.
};

/// One kernel of the library. "64x128" covers 64 rows and 128 columns of the output; `s`: k sliced over four warp
/// groups.
struct SimtKernel {
  std::string name;
  int tile_m = 128, tile_n = 128;
  int k_step = 8;  ///< The k loop runs in multiples of this.
  int ctas_per_sm = 2;
  int threads = 256;
  double efficiency = 1;          ///< Share of the lanes that the main loop keeps busy.
  double prologue = 0;            ///< Cycles per CTA outside the main loop.
  double fill = 1;                ///< Below this many CTAs per SM the pipes are not filled.
  std::vector<double> splits{1};  ///< Parts of k in which the library ships or takes it.
  std::vector<double> score;      ///< Its own terms of the choice (gemm_choice.hpp); empty: the score does not know it.
};

/// A problem in the terms of the law, in bytes and elements.
struct SimtProblem {
  SimtProblem(const kernel::GemmProblem& problem);
  double b, m, n, k;
  double a_element, b_element, c_element;
  double a_bytes, b_bytes, c_bytes;
  bool a_along_k, b_along_k;  ///< The operand lies contiguous along k: rows are fetched 32 bytes at a time.
  bool linear;
};

struct SimtTime {
  double total = 0;      ///< Seconds of the product alone, without a separate reduction.
  double main_loop = 0;  ///< Seconds on the SM: issue, prologues, unfilled pipes.
  double fma = 0;        ///< Seconds the busiest SM's lanes are busy.
  double dram_bytes = 0;
  double ctas = 0;
  double clock = 0;  ///< Hz
};

/// Constants of one kind of product (a dense layer, or a batched product) on one architecture.
///
///     C = tiles z b;  N = ceil(C/SMs);  em, en = filled rows and columns of a tile;  miss(x) = clip((x/L2 -
///     keep)/knee, 0, 1) c = [ tm tn/(lanes eff) + sectors (em [A along k or dense] + en [B along k or dense]) ] (1 +
///     tlb clip(span/S0 - 1, 0, 1) 8/step) Nh = N, or for CTAs of two warps, which fill an SM half by half, 4
///     floor(N/4) + {0,2,4,4}[N mod 4] Ne = (1 - evening) Nh + evening max(C/SMs, 1);   prologue' = prologue (1 - w + w
///     em en/(tm tn)) issue = max( N tm tn kz/lanes,  Ne prologue' + max(Ne, fill) c kz ) wait  = max(1, N/residency)
///     miss(A+B+C) (latency kz/step + first)         DRAM behind a double-buffered loop bytes = (fA A + fB B + fC C)
///     miss(A+B+C) + re-reads by later waves + sharing lost on long k + sums added in place t     = ((cycles/clock)^p +
///     (bytes/BW)^p)^(1/p),  cycles = (issue^4 + wait^4)^(1/4)
/// fA, fB: rows of an operand that lies along k are fetched sector by sector and share DRAM pages only when short; L2
/// loses lines between two sectors where the resident CTAs hold more lines open than it has (spill). Fitted with kernel
/// names known [NEUDATA].
class SimtLaw {
 public:
  explicit SimtLaw(const arch::ParameterTree& tree);

  SimtTime time(const SimtKernel& kernel, const SimtProblem& problem, double split, const SimtMachine& machine) const;
  /// True where partial sums fit the workspace and a second kernel adds them; else splits add up in place, one after
  /// another.
  static bool reduces_apart(const SimtProblem& problem, double split);
  /// Seconds of `in_turn` tiles one after another at full clock, and of parts that add up in place; no memory.
  double waves_time(const SimtKernel& kernel, const SimtProblem& problem, double split, double in_turn,
                    const SimtMachine& machine) const;
  /// Seconds of that second kernel.
  double reduce_time(const SimtProblem& problem, double split, const SimtMachine& machine) const;

  const std::vector<SimtKernel>& kernels() const { return kernels_; }
  const SimtKernel& kernel(std::string_view name) const;  ///< The first one when the name is unknown.
  double clock_share() const { return clock_share_; }

 private:
  struct Tiles;
  double cycles(const Tiles& tiles) const;
  double row_factor(const Tiles& tiles, double element, bool along_k) const;
  double traffic(const Tiles& tiles) const;
  double miss(const SimtMachine& machine, double footprint) const;
  double clock(const SimtMachine& machine, double cycles) const;

  std::vector<SimtKernel> kernels_;
  double clock_share_, start_share_, ramp_;        ///< Of the sustained and boost clocks; seconds.
  double l2_keep_, l2_knee_;                       ///< In L2 capacities.
  double overlap_, latency_, latency_first_;       ///< p; cycles per k step; cycles.
  double row_sector_, prologue_filled_, evening_;  ///< Cycles per row and k; shares.
  double row_short_, row_long_;                    ///< Fetch factor of rows below and above a DRAM page.
  double row_short_bytes_, row_long_bytes_;
  double spill_, spill_from_, spill_across_, spill_columns_;  ///< Of open lines over L2 lines.
  double sector_aligned_, line_aligned_;                      ///< What is left of the excess for aligned rows.
  double store_, store_unaligned_, reread_, drift_;
  double reduce_, serial_, in_place_, in_place_part_;  ///< Seconds.
  double tlb_, tlb_span_;                              ///< Slow-down, and bytes from which it starts.
};

/// Both kinds, and the machine they run on.
class SimtModel {
 public:
  explicit SimtModel(const arch::ResolvedGpu& gpu);
  kernel::KernelCost cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel, bool isolated) const;
  kernel::KernelCost reduce_cost(const kernel::GemmKernel& kernel) const;
  const SimtLaw& law(bool linear) const { return linear ? linear_ : batched_; }
  SimtMachine machine(DataType math, const SimtLaw& law) const;

 private:
  const arch::GpuSpec& gpu_;
  SimtLaw linear_, batched_;
};

}  // namespace voltaic::cost
