// SPDX-License-Identifier: MIT
// The cycle engine behind the interface that all engines have.
#pragma once

#include <memory>
#include <vector>

#include "arch/loader.hpp"
#include "sim/cycle/sampler.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cycle {

/// One launch, with all that was counted.
struct Profile {
  struct Part {
    Program program;
    Machine machine;
    Sampled sampled;
    double times = 1;   ///< How often it runs.
    double starts = 1;  ///< Kernel launches among them.
  };
  std::vector<Part> parts;
  Counters counters;  ///< All parts, as often as they run.
  Hertz clock;
  kernel::KernelCost cost;
};

class CycleEngine final : public kernel::CostModel {
 public:
  /// `reference` prices what does not run on SMs, and tells the clock and power at which a kernel settles. Both must
  /// outlive the engine. Throws UnsupportedError for architectures whose SM is not modelled.
  CycleEngine(const arch::GpuSpec& gpu, const kernel::CostModel& reference, SampleOptions options = {});
  ~CycleEngine() override;
  kernel::KernelCost cost(const kernel::Launch& launch) const override;
  kernel::KernelCost isolated(const kernel::Launch& launch) const override;
  /// As cost(), with the counters; equal launches share one. Empty parts: the launch does not run on SMs.
  std::shared_ptr<const Profile> profile(const kernel::Launch& launch) const { return remembered(launch, false); }

 private:
  struct Memo;
  Profile run(const kernel::Launch& launch, const kernel::KernelCost& reference) const;
  std::shared_ptr<const Profile> remembered(const kernel::Launch& launch, bool isolated) const;

  const arch::GpuSpec& gpu_;
  const kernel::CostModel& reference_;
  SampleOptions options_;
  std::unique_ptr<Memo> memo_;
};

}  // namespace voltaic::cycle
