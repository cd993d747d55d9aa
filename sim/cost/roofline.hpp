// SPDX-License-Identifier: MIT
// The bound: the larger of operations over peak rate and compulsory bytes over peak bandwidth [Williams09].
#pragma once

#include "arch/spec.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// Peak rate of the unit on which a launch multiplies: its tensor cores when it uses them, else the CUDA cores.
FlopsPerSecond math_peak(const kernel::Launch& launch, const arch::GpuSpec& gpu);

/// Lower bound of one launch, with its legs.
///     t = max(2 mac / peak(math), other / peak(fp32), special / sfu rate, bytes / BW)
/// DRAM counts only bytes that cannot come from L2: a footprint that fits into L2 may be resident from the kernel
/// before.
kernel::KernelCost roofline_cost(const kernel::Launch& launch, const arch::GpuSpec& gpu);

/// Fills `cost.roofline`, raises `cost.time` to it where a model came out below, and caps the legs at `time`.
void respect_roofline(const kernel::Launch& launch, const arch::GpuSpec& gpu, kernel::KernelCost& cost);

/// The bound as an engine.
class RooflineEngine final : public kernel::CostModel {
 public:
  explicit RooflineEngine(const arch::GpuSpec& gpu) : gpu_(gpu) {}
  kernel::KernelCost cost(const kernel::Launch& launch) const override { return roofline_cost(launch, gpu_); }

 private:
  const arch::GpuSpec& gpu_;
};

}  // namespace voltaic::cost
