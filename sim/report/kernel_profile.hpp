// SPDX-License-Identifier: MIT
// One kernel as a profiler would show it: what the cycle engine counted while it ran, and what would make it faster.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/cycle/engine.hpp"
#include "sim/cycle/metrics.hpp"
#include "sim/kernel/launch.hpp"
#include "sim/report/sensitivity.hpp"
#include "sim/report/text_table.hpp"

namespace voltaic::report {

class JsonWriter;  // detail/json_writer.hpp

/// One of the programs that a kernel is made of.
struct ProfilePart {
  std::string name;
  double times = 1;
  double cycles = 0;  ///< All times together.
  double share = 0;   ///< Of the kernel's cycles.
};

struct KernelProfile {
  std::string name;
  std::string gpu;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  int block = 0;     ///< Threads of a CTA.
  double count = 1;  ///< How often the workload runs it.
  Seconds duration;
  double cycles = 0;
  Hertz clock;
  cycle::Metrics metrics;
  std::vector<ProfilePart> parts;
  std::vector<Sensitivity> changes;  ///< Re-simulated; the one that helps most first.
};

/// All but `count` and `changes`. A launch that does not run on SMs has a duration and empty metrics.
KernelProfile kernel_profile(const kernel::Launch& launch, const cycle::Profile& profile, const arch::GpuSpec& gpu);

/// The page of a profile: headline, the profiler's sections with a sentence each on what they say, the changes.
std::string profile_page(const KernelProfile& profile, const PageStyle& style);

/// One sentence per section in plain words: what bounds the kernel and which number says so. Empty where a section has
/// nothing to say.
std::string finding(const cycle::Metrics& metrics, cycle::Section section);

/// An array of objects, with the profiler's names of metrics as keys. For a key of a larger document.
void write_profiles(JsonWriter& w, const std::vector<KernelProfile>& profiles);

}  // namespace voltaic::report
