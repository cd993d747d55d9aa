// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_sparse(const kernel::Launch&, const kernel::SparseKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
