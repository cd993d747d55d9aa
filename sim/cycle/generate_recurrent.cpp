// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_recurrent(const kernel::Launch&, const kernel::RecurrentKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
