// SPDX-License-Identifier: MIT
#include "sim/cost/vector_cost.hpp"

#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

kernel::KernelCost VectorCost::operator()(const kernel::Launch& launch, const kernel::VectorKernel&) const {
  return roofline_cost(launch, gpu_);
}

}  // namespace voltaic::cost
