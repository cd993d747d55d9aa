// SPDX-License-Identifier: MIT
// The analytic engine: sends a launch to the cost model of its kind and holds the answer to the roofline.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/conv_cost.hpp"
#include "sim/cost/gemm_cost.hpp"
#include "sim/cost/moe_cost.hpp"
#include "sim/cost/power.hpp"
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
  kernel::KernelCost at_own_clock(const kernel::Launch& launch, bool isolated) const;
  bool settled(const kernel::Launch& launch) const;
  kernel::KernelCost priced(const kernel::Launch& launch, bool isolated) const;

  const arch::GpuSpec& gpu_;
  GemmCost gemm_;
  ConvCost conv_;
  VectorCost vector_;
  AttentionCost attention_;
  MoeCost moe_;
  TransferCost transfer_;
  PowerModel power_;
  bool measured_ = false;               ///< The FP32 laws were fitted on this board,
  bool convolutions_measured_ = false;  ///< and those of convolutions on tensor cores,
  bool experts_measured_ = false;       ///< of mixtures of experts.
};

}  // namespace voltaic::cost
