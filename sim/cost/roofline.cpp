// SPDX-License-Identifier: MIT
#include "sim/cost/roofline.hpp"

#include <algorithm>

#include "sim/sm/occupancy.hpp"

namespace voltaic::cost {

namespace {

using kernel::Bound;
using kernel::KernelCost;
using kernel::Launch;

Seconds math_time(const Launch& launch, const arch::GpuSpec& gpu) {
  if (!(launch.work.mac > 0)) return {0};
  const FlopsPerSecond peak = math_peak(launch, gpu);
  return peak.value > 0 ? Flops{2 * launch.work.mac} / peak : Seconds{0};
}

/// Additions and functions outside products run on the FP32 lanes and the special-function units, side by side.
Seconds scalar_time(const Launch& launch, const arch::GpuSpec& gpu) {
  const double per_second = static_cast<double>(gpu.sm.count) * gpu.clocks.boost.value;
  double t = 0;
  if (gpu.sm.fp32_lanes > 0) t = launch.work.other_flop / (2 * gpu.sm.fp32_lanes * per_second);
  if (gpu.sm.sfu_lanes > 0) t = std::max(t, launch.work.special / (gpu.sm.sfu_lanes * per_second));
  return {t};
}

/// Bytes that must cross the DRAM pins even with all of L2 filled by the kernels before.
Seconds dram_time(const Launch& launch, const arch::GpuSpec& gpu) {
  const double cold = std::max(0.0, launch.work.traffic().value - gpu.l2.capacity.value);
  return Bytes{cold} / gpu.dram.peak_bandwidth;
}

}  // namespace

FlopsPerSecond math_peak(const Launch& launch, const arch::GpuSpec& gpu) {
  if (launch.sparse) return gpu.sparse_peak(launch.math);
  return launch.tensor_cores ? gpu.tensor_peak(launch.math) : gpu.cuda_core_peak(launch.math);
}

KernelCost roofline_cost(const Launch& launch, const arch::GpuSpec& gpu) {
  KernelCost cost;
  cost.clock = gpu.clocks.boost;
  const Seconds math = math_time(launch, gpu);
  cost.leg(launch.tensor_cores ? Bound::tensor : Bound::fma) = math;
  cost.leg(Bound::fma) = std::max(cost.leg(Bound::fma), scalar_time(launch, gpu));
  cost.leg(Bound::dram) = dram_time(launch, gpu);
  cost.time = *std::max_element(cost.legs.begin(), cost.legs.end());
  cost.roofline = cost.time;
  cost.dram_traffic = launch.work.traffic();
  cost.l2_traffic = launch.work.traffic();
  const sm::Occupancy occupancy = sm::occupancy(launch.cta, gpu.sm);
  cost.ctas_per_sm = occupancy.ctas_per_sm;
  cost.occupancy = occupancy.share;
  cost.waves = sm::waves(launch.ctas(), occupancy, gpu.sm);
  return cost;
}

void respect_roofline(const Launch& launch, const arch::GpuSpec& gpu, KernelCost& cost) {
  const Seconds math = std::max(math_time(launch, gpu), scalar_time(launch, gpu));
  cost.roofline = std::max(math, dram_time(launch, gpu));
  cost.time = std::max(cost.time, cost.roofline);
  for (auto& leg : cost.legs) leg = std::min(leg, cost.time);
}

}  // namespace voltaic::cost
