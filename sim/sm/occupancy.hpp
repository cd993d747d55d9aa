// SPDX-License-Identifier: MIT
// How many CTAs of a kernel one SM holds at a time, with the granularity in which the hardware hands out its resources.
#pragma once

#include "arch/spec.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::sm {

/// What stops one more CTA from becoming resident.
enum class OccupancyLimit : std::uint8_t { warps, registers, shared_memory, ctas, does_not_fit };
std::string_view to_string(OccupancyLimit limit);

struct Occupancy {
  int ctas_per_sm = 0;
  int warps_per_sm = 0;
  double share = 0;  ///< Resident warps over the SM's limit.
  OccupancyLimit limit = OccupancyLimit::warps;
};

/// Resident CTAs of one SM.
///     warps:     floor(max_warps / w),  w = ceil(threads / 32)
///     registers: per warp ceil(32 r / unit) unit; the SM splits its file over sub-partitions, so warps of a CTA are
///     rounded up
///                to the warp allocation granularity and each sub-partition holds whole warps
///     shared:    floor(shared / (ceil((s + reserve) / unit) unit))
///     CTAs:      the hardware limit
/// As the occupancy calculator of the CUDA Toolkit does [OCC]. A CTA that exceeds a limit by itself gives zero and
/// `does_not_fit`.
Occupancy occupancy(const kernel::CtaResources& cta, const arch::SmSpec& sm);

/// CTAs over the CTAs that all SMs hold at once; 0 for an empty grid.
double waves(double ctas, const Occupancy& occupancy, const arch::SmSpec& sm);

}  // namespace voltaic::sm
