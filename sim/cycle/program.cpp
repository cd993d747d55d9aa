// SPDX-License-Identifier: MIT
#include "sim/cycle/program.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "arch/units/error.hpp"

namespace voltaic::cycle {
namespace {

constexpr std::array<std::string_view, kOps> kNames{
    "FFMA", "HFMA2",  "DFMA", "IMAD", "ALU",  "MUFU",      "F2F",    "MMA", "SHFL", "LDG", "STG",
    "RED",  "LDGSTS", "LDS",  "STS",  "LDSM", "LDGDEPBAR", "DEPBAR", "BAR", "BRA",  "NOP", "EXIT"};

constexpr double kMost = 1e15;  // counts beyond this would not stay exact

class Checker {
 public:
  explicit Checker(const Program& p) : p_(p) {}

  void run() const {
    whole("CTAs in x, y and z", p_.grid[0], p_.grid[1], p_.grid[2]);
    if (p_.warps < 1 || p_.warps > 32) fail("1 to 32 warps per CTA", p_.warps);
    if (p_.code.empty() || p_.code.back().op != Op::exit) fail("code that ends with EXIT", p_.code.size());
    if (p_.loops.size() > kLoopDepth) fail("at most 4 loops", p_.loops.size());
    for (std::size_t i = 0; i < p_.code.size(); ++i) instruction(p_.code[i], i);
    for (const Loop& loop : p_.loops) {
      if (!(loop.trips >= 1 && static_cast<double>(loop.trips) <= kMost && std::isfinite(loop.trips_per_x) &&
            std::isfinite(loop.trips_ahead)))
        fail("loops of 1 to 1e15 trips", loop.trips);
    }
    for (const Access& a : p_.accesses) {
      if (!(a.l1_hit >= 0 && a.l1_hit <= 1)) fail("a share of L1 hits in [0, 1]", a.l1_hit);
    }
  }

 private:
  template <class T>
  [[noreturn]] void fail(std::string_view expected, T got) const {
    throw ConfigError("kernel " + p_.name, "", fmt::format("expected {}, got {}", expected, got));
  }
  void whole(std::string_view what, std::int64_t x, std::int64_t y, std::int64_t z) const {
    const double all = static_cast<double>(x) * static_cast<double>(y) * static_cast<double>(z);
    if (x < 1 || y < 1 || z < 1 || all > kMost) fail(fmt::format("at least one and at most 1e15 {}", what), all);
  }
  void instruction(const Instruction& in, std::size_t at) const {
    if (in.repeat < 1) fail("instructions that issue at least once", in.repeat);
    if (in.sets != kNoScoreboard && in.sets >= kScoreboards) fail("scoreboards 0 to 5", static_cast<int>(in.sets));
    if ((in.waits >> kScoreboards) != 0) fail("waits for scoreboards 0 to 5", static_cast<int>(in.waits));
    if (is_memory(in.op)) {
      if (in.argument >= p_.accesses.size()) fail("the index of an access", in.argument);
      if (is_global(in.op) && p_.accesses[in.argument].tensor >= p_.tensors.size())
        fail("the index of a tensor", p_.accesses[in.argument].tensor);
    }
    if (in.op == Op::barrier && in.argument >= kBarriers) fail("barriers 0 to 15", in.argument);
    if (in.op == Op::branch && (in.argument >= p_.loops.size() || p_.loops[in.argument].begin > at))
      fail("a branch back to a loop of the program", in.argument);
  }

  const Program& p_;
};

}  // namespace

std::string_view to_string(Op op) {
  return kNames[static_cast<std::size_t>(op)];
}

void check(const Program& program) {
  Checker(program).run();
}

}  // namespace voltaic::cycle
