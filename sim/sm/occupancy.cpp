// SPDX-License-Identifier: MIT
#include "sim/sm/occupancy.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>

namespace voltaic::sm {

namespace {

constexpr int kWarpSize = 32;
constexpr std::array<std::string_view, 5> kLimitNames{"warps", "registers", "shared_memory", "ctas", "does_not_fit"};

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return unit > 1 ? (value + unit - 1) / unit * unit : value;
}

/// CTAs by registers, INT_MAX when registers do not matter.
int by_registers(const kernel::CtaResources& cta, int warps, const arch::SmSpec& sm) {
  if (cta.registers_per_thread <= 0 || sm.registers <= 0) return INT_MAX;
  const std::int64_t per_warp =
      round_up(std::int64_t{kWarpSize} * cta.registers_per_thread, sm.register_allocation_unit);
  const int partitions = std::max(1, sm.sub_partitions);
  const std::int64_t warps_held = sm.registers / partitions / per_warp * partitions;
  const std::int64_t warps_taken = round_up(warps, sm.warp_allocation_granularity);
  return static_cast<int>(warps_held / warps_taken);
}

int by_shared_memory(const kernel::CtaResources& cta, const arch::SmSpec& sm) {
  const double taken = cta.shared_memory.value + sm.shared_reserved_per_cta.value;
  if (!(taken > 0)) return INT_MAX;
  const double unit = std::max(1.0, sm.shared_allocation_unit.value);
  const double per_cta = std::ceil(taken / unit) * unit;
  const double fit = std::floor(sm.shared_memory.value / per_cta);
  return fit < INT_MAX ? static_cast<int>(fit) : INT_MAX;
}

bool fits_alone(const kernel::CtaResources& cta, const arch::SmSpec& sm) {
  if (sm.max_threads_per_cta > 0 && cta.threads > sm.max_threads_per_cta) return false;
  if (sm.max_registers_per_thread > 0 && cta.registers_per_thread > sm.max_registers_per_thread) return false;
  return !(sm.shared_memory_per_cta.value > 0 && cta.shared_memory > sm.shared_memory_per_cta);
}

}  // namespace

std::string_view to_string(OccupancyLimit limit) {
  return kLimitNames[static_cast<std::size_t>(limit)];
}

Occupancy occupancy(const kernel::CtaResources& cta, const arch::SmSpec& sm) {
  Occupancy out;
  out.limit = OccupancyLimit::does_not_fit;
  if (cta.threads <= 0 || !fits_alone(cta, sm)) return out;
  const int warps = (cta.threads + kWarpSize - 1) / kWarpSize;
  // In the order in which a tie is named: the first of equal limits wins.
  const std::array<std::pair<int, OccupancyLimit>, 4> limits{{
      {sm.max_warps / warps, OccupancyLimit::warps},
      {by_registers(cta, warps, sm), OccupancyLimit::registers},
      {by_shared_memory(cta, sm), OccupancyLimit::shared_memory},
      {sm.max_ctas > 0 ? sm.max_ctas : INT_MAX, OccupancyLimit::ctas},
  }};
  const auto least =
      std::min_element(limits.begin(), limits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (least->first <= 0) return out;
  out.ctas_per_sm = least->first;
  out.limit = least->second;
  out.warps_per_sm = out.ctas_per_sm * warps;
  out.share = sm.max_warps > 0 ? static_cast<double>(out.warps_per_sm) / sm.max_warps : 0;
  return out;
}

double waves(double ctas, const Occupancy& occupancy, const arch::SmSpec& sm) {
  const double slots = static_cast<double>(occupancy.ctas_per_sm) * static_cast<double>(sm.count);
  return ctas > 0 && slots > 0 ? ctas / slots : 0;
}

}  // namespace voltaic::sm
