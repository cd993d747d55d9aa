// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_conv(const kernel::Launch&, const kernel::ConvKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
