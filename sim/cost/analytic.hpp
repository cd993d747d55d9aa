// SPDX-License-Identifier: MIT
// The analytic engine: sends a launch to the cost model of its kind and holds the answer to the roofline.
#pragma once

#include "arch/loader.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/conv_cost.hpp"
#include "sim/cost/gemm_cost.hpp"
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
  kernel::KernelCost priced(const kernel::Launch& launch, bool isolated) const;

  const arch::GpuSpec& gpu_;
  GemmCost gemm_;
  ConvCost conv_;
  VectorCost vector_;
  AttentionCost attention_;
  TransferCost transfer_;
};

}  // namespace voltaic::cost
