// SPDX-License-Identifier: MIT
// The analytic engine: sends a launch to the cost model of its kind and holds the answer to the roofline.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/conv_cost.hpp"
#include "sim/cost/gemm_cost.hpp"
#include "sim/cost/moe_cost.hpp"
#include "sim/cost/power.hpp"
#include "sim/cost/recurrent_cost.hpp"
#include "sim/cost/sparse_cost.hpp"
#include "sim/cost/transfer_cost.hpp"
#include "sim/cost/vector_cost.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

class AnalyticEngine final : public kernel::CostModel {
 public:
  explicit AnalyticEngine(const arch::ResolvedGpu& gpu);
  kernel::KernelCost cost(const kernel::Launch& launch) const override { return priced(launch, false); }
  kernel::KernelCost isolated(const kernel::Launch& launch) const override { return priced(launch, true); }

 private:
  /// The laws of one GPU, which must outlive them.
  struct Laws {
    explicit Laws(const arch::ResolvedGpu& gpu);
    kernel::KernelCost operator()(const kernel::Launch& launch, bool isolated) const;

    GemmCost gemm;
    ConvCost conv;
    VectorCost vector;
    AttentionCost attention;
    MoeCost moe;
    RecurrentCost recurrent;
    SparseCost sparse;
    TransferCost transfer;
  };
  bool settled(const kernel::Launch& launch) const;
  void set_parts(const kernel::Launch& launch, bool isolated, kernel::KernelCost& cost) const;
  kernel::KernelCost priced(const kernel::Launch& launch, bool isolated) const;

  const arch::GpuSpec& gpu_;
  const arch::ResolvedGpu at_hand_gpu_;  ///< The GPU with all operands at hand: DRAM takes no time.
  const Laws laws_, at_hand_;
  PowerModel power_;
  bool measured_ = false;               ///< The FP32 laws were fitted on this board,
  bool convolutions_measured_ = false;  ///< and those of convolutions on tensor cores,
  bool experts_measured_ = false;       ///< of mixtures of experts,
  bool recurrent_measured_ = false;     ///< of recurrent layers.
};

}  // namespace voltaic::cost
