// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_experts(const kernel::Launch&, const kernel::ExpertKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
