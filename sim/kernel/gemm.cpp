// SPDX-License-Identifier: MIT
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

std::vector<Launch> gemm_launches(const GemmProblem& problem, const GemmTile& tile, const arch::GpuSpec&) {
  Launch launch;
  launch.detail = GemmKernel{problem, tile};
  return {launch};
}

}  // namespace voltaic::kernel
