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
  double clock = 1e9;       ///< Hz at which the main loop runs once the boost has settled.
  double boost_ratio = 1;   ///< Clock of a short kernel over `clock`.
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
  double efficiency = 1;  ///< Share of the lanes that the main loop keeps busy.
  double prologue = 0;    ///< Cycles per CTA outside the main loop.
  double fill = 1;        ///< Below this many CTAs per SM the pipes are not filled.
  double bias[5] = {};    ///< Choice: constant, ln k, ln m, ln n, ln batch.
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

/// What all candidates for one problem on one machine share.
struct SimtTraffic {
  double cache = 0;       ///< Bytes of L2 that keep operands.
  double all_miss = 0;    ///< Share of the compulsory bytes that a warm L2 misses.
  double compulsory = 0;  ///< Bytes: operands and output once, partial sectors included.
};

struct SimtTime {
  double total = 0;      ///< Seconds of the product alone, without a separate reduction.
  double main_loop = 0;  ///< Seconds on the SM: issue, prologues, unfilled pipes.
  double fma = 0;        ///< Seconds the busiest SM's lanes are busy.
  double dram_bytes = 0;
  double ctas = 0;
};

/// Constants of one kind of product (a dense layer, or a batched product) on one architecture.
class SimtLaw {
 public:
  explicit SimtLaw(const arch::ParameterTree& tree);

  SimtTraffic compulsory(const SimtProblem& problem, const SimtMachine& machine) const;
  SimtTime time(const SimtKernel& kernel, const SimtProblem& problem, const SimtTraffic& traffic, double split,
                const SimtMachine& machine) const;
  /// True where partial sums fit the workspace and a second kernel adds them; else splits add up in place, one after
  /// another.
  bool reduces_apart(const SimtProblem& problem, double split) const;
  /// Seconds of that second kernel.
  double reduce_time(const SimtProblem& problem, double split, const SimtMachine& machine) const;

  const std::vector<SimtKernel>& kernels() const { return kernels_; }
  const SimtKernel& kernel(std::string_view name) const;  ///< The first one when the name is unknown.
  double clock_share() const { return clock_share_; }

 private:
  double traffic(const SimtKernel& kernel, const SimtProblem& problem, const SimtTraffic& shared, double split,
                 const SimtMachine& machine, double ctas, double k_padded) const;

  std::vector<SimtKernel> kernels_;
  double clock_share_, ramp_, l2_share_, overlap_, reread_, drift_, reduce_, serial_, evening_;
  double row_fetch_, row_exponent_, row_unaligned_, store_, store_unaligned_;
};

/// Both kinds, and the machine they run on.
class SimtModel {
 public:
  explicit SimtModel(const arch::ResolvedGpu& gpu);
  kernel::KernelCost cost(const kernel::Launch& launch, const kernel::GemmKernel& kernel) const;
  kernel::KernelCost reduce_cost(const kernel::GemmKernel& kernel) const;
  const SimtLaw& law(bool linear) const { return linear ? linear_ : batched_; }
  SimtMachine machine(DataType math, const SimtLaw& law) const;

 private:
  const arch::GpuSpec& gpu_;
  SimtLaw linear_, batched_;
};

}  // namespace voltaic::cost
