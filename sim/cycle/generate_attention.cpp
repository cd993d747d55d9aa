// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_attention(const kernel::Launch&, const kernel::AttentionKernel&, const arch::GpuSpec&) {
  return {};
}

}  // namespace voltaic::cycle
