// SPDX-License-Identifier: MIT
#include "sim/sm/occupancy.hpp"

#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

/// An SM with the limits of compute capability 8.0.
arch::SmSpec sm80() {
  arch::SmSpec sm;
  sm.count = 108;
  sm.sub_partitions = 4;
  sm.max_warps = 64;
  sm.max_ctas = 32;
  sm.max_threads_per_cta = 1024;
  sm.registers = 65536;
  sm.max_registers_per_thread = 255;
  sm.register_allocation_unit = 256;
  sm.warp_allocation_granularity = 4;
  sm.shared_memory = {167936};
  sm.shared_memory_per_cta = {166912};
  sm.shared_allocation_unit = {128};
  sm.shared_reserved_per_cta = {1024};
  return sm;
}

}  // namespace

TEST_CASE("warps bound the occupancy of a lean CTA", "[sm][occupancy]") {
  // 256 threads are 8 warps; 64 / 8 = 8 CTAs. Registers: 32 x 32 = 1024 per warp, 64 warps fit exactly.
  const auto o = sm::occupancy({256, 32, {0}}, sm80());
  CHECK(o.ctas_per_sm == 8);
  CHECK(o.limit == sm::OccupancyLimit::warps);
  CHECK(o.share == 1.0);
}

TEST_CASE("registers come in units of 256 per warp, and a sub-partition holds whole warps", "[sm][occupancy]") {
  // 33 registers: 1056 rounds up to 1280 per warp; 16384 / 1280 = 12 warps in each of 4 partitions, 48 in all, 6 CTAs
  // of 8 warps.
  const auto o = sm::occupancy({256, 33, {0}}, sm80());
  CHECK(o.ctas_per_sm == 6);
  CHECK(o.limit == sm::OccupancyLimit::registers);
  // 5 warps are rounded up to 8 for registers: 255 -> 8192 per warp, 2 per partition, 8 warps, 1 CTA.
  CHECK(sm::occupancy({160, 255, {0}}, sm80()).ctas_per_sm == 1);
}

TEST_CASE("shared memory is rounded up to its unit and pays the reserve of each CTA", "[sm][occupancy]") {
  // 40 KiB + 1 KiB = 41984 B; 167936 / 41984 = 4 exactly. One byte more takes another unit and a CTA.
  CHECK(sm::occupancy({128, 32, {40960}}, sm80()).ctas_per_sm == 4);
  CHECK(sm::occupancy({128, 32, {40961}}, sm80()).ctas_per_sm == 3);
  CHECK(sm::occupancy({128, 32, {40961}}, sm80()).limit == sm::OccupancyLimit::shared_memory);
}

TEST_CASE("small CTAs meet the CTA limit", "[sm][occupancy]") {
  const auto o = sm::occupancy({32, 8, {0}}, sm80());
  CHECK(o.ctas_per_sm == 32);
  CHECK(o.limit == sm::OccupancyLimit::ctas);
  CHECK(o.share == 0.5);
}

TEST_CASE("a CTA that exceeds a limit by itself does not fit", "[sm][occupancy]") {
  for (const kernel::CtaResources& cta : {kernel::CtaResources{2048, 32, {0}}, kernel::CtaResources{128, 256, {0}},
                                          kernel::CtaResources{128, 32, {166913}}, kernel::CtaResources{1024, 128, {0}},
                                          kernel::CtaResources{0, 32, {0}}}) {
    const auto o = sm::occupancy(cta, sm80());
    CHECK(o.ctas_per_sm == 0);
    CHECK(o.limit == sm::OccupancyLimit::does_not_fit);
    CHECK(sm::waves(1000, o, sm80()) == 0.0);
  }
}

TEST_CASE("waves count CTAs over resident CTAs of the GPU", "[sm][occupancy]") {
  const auto o = sm::occupancy({256, 32, {0}}, sm80());
  CHECK_THAT(sm::waves(1296, o, sm80()), WithinRel(1.5, 1e-12));  // 1296 / (8 x 108)
}
