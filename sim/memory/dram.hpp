// SPDX-License-Identifier: MIT
// Device memory behind L2: time of streams.
#pragma once

#include "arch/spec.hpp"

namespace voltaic::memory {

/// Rate of a long sequential stream: stream_efficiency * peak_bandwidth.
BytesPerSecond sustained_bandwidth(const arch::DramSpec& dram);

/// Time for one kernel to stream `traffic` through device memory.
///     t = idle_latency + traffic / (stream_efficiency * peak_bandwidth)
/// Holds for footprints beyond the L2 capacity; below it see mixed_stream_time(). Memory leg of the roofline
/// [Williams09].
Seconds dram_stream_time(const arch::DramSpec& dram, Bytes traffic);

}  // namespace voltaic::memory
