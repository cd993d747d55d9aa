// SPDX-License-Identifier: MIT
#include "sim/cost/transfer_cost.hpp"

namespace voltaic::cost {

TransferCost::TransferCost(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      pinned_share_(gpu.calibration.number("transfer.pinned_share")),
      pageable_share_(gpu.calibration.number("transfer.pageable_share")),
      latency_{gpu.calibration.number("transfer.latency_s")} {}

kernel::KernelCost TransferCost::operator()(const kernel::TransferKernel& transfer) const {
  kernel::KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.dram_traffic = transfer.bytes;
  cost.l2_traffic = transfer.bytes;
  if (!(transfer.bytes.value > 0)) return cost;
  const BytesPerSecond link = gpu_.links.pcie_each_way;
  cost.time = latency_;
  if (link.value > 0) {
    const double share = transfer.pinned ? pinned_share_ : pageable_share_;
    cost.roofline = transfer.bytes / link;
    cost.time += transfer.bytes / (share * link);
  }
  cost.leg(kernel::Bound::latency) = cost.time;
  return cost;
}

}  // namespace voltaic::cost
