// SPDX-License-Identifier: MIT
#include "sim/cost/conv_cost.hpp"

#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

kernel::KernelCost ConvCost::operator()(const kernel::Launch& launch, const kernel::ConvKernel&) const {
  return roofline_cost(launch, gpu_);
}

}  // namespace voltaic::cost
