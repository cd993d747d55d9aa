// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_cost.hpp"

#include "sim/cost/roofline.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cost {

GemmCost::GemmCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec), simt_(gpu), tensor_(gpu) {}

kernel::KernelCost GemmCost::operator()(const kernel::Launch& launch, const kernel::GemmKernel& kernel,
                                        bool isolated) const {
  const bool reduction = !(launch.work.mac > 0);  // the second kernel of a split product
  kernel::KernelCost cost;
  if (kernel.tile.tensor_cores) {
    cost = reduction ? tensor_.reduce_cost(kernel) : tensor_.cost(launch, kernel);
  } else {
    cost = reduction ? simt_.reduce_cost(kernel) : simt_.cost(launch, kernel, isolated);
  }
  const sm::Occupancy occupancy = sm::occupancy(launch.cta, gpu_.sm);
  cost.ctas_per_sm = occupancy.ctas_per_sm;
  cost.occupancy = occupancy.share;
  cost.waves = sm::waves(launch.ctas(), occupancy, gpu_.sm);
  respect_roofline(launch, gpu_, cost);
  return cost;
}

}  // namespace voltaic::cost
