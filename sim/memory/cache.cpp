// SPDX-License-Identifier: MIT
#include "sim/memory/cache.hpp"

#include <algorithm>

namespace voltaic::memory {

namespace {

/// Re-reads leave a cache between 0.6 and 1.4 of the share they can use.
double reread_miss(double open, double usable) {
  return ramp(open, 0.6 * usable, 1.4 * usable);
}

}  // namespace

double ramp(double x, double from, double to) {
  if (x <= from) return 0;
  if (x >= to) return 1;
  return (x - from) / (to - from);
}

double miss_share(Bytes footprint, Bytes capacity, CacheRegion region) {
  return ramp(footprint.value, region.all_hit * capacity.value, region.all_miss * capacity.value);
}

BytesPerSecond l2_bandwidth(const arch::GpuSpec& gpu, double active_sms) {
  const double sms = std::clamp(active_sms, 1.0, std::max(1.0, static_cast<double>(gpu.sm.count)));
  return {gpu.l2.bytes_per_cycle_per_sm * sms * gpu.clocks.boost.value};
}

StreamTime mixed_stream_time(Bytes traffic, double miss, BytesPerSecond l2, BytesPerSecond dram) {
  StreamTime t;
  t.l2 = (1 - miss) * traffic / l2;
  t.dram = miss * traffic / std::min(l2, dram);
  return t;
}

Reread reread_shares(const arch::GpuSpec& gpu, Bytes open_per_sm, double first_read_miss, RereadRegion region) {
  Reread shares;
  shares.l1_miss = reread_miss(open_per_sm.value, region.l1_share * gpu.l1.capacity.value);
  const double open = open_per_sm.value * static_cast<double>(gpu.sm.count);
  shares.l2_miss = first_read_miss * reread_miss(open, region.l2_share * gpu.l2.capacity.value);
  return shares;
}

}  // namespace voltaic::memory
