// SPDX-License-Identifier: MIT
#include "sim/cost/busy_clock.hpp"

#include <algorithm>

#include "arch/calibration_document.hpp"

namespace voltaic::cost {

arch::ResolvedGpu busy_for(const arch::ResolvedGpu& gpu, Seconds busy) {
  std::vector<std::pair<std::string, double>> numbers;
  const double boost = gpu.spec.clocks.boost.value;
  const double sustained = std::min(gpu.spec.clocks.sustained.value, boost);
  for (const std::string section : {"gemm_simt.linear", "gemm_simt.bmm"}) {
    const arch::ParameterTree law = gpu.calibration.at(section);
    const double settled = sustained * law.number_or("clock_share", 1);
    const double start = boost * law.number_or("start_share", 1);
    const double ramp = law.number_or("ramp_s", 0);
    if (!(ramp > 0) || start <= settled || !(sustained > 0)) continue;
    const double x = busy.value / ramp;
    numbers.emplace_back(section + ".clock_share", (start + settled * x) / (1 + x) / sustained);
  }
  arch::ResolvedGpu out = gpu;
  out.calibration = arch::with_numbers(gpu.calibration, numbers);
  return out;
}

}  // namespace voltaic::cost
