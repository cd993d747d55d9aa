// SPDX-License-Identifier: MIT
#include "sim/cost/attention_cost.hpp"

#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

kernel::KernelCost AttentionCost::operator()(const kernel::Launch& launch, const kernel::AttentionKernel&) const {
  return roofline_cost(launch, gpu_);
}

}  // namespace voltaic::cost
