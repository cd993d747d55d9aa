// SPDX-License-Identifier: MIT
#include "sim/engine/event_queue.hpp"

#include <limits>

#include "tests/support/catch.hpp"

using namespace voltaic;
using engine::EventQueue;
using engine::SimTime;

TEST_CASE("events come out by time, and those of one time as scheduled", "[engine]") {
  EventQueue<int> queue;
  queue.schedule(SimTime{20}, 1);
  queue.schedule(SimTime{10}, 2);
  queue.schedule(SimTime{20}, 3);
  queue.schedule(SimTime{10}, 4);
  CHECK(queue.pop() == 2);
  CHECK(queue.now() == SimTime{10});
  CHECK(queue.pop() == 4);
  queue.schedule(SimTime{20}, 5);
  CHECK(queue.pop() == 1);
  CHECK(queue.pop() == 3);
  CHECK(queue.pop() == 5);
  CHECK(queue.now() == SimTime{20});
  CHECK(queue.empty());
}

TEST_CASE("the clock never goes back", "[engine]") {
  EventQueue<int> queue;
  queue.schedule(SimTime{10}, 1);
  queue.pop();
  CHECK_THROWS_AS(queue.schedule(SimTime{9}, 2), InternalError);
  CHECK_NOTHROW(queue.schedule(SimTime{10}, 3));
}

TEST_CASE("a duration is rounded once to whole picoseconds", "[engine]") {
  CHECK(engine::to_sim_time(Seconds{1e-6}).ps == 1'000'000);
  CHECK(engine::to_sim_time(Seconds{1.4e-12}).ps == 1);
  CHECK(engine::to_sim_time(Seconds{1.6e-12}).ps == 2);
  CHECK(engine::to_sim_time(Seconds{0}).ps == 0);
  // 30 days fit in 63 bits: 2,592,000 s = 2.592e18 ps < 9.22e18.
  CHECK(engine::to_sim_time(Seconds{2'592'000}).ps == 2'592'000'000'000'000'000);
}

TEST_CASE("durations that are no durations are refused", "[engine]") {
  CHECK_THROWS_AS(engine::to_sim_time(Seconds{-1e-9}), InternalError);
  CHECK_THROWS_AS(engine::to_sim_time(Seconds{std::numeric_limits<double>::quiet_NaN()}), InternalError);
  CHECK_THROWS_AS(engine::to_sim_time(Seconds{std::numeric_limits<double>::infinity()}), InternalError);
  CHECK_THROWS_AS(engine::to_sim_time(Seconds{1e7}), UnsupportedError);
}
