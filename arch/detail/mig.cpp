// SPDX-License-Identifier: MIT
// One MIG instance as a GPU of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "arch/detail/description.hpp"
#include "arch/quantity_text.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

const MigProfile& find_profile(std::string_view name, const GpuSpec& spec) {
  const auto it = std::find_if(spec.mig.begin(), spec.mig.end(), [&](const MigProfile& p) { return p.name == name; });
  if (it != spec.mig.end()) return *it;
  if (spec.mig.empty()) throw UnsupportedError(fmt::format("{} has no MIG profiles", spec.name));
  std::vector<std::string> names;
  for (const auto& p : spec.mig) names.push_back(p.name);
  throw ConfigError(spec.name + ':' + one_line(name, 40), "",
                    fmt::format("expected a MIG profile out of {}", fmt::join(names, ", ")));
}

/// What the slice changes, written as the source of those fields.
void mark(Description& d, const std::vector<std::string>& paths, const std::string& source) {
  const auto fields = fields_of(d.spec);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (std::find(paths.begin(), paths.end(), fields[i].path) != paths.end()) d.sources[i] = source;
  }
}

/// Slices of L2 and channels of memory: a MIG instance has at least one of each.
int share_of(int count, double fraction) {
  return std::max(1, static_cast<int>(std::lround(count * fraction)));
}

}  // namespace

/// Simplification: the slice owns its SMs and its share of L2 and DRAM bandwidth. Clock, power limit and PCIe link stay
/// those of the board, because MIG does not divide them [MIGDOC]; the price is shared by compute slices, so that the
/// largest profile costs what the board costs: nothing else can run beside it.
void apply_mig(std::string_view profile_name, Description& d) {
  const MigProfile profile = find_profile(profile_name, d.spec);
  std::int64_t all_slices_sms = profile.sm_count;
  for (const auto& p : d.spec.mig) all_slices_sms = std::max(all_slices_sms, p.sm_count);
  d.spec.sm.count = profile.sm_count;
  d.spec.dram.capacity = profile.memory;
  d.spec.dram.usable = profile.memory;
  d.spec.dram.peak_bandwidth = d.spec.dram.peak_bandwidth * profile.memory_fraction;
  d.spec.l2.capacity = d.spec.l2.capacity * profile.memory_fraction;
  d.spec.l2.slices = share_of(d.spec.l2.slices, profile.memory_fraction);
  d.spec.dram.channels = share_of(d.spec.dram.channels, profile.memory_fraction);
  if (profile.memory_fraction <= 0.5) {
    d.spec.l2.partitions = 1;
    d.spec.l2.far_latency = d.spec.l2.latency;
  }
  d.spec.links.nvlinks = 0;
  if (d.spec.price.usd_per_hour) {
    d.spec.price.usd_per_hour =
        *d.spec.price.usd_per_hour * static_cast<double>(profile.sm_count) / static_cast<double>(all_slices_sms);
  }
  d.spec.mig.clear();
  d.sources.resize(fields_of(d.spec).size());
  mark(d,
       {"sm.count", "dram.capacity", "dram.usable", "dram.peak_bandwidth", "dram.channels", "l2.capacity", "l2.slices",
        "links.nvlinks"},
       "derived: MIG profile " + profile.name);
  if (profile.memory_fraction <= 0.5)
    mark(d, {"l2.partitions", "l2.far_latency"}, "derived: MIG profile " + profile.name);
  if (d.spec.price.usd_per_hour) mark(d, {"price.usd_per_hour"}, "assumed: the board's price shared by compute slices");
  d.spec.name += ':' + profile.name;
  d.spec.product += " MIG " + profile.name;
  d.modified = true;
  d.notes.push_back(fmt::format(
      "MIG slice {}: {} SMs, {}, {} of L2 and DRAM bandwidth, no NVLink; clock, power limit, constant watts "
      "and PCIe are the board's, shared by all slices",
      profile.name, profile.sm_count, format_quantity(profile.memory.value, "bytes"), profile.memory_fraction));
}

}  // namespace voltaic::arch::detail
