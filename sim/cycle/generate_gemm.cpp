// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_gemm(const kernel::Launch&, const kernel::GemmKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
