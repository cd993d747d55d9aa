// SPDX-License-Identifier: MIT
// Rows of DRAM that are visited for few bytes, by the timing of published presets.
#include "sim/cycle/detail/dram_rows.hpp"

#include "arch/loader.hpp"
#include "sim/cycle/machine.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::cycle;

TEST_CASE("visits to rows are as fast as their slowest rule allows", "[cycle][dram]") {
  detail::RowTiming t{.same_bank = 40e-9, .any_bank = 1e-9, .four_rows = 4e-9, .open = 10e-9};
  constexpr double kRate = 16e9;
  t.queued_bytes = 64 * 64;
  // One bank: a row each 40 ns. Many: four rows in 20 ns, or the data itself.
  t.banks = 1;
  CHECK_THAT(detail::row_share(t, kRate, 64), WithinRel(64 / kRate / 40e-9, 0.02));
  t.banks = 1024;
  CHECK(detail::row_share(t, kRate, 64) > 0.99);
  t.four_rows = 20e-9;
  CHECK_THAT(detail::row_share(t, kRate, 64), WithinRel(64 / kRate / 5e-9, 0.02));
  CHECK(detail::row_share(t, kRate, 512) > 0.99);
  CHECK(detail::row_share(t, 0, 64) == 1);
}

TEST_CASE("longer visits and slower pins lose less to rows", "[cycle][dram]") {
  const auto machine = [](const char* gpu) {
    const auto g = arch::resolve_gpu(gpu).spec;
    return make_machine(g, g.clocks.boost, Program{});
  };
  const Machine fast = machine("a100-sxm4-80gb"), slow = machine("a100-sxm4-40gb"), volta = machine("v100-sxm2-16gb");
  CHECK(fast.dram_sector_pairs < fast.dram_lines);
  CHECK(fast.dram_sector_pairs < slow.dram_sector_pairs);
  CHECK(fast.dram_lines < slow.dram_lines);
  CHECK(slow.dram_lines > 0.9);
  CHECK(volta.dram_sector_pairs > 0.9);
  CHECK(machine("t4").dram_lines == 1);  // no preset of its memory is in use
}
