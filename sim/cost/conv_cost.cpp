// SPDX-License-Identifier: MIT
#include "sim/cost/conv_cost.hpp"

#include <algorithm>

#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

using kernel::Bound;

ConvCost::ConvCost(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      square_(gpu.calibration.at("convolution")),
      general_(gpu.calibration.at("convolution")),
      floor_s_(gpu.calibration.number("convolution.floor_s")) {}

ConvTime ConvCost::time_of(const kernel::ConvKernel& kernel, const ConvMachine& machine) const {
  if (square_.applies(kernel.problem)) {
    if (const auto* measured = square_.find(kernel.tile.name)) return square_.time(kernel.problem, *measured, machine);
  }
  const ConvCandidate candidate{kernel.algorithm, kernel.tile.tile_m, kernel.tile.tile_n,
                                static_cast<int>(kernel.tile.split_k)};
  return general_.time(kernel.problem, candidate, kernel.tile.tensor_cores, machine);
}

kernel::KernelCost ConvCost::operator()(const kernel::Launch& launch, const kernel::ConvKernel& kernel) const {
  const bool tensor = kernel.tile.tensor_cores;
  const ConvMachine machine = conv_machine(gpu_, kernel.problem.math, tensor);
  const ConvTime t = time_of(kernel, machine);
  kernel::KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.time = Seconds{std::max(t.time, floor_s_)};
  cost.dram_traffic = Bytes{t.dram_bytes};
  cost.l2_traffic = Bytes{t.l2_bytes};
  cost.shared_traffic = Bytes{t.l2_bytes};  // Each operand slice passes through shared memory once.
  cost.leg(tensor ? Bound::tensor : Bound::fma) = Seconds{t.math};
  cost.leg(Bound::dram) = Seconds{t.dram_bytes / machine.dram};
  const double l2_rate = gpu_.l2.bytes_per_cycle_per_sm * machine.sms * machine.clock;
  if (l2_rate > 0) cost.leg(Bound::l2) = Seconds{t.l2_bytes / l2_rate};
  // What neither pipes nor memory explain: partly filled waves, SMs with too few CTAs, prologues.
  const double explained = std::max(t.math, t.dram_bytes / machine.dram);
  cost.leg(Bound::latency) = Seconds{std::max(0.0, cost.time.value - explained)};
  respect_roofline(launch, gpu_, cost);
  return cost;
}

}  // namespace voltaic::cost
