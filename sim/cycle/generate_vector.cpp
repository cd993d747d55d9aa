// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_vector(const kernel::Launch&, const kernel::VectorKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
