// SPDX-License-Identifier: MIT
// L1 and L2 as capacities that serve part of a kernel's bytes: which share misses, and what the mix costs.
#pragma once

#include "arch/spec.hpp"

namespace voltaic::memory {

/// 0 up to `from`, 1 from `to` on, linear between; a step where they coincide.
double ramp(double x, double from, double to);

/// Where a footprint leaves a cache, as shares of its capacity.
struct CacheRegion {
  double all_hit = 0.67;   ///< Up to this share of the capacity everything is served by the cache.
  double all_miss = 0.91;  ///< From this share on everything misses: streams evict in order.
};

/// Share of bytes that miss a cache of `capacity` which the previous kernel left warm.
///     m = clip((footprint - F0) / (F1 - F0)),  F0 = all_hit * capacity,  F1 = all_miss * capacity
double miss_share(Bytes footprint, Bytes capacity, CacheRegion region);

/// Bandwidth of L2 with `active_sms` of the SMs asking: bytes per cycle and SM, at the SM clock.
BytesPerSecond l2_bandwidth(const arch::GpuSpec& gpu, double active_sms);

/// What a stream costs in each level when share `miss` of it comes from DRAM.
struct StreamTime {
  Seconds l2;    ///< The part that L2 serves.
  Seconds dram;  ///< The part that DRAM serves.
  Seconds total() const { return l2 + dram; }
};

/// t = B ((1-m) / BL2 + m / BD); a missing byte passes L2 too and is never faster than a hit.
StreamTime mixed_stream_time(Bytes traffic, double miss, BytesPerSecond l2, BytesPerSecond dram);

/// Bytes a CTA reads again while its rows are open: L1 keeps them, then L2, then DRAM serves the re-read.
struct Reread {
  double l1_miss = 0;  ///< Share that leaves L1.
  double l2_miss = 0;  ///< Share of those that leave L2.
};

/// Parameters of the re-read law: the share of each cache that re-reads can use before streams evict them.
struct RereadRegion {
  double l1_share = 0.9;
  double l2_share = 0.5;
};

/// l1_miss = clip((open - .6 x1 L1) / (.8 x1 L1)), l2_miss = m clip((open SMs - .6 x2 L2) / (.8 x2 L2));
/// `open` are the bytes of unfinished rows on one SM, m the share of the first read that missed L2.
/// Fitted form: FP32 softmax and layer norm of [NEUDATA].
Reread reread_shares(const arch::GpuSpec& gpu, Bytes open_per_sm, double first_read_miss, RereadRegion region);

}  // namespace voltaic::memory
