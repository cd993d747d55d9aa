// SPDX-License-Identifier: MIT
#include "sim/kernel_profiles.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "arch/units/error.hpp"
#include "sim/cycle/what_if.hpp"
#include "sim/jobs.hpp"

namespace voltaic {
namespace {

struct Distinct {
  const kernel::Launch* launch = nullptr;
  std::shared_ptr<const cycle::Profile> profile;
  double count = 0;
  Seconds total() const { return count * profile->cost.time; }
};

/// Equal launches once, what takes longest first; those without programs are left out.
std::vector<Distinct> distinct_kernels(const report::Prediction& p, const cycle::CycleEngine& engine) {
  std::unordered_map<std::uint32_t, const report::NodeRow*> rows;
  for (const auto& row : p.nodes) rows[row.node] = &row;
  std::vector<Distinct> out;
  std::unordered_map<const cycle::Profile*, std::size_t> known;
  for (const auto& layer : p.layers) {
    for (const std::uint32_t node : layer.nodes) {
      const auto found = rows.find(node);
      if (found == rows.end()) continue;
      for (const auto& k : p.distinct[found->second->distinct].kernels) {
        auto profile = engine.profile(k.launch);
        if (profile->parts.empty()) continue;
        const auto [at, fresh] = known.emplace(profile.get(), out.size());
        if (fresh) out.push_back({&k.launch, std::move(profile), 0});
        out[at->second].count += found->second->repeats;
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Distinct& a, const Distinct& b) { return a.total() > b.total(); });
  return out;
}

/// Kernels whose changes are worth their time: those that make nine tenths of it, at most twelve.
std::size_t worth_changing(const std::vector<Distinct>& kernels) {
  constexpr double kShare = 0.9;
  constexpr std::size_t kMost = 12;
  Seconds all, so_far;
  for (const auto& k : kernels) all += k.total();
  std::size_t n = 0;
  while (n < std::min(kMost, kernels.size()) && so_far < kShare * all) so_far += kernels[n++].total();
  return n;
}

}  // namespace

void add_profiles(report::Prediction& p, const Simulator& simulator, cycle::SampleOptions sampling) {
  constexpr std::size_t kChanges = 3;
  const arch::GpuSpec& gpu = simulator.gpu().spec;
  const std::vector<Distinct> kernels = distinct_kernels(p, simulator.cycle_engine(sampling));
  p.profiles.clear();
  p.stalls = {};
  for (const Distinct& k : kernels) {
    p.profiles.push_back(report::kernel_profile(*k.launch, *k.profile, gpu));
    p.profiles.back().count = k.count;
    for (std::size_t s = 0; s < cycle::kStalls; ++s) p.stalls[s] += k.count * k.profile->counters.warp_cycles[s];
  }
  const double all = std::accumulate(p.stalls.begin(), p.stalls.end(), 0.0);
  for (double& share : p.stalls) share = all > 0 ? share / all : 0;
  for_all(worth_changing(kernels), [&](std::size_t i) {
    for (auto& change : cycle::what_if(*kernels[i].profile, gpu, sampling)) {
      if (p.profiles[i].changes.size() == kChanges) break;
      p.profiles[i].changes.push_back({std::move(change.path), std::move(change.change), change.time_ratio});
    }
  });
}

std::shared_ptr<const cycle::Profile> longest_kernel(const report::Prediction& prediction, const Simulator& simulator,
                                                     cycle::SampleOptions sampling) {
  const std::vector<Distinct> kernels = distinct_kernels(prediction, simulator.cycle_engine(sampling));
  if (kernels.empty()) throw UsageError("--trace-cycles: expected a kernel that runs on SMs, got none");
  return kernels.front().profile;
}

}  // namespace voltaic
