// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_cost.hpp"

#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

kernel::KernelCost GemmCost::operator()(const kernel::Launch& launch, const kernel::GemmKernel&) const {
  return roofline_cost(launch, gpu_);
}

}  // namespace voltaic::cost
