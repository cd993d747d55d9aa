// SPDX-License-Identifier: MIT
#include "arch/units/literals.hpp"
#include "sim/memory/cache.hpp"
#include "sim/memory/dram.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::literals;

namespace {

/// Round numbers: 100 GB/s at half efficiency, 1 us idle; 10 SMs at 1 GHz, 10 B/clk each from L2, so 100 GB/s in all.
arch::GpuSpec toy() {
  arch::GpuSpec gpu;
  gpu.sm.count = 10;
  gpu.clocks.boost = 1_GHz;
  gpu.l1.capacity = 100_KB;
  gpu.l2.capacity = 10_MB;
  gpu.l2.bytes_per_cycle_per_sm = 10;
  gpu.dram.peak_bandwidth = 100_GBps;
  gpu.dram.stream_efficiency = 0.5;
  gpu.dram.idle_latency = 1_us;
  return gpu;
}

}  // namespace

TEST_CASE("a DRAM stream pays its idle latency once, then the sustained rate", "[memory][dram]") {
  // 100 MB / (0.5 * 100 GB/s) = 2 ms, plus 1 us.
  CHECK_THAT(memory::dram_stream_time(toy().dram, 100_MB).value, WithinRel(2.001e-3, 1e-12));
  CHECK(memory::dram_stream_time(toy().dram, 0_B).value == 0);
}

TEST_CASE("footprints leave L2 between the two ends of its region", "[memory][cache]") {
  const memory::CacheRegion region{0.5, 1.0};
  CHECK(memory::miss_share(5_MB, 10_MB, region) == 0);
  CHECK(memory::miss_share(10_MB, 10_MB, region) == 1);
  // (7 - 5) / (10 - 5)
  CHECK_THAT(memory::miss_share(7_MB, 10_MB, region), WithinRel(0.4, 1e-12));
}

TEST_CASE("a region of no width is a step", "[memory][cache]") {
  CHECK(memory::ramp(1.0, 1.0, 1.0) == 0);
  CHECK(memory::ramp(1.1, 1.0, 1.0) == 1);
}

TEST_CASE("L2 bandwidth counts the SMs that ask", "[memory][cache]") {
  CHECK_THAT(memory::l2_bandwidth(toy(), 10).value, WithinRel(100e9, 1e-12));
  CHECK_THAT(memory::l2_bandwidth(toy(), 3).value, WithinRel(30e9, 1e-12));
  CHECK_THAT(memory::l2_bandwidth(toy(), 99).value, WithinRel(100e9, 1e-12));
}

TEST_CASE("a stream is split between L2 and DRAM by its miss share", "[memory][cache]") {
  // 10 MB, 30 % missing: 7 MB at 100 GB/s is 70 us, 3 MB at 50 GB/s 60 us.
  const auto t = memory::mixed_stream_time(10_MB, 0.3, 100_GBps, 50_GBps);
  CHECK_THAT(t.l2.value, WithinRel(70e-6, 1e-12));
  CHECK_THAT(t.dram.value, WithinRel(60e-6, 1e-12));
}

TEST_CASE("DRAM behind L2 is never faster than L2", "[memory][cache]") {
  const auto miss = memory::mixed_stream_time(10_MB, 1, 100_GBps, 900_GBps);
  const auto hit = memory::mixed_stream_time(10_MB, 0, 100_GBps, 900_GBps);
  CHECK(miss.total() >= hit.total());
}

TEST_CASE("re-reads stay in L1 while the open rows fit, then in L2, then come from DRAM", "[memory][cache]") {
  const memory::RereadRegion region{1.0, 0.5};
  CHECK(memory::reread_shares(toy(), 60_KB, 1, region).l1_miss == 0);
  const auto all = memory::reread_shares(toy(), 1_MB, 1, region);
  CHECK(all.l1_miss == 1);
  CHECK(all.l2_miss == 1);
  // 100 KB an SM: (100 - 60) / 80 of L1; 1 MB in all is below 0.6 * 5 MB of L2.
  const auto half = memory::reread_shares(toy(), 100_KB, 1, region);
  CHECK_THAT(half.l1_miss, WithinRel(0.5, 1e-12));
  CHECK(half.l2_miss == 0);
  // Data that L2 served the first time is there the second time.
  CHECK(memory::reread_shares(toy(), 1_MB, 0, region).l2_miss == 0);
}
