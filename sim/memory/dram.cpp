// SPDX-License-Identifier: MIT
#include "sim/memory/dram.hpp"

namespace voltaic::memory {

BytesPerSecond sustained_bandwidth(const arch::DramSpec& dram) {
  return dram.stream_efficiency * dram.peak_bandwidth;
}

Seconds dram_stream_time(const arch::DramSpec& dram, Bytes traffic) {
  if (!(traffic.value > 0)) return Seconds{0};
  return dram.idle_latency + traffic / sustained_bandwidth(dram);
}

}  // namespace voltaic::memory
