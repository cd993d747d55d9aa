// SPDX-License-Identifier: MIT
#include "sim/report/kernel_profile.hpp"

#include <algorithm>

namespace voltaic::report {

KernelProfile kernel_profile(const kernel::Launch& launch, const cycle::Profile& profile, const arch::GpuSpec& gpu) {
  KernelProfile out;
  out.name = launch.name;
  out.gpu = gpu.name;
  out.duration = profile.cost.time;
  out.clock = profile.clock;
  out.cycles = (profile.cost.time * profile.clock).value;
  if (profile.parts.empty()) return out;
  double cycles = 0;
  for (const auto& part : profile.parts) cycles += part.times * part.sampled.counters.cycles;
  for (const auto& part : profile.parts) {
    const double own = part.times * part.sampled.counters.cycles;
    out.parts.push_back({part.program.name, part.times, own, cycles > 0 ? own / cycles : 0});
  }
  const auto longest = std::max_element(out.parts.begin(), out.parts.end(),
                                        [](const ProfilePart& a, const ProfilePart& b) { return a.cycles < b.cycles; });
  const auto& main = profile.parts[static_cast<std::size_t>(longest - out.parts.begin())];
  out.grid = main.program.grid;
  cycle::Counters counters = profile.counters;
  counters.cycles =
      std::max(counters.cycles, out.cycles);  // A profiler's elapsed cycles have the kernel's start in them.
  out.metrics = cycle::metrics({counters, main.machine, main.program, main.sampled.ctas_per_sm}, gpu, profile.clock);
  // Occupancy belongs to one program: the longest one, whose limits the page shows.
  const cycle::Metrics alone =
      cycle::metrics({main.sampled.counters, main.machine, main.program, main.sampled.ctas_per_sm}, gpu, profile.clock);
  out.metrics.achieved_warps = alone.achieved_warps;
  out.metrics.achieved_occupancy = alone.achieved_occupancy;
  out.block = out.metrics.threads_per_cta;
  return out;
}

}  // namespace voltaic::report
