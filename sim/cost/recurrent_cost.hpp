// SPDX-License-Identifier: MIT
// Time of the dependent steps of a recurrent layer, and of what surrounds the products of its weight gradients.
#pragma once

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// Constants of one pass on one kind of unit: calibration "recurrent.PASS.tensor" or ".simt".
struct RecurrentStepLaw {
  double efficiency = 1;  ///< Share of the unit's peak.
  double k_cycles = 0;    ///< Per unit of the k loop that one CTA runs alone.
  double step_s = 0;      ///< Launches and dependences inside a step.
  double conflict = 0;    ///< More DRAM time where rows of weights fall onto few channels.
};

/// Every step reads all weights again, and no step starts before the one before:
///     W      = bytes of the weights of the cells that run side by side, c of them
///     math   = c G H^2 ceil(N/pad) pad / (SMs rate efficiency clock)
///     mem    = W (m (1 + conflict) / BW + (1 - m) / BL2),   m = clip(1 - l2_kept L2 / W)
///     g      = (math^q + mem^q)^(1/q) + k k_cycles (1 + row_share (tiles of batch - 1)) / clock + gates / BW + step_s
///     time   = launch_s + D max(g, h) + n max(0, g + start_s - max(g, h)),   n = min(D, lead_s / (g + start_s - h))
/// k = H (forward) or H sqrt(G) (backward: the longer loop is split), D diagonals of the wavefront, h = c host_s: what
/// the host needs to launch a step. A host that has run ahead by lead_s hides start_s. Recorded graphs have neither.
/// Persistent kernels keep weights in registers: g = math + gates + exchange of the state and a barrier of the grid.
/// Fitted on V100 [DEEPBENCH], cuDNN 7.6; other GPUs by their rate, clock, L2 and DRAM.
class RecurrentCost {
 public:
  explicit RecurrentCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel) const;

 private:
  /// Seconds of one diagonal, by what they wait for.
  struct Step {
    double math = 0, dram = 0, l2 = 0, gates = 0, latency = 0;
    double dram_bytes = 0, l2_bytes = 0;
    double total = 0;
  };
  const RecurrentStepLaw& law(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel) const;
  void add_gates(const kernel::RecurrentKernel& kernel, double cells, Step& step) const;
  double math_time(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel, double cells) const;
  Step step(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel, double cells) const;
  Step persistent_step(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel) const;
  kernel::KernelCost steps(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel) const;
  kernel::KernelCost persistent(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel) const;
  kernel::KernelCost around_weights(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel) const;

  const arch::GpuSpec& gpu_;
  double sms_, clock_, dram_, l2_;
  RecurrentStepLaw forward_simt_, forward_tensor_, backward_simt_, backward_tensor_;
  double pad_, overlap_, l2_kept_, row_share_, gate_share_;
  double launch_s_, start_s_, host_s_, lead_s_, gap_s_;
  double barrier_s_, exchange_cycles_;
  struct Around {
    double row_s = 0, unit_s = 0;
  } around_simt_, around_tensor_;
};

}  // namespace voltaic::cost
