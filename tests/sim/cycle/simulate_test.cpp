// SPDX-License-Identifier: MIT
#include "sim/cycle/simulate.hpp"

#include <numeric>

#include "arch/units/error.hpp"
#include "tests/sim/cycle/toy.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

using test::toy_machine;

Program math(Op op, int repeat, std::uint8_t stall, int warps) {
  Program p;
  p.name = "math";
  p.warps = warps;
  p.code = {{.op = op, .stall = stall, .repeat = static_cast<std::uint16_t>(repeat)}, {.op = Op::exit}};
  return p;
}

double booked(const Counters& c) {
  return std::accumulate(c.warp_cycles.begin(), c.warp_cycles.end(), 0.0);
}

double at(const Counters& c, Stall s) {
  return c.warp_cycles[static_cast<std::size_t>(s)];
}

TEST_CASE("a dependent chain takes its latency per instruction", "[cycle][simulate]") {
  // 100 FFMA four cycles apart from cycle 0 to 396, exit at 400.
  const Run run = simulate(math(Op::ffma, 100, 4, 1), toy_machine(), {});
  CHECK(run.counters.cycles == 401);
  CHECK(at(run.counters, Stall::wait) == 300);
  CHECK(at(run.counters, Stall::selected) == 101);
  CHECK(booked(run.counters) == run.counters.resident_warp_cycles);
}

TEST_CASE("a pipe of 16 lanes takes a warp instruction every other cycle, and not less", "[cycle][simulate]") {
  // One warp per sub-partition: 100 independent FFMA, two cycles each: the last at 198, exit at 199.
  const Run one = simulate(math(Op::ffma, 100, 1, 4), toy_machine(), {});
  CHECK(one.counters.cycles == 200);
  CHECK(one.counters.pipe_busy[static_cast<std::size_t>(Pipe::fma)] == 4 * 200);
  CHECK(at(one.counters, Stall::math_pipe_throttle) == 4 * 99);
  // Four warps per sub-partition: 400 FFMA on each.
  const Run four = simulate(math(Op::ffma, 100, 1, 16), toy_machine(), {});
  CHECK(four.counters.cycles >= 800);
  CHECK(four.counters.cycles <= 803);
}

TEST_CASE("loops issue their body as often as they say", "[cycle][simulate]") {
  Program p = math(Op::ffma, 3, 1, 1);
  p.code.insert(p.code.begin() + 1, Instruction{.op = Op::branch, .argument = 0});
  p.loops = {{.begin = 0, .trips = 7}};
  const Run run = simulate(p, toy_machine(), {});
  CHECK(run.counters.issued[static_cast<std::size_t>(Op::ffma)] == 21);
  CHECK(run.counters.issued[static_cast<std::size_t>(Op::branch)] == 7);
  // Six taken branches of five cycles each.
  CHECK(at(run.counters, Stall::branch_resolving) == 6 * 5);
}

Program load(double hit, double l1_hit) {
  Program p;
  p.name = "load";
  p.warps = 1;
  p.tensors = {{.name = "x", .unique_bytes = 128, .wave_bytes = 128, .l2_hit = hit}};
  p.accesses = {{.tensor = 0, .sectors = 4, .lines = 1, .l1_hit = l1_hit}};
  p.code = {{.op = Op::load_global, .sets = 0}, {.op = Op::ffma, .waits = 1}, {.op = Op::exit}};
  return p;
}

TEST_CASE("a load takes the latency of the level that holds it", "[cycle][simulate][memory]") {
  const auto latency = [](const Program& p) {
    return at(simulate(p, toy_machine(), {}).counters, Stall::long_scoreboard);
  };
  // Issued at 0, enters at 1; L1 gives it at 31, so the FFMA waits from cycle 1 until 31.
  CHECK(latency(load(1, 1)) == 30);
  CHECK(latency(load(1, 0)) == 200);
  // 128 bytes at 64 per cycle from DRAM take two cycles beyond the idle latency.
  CHECK(latency(load(0, 0)) == 502);
}

TEST_CASE("a barrier waits for the last warp", "[cycle][simulate]") {
  Program p;
  p.name = "barrier";
  p.warps = 2;
  // Only warp 0 has 50 dependent FFMA before the barrier: arrives at 200, open at 210.
  p.code = {{.op = Op::ffma, .stall = 4, .repeat = 50, .warps = 1}, {.op = Op::barrier}, {.op = Op::exit}};
  const Run run = simulate(p, toy_machine(), {});
  CHECK(run.counters.cycles == 211);
  CHECK(at(run.counters, Stall::barrier) > 200);
}

TEST_CASE("a barrier that not all warps reach is a deadlock with names", "[cycle][simulate]") {
  Program p;
  p.name = "stuck";
  p.warps = 2;
  p.code = {{.op = Op::barrier, .warps = 1}, {.op = Op::exit}};
  try {
    simulate(p, toy_machine(), {});
    FAIL("expected a deadlock");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()).find("warp 0 of CTA (0, 0, 0) waits at barrier 0") != std::string::npos);
  }
}

TEST_CASE("copies to shared memory are waited for by group", "[cycle][simulate]") {
  Program p = load(1, 0);
  p.code = {{.op = Op::copy_async},
            {.op = Op::commit_group},
            {.op = Op::copy_async},
            {.op = Op::commit_group},
            {.op = Op::wait_group, .argument = 1},
            {.op = Op::wait_group, .argument = 0},
            {.op = Op::exit}};
  const Run run = simulate(p, toy_machine(), {});
  // The first copy is there at 201, the second, two cycles later in the port, at 203.
  CHECK(at(run.counters, Stall::long_scoreboard) > 195);
  CHECK(run.counters.cycles >= 203);
  CHECK(run.counters.cycles <= 207);
}

TEST_CASE("streams run at the rate of DRAM", "[cycle][simulate][memory]") {
  Program p = load(0, 0);
  p.warps = 16;
  p.code[0].repeat = 8;  // 64 warps x 8 lines in flight: more than 500 cycles x 64 bytes.
  p.grid = {64, 1, 1};
  RunOptions o;
  o.ctas = 64;
  o.ctas_per_sm = 4;
  const Run run = simulate(p, toy_machine(), o);
  const double bytes = 64 * 16 * 8 * 128;
  CHECK(run.counters.dram_read_bytes == bytes);
  CHECK(run.counters.cycles >= bytes / 64);
  CHECK(run.counters.cycles <= bytes / 64 + 600);
}

}  // namespace
}  // namespace voltaic::cycle
