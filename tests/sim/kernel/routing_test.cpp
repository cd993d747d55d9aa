// SPDX-License-Identifier: MIT
#include "sim/kernel/routing.hpp"

#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::Leftover;
using kernel::route;
using kernel::Routing;

TEST_CASE("a balanced router fills distinct experts before any gets a second row", "[kernel][routing]") {
  // 3 tokens of 2 experts each, 8 experts: six experts of one row.
  const auto load = route({3, 2, 8, 1, Routing::balanced, 0, Leftover::largest});
  CHECK(load.slots == 6);
  CHECK(load.touched == 6);
  CHECK(load.hit == 3);
  CHECK(load.blocks[1] == 6);
  // 64 tokens: 16 rows on each of 8 experts, one tile of 16 each.
  const auto full = route({64, 2, 8, 1, Routing::balanced, 0, Leftover::largest});
  CHECK(full.touched == 8);
  CHECK(full.blocks[1] == 8);
  CHECK(full.blocks[0] == 16);
}

TEST_CASE("an even random router leaves experts untouched: E (1 - (1 - k/E)^N)", "[kernel][routing]") {
  // 8 (1 - 0.75^8) = 7.199
  CHECK_THAT(route({8, 2, 8, 1, Routing::uniform, 0, Leftover::largest}).touched, WithinRel(7.19909, 1e-5));
  // One token, k experts of one row each.
  const auto one = route({1, 2, 8, 1, Routing::uniform, 0, Leftover::largest});
  CHECK_THAT(one.touched, WithinRel(2.0, 1e-9));
  CHECK_THAT(one.blocks[4], WithinRel(2.0, 1e-9));
  // All experts for all tokens: N rows each.
  CHECK_THAT(route({100, 8, 8, 1, Routing::uniform, 0, Leftover::largest}).blocks[4], WithinRel(16.0, 1e-9));
}

TEST_CASE("blocks of a random router join where the ways of counting them meet", "[kernel][routing]") {
  // Means of 63.9 and 64.1, and where the spread passes two blocks.
  for (const std::int64_t tokens : {std::int64_t{255}, std::int64_t{1000}, std::int64_t{4000}, std::int64_t{70000}}) {
    for (std::size_t b = 0; b < kernel::kRowBlocks.size(); ++b) {
      const auto less = route({tokens, 8, 32, 1, Routing::uniform, 0, Leftover::largest});
      const auto more = route({tokens + 2, 8, 32, 1, Routing::uniform, 0, Leftover::largest});
      CHECK(more.blocks[b] >= less.blocks[b] * 0.999);
      CHECK(more.blocks[b] <= less.blocks[b] * 1.05);
    }
  }
}

TEST_CASE("routing keeps every slot and touches between one and all experts", "[kernel][routing][property]") {
  for (const auto routing : {Routing::uniform, Routing::balanced, Routing::power_law}) {
    for (const auto rule : {Leftover::largest, Leftover::first_idle, Leftover::spread_idle}) {
      for (const std::int64_t tokens : {1, 2, 7, 64, 1000, 20000}) {
        for (const std::int64_t gpus : {1, 4, 16}) {
          const auto load = route({tokens, 8, 128, gpus, routing, 1.2, rule});
          CAPTURE(static_cast<int>(routing), tokens, gpus);
          const double slots = static_cast<double>(tokens) * 8;
          if (gpus == 1) CHECK_THAT(load.slots, WithinRel(slots, 1e-9));
          CHECK(load.slots <= slots * (1 + 1e-9));
          CHECK(load.touched >= 0);
          CHECK(load.touched <= 128.0 / static_cast<double>(gpus) + 1e-9);
          CHECK(load.hit <= static_cast<double>(tokens) + 1e-9);
          for (std::size_t b = 0; b < kernel::kRowBlocks.size(); ++b) {
            CHECK(load.blocks[b] >= load.slots / kernel::kRowBlocks[b] * (1 - 1e-6));
            CHECK(load.blocks[b] >= load.touched * (1 - 1e-9));
            CHECK(load.blocks_with_foreign[b] >= load.blocks[b]);
          }
          CHECK(route({tokens, 8, 128, gpus, routing, 1.2, rule}).blocks == load.blocks);
        }
      }
    }
  }
}
