// SPDX-License-Identifier: MIT
#include "sim/cycle/program.hpp"

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

Program one_instruction() {
  Program p;
  p.name = "toy";
  p.code = {{.op = Op::ffma}, {.op = Op::exit}};
  return p;
}

TEST_CASE("a program that no SM can run is refused", "[cycle][program]") {
  CHECK_NOTHROW(check(one_instruction()));
  Program p = one_instruction();
  SECTION("no CTAs") {
    p.grid = {0, 1, 1};
  }
  SECTION("too many warps") {
    p.warps = 33;
  }
  SECTION("no exit") {
    p.code.pop_back();
  }
  SECTION("an access that is not there") {
    p.code[0] = {.op = Op::load_global, .argument = 0};
  }
  SECTION("a branch forward") {
    p.code[0] = {.op = Op::branch, .argument = 0}, p.loops = {{.begin = 1, .trips = 2}};
  }
  SECTION("a scoreboard that no warp has") {
    p.code[0].sets = 6;
  }
  SECTION("a loop of no trips") {
    p.loops = {{.begin = 0, .trips = 0}};
  }
  CHECK_THROWS_AS(check(p), ConfigError);
}

}  // namespace
}  // namespace voltaic::cycle
