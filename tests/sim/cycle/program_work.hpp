// SPDX-License-Identifier: MIT
// What generated programs do in all: warp instructions, multiply-adds, bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cycle/program.hpp"

namespace voltaic::cycle::test {

/// Sum over CTAs in x of the product of the trips around each instruction, times `value` of it; times CTAs in y and z.
template <class F>
double total(const Program& p, F value) {
  std::vector<std::size_t> ends(p.loops.size(), 0);
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    if (p.code[i].op == Op::branch) ends[p.code[i].argument] = i;
  }
  // Every x where they are few; else evenly spaced ones stand for all.
  const std::int64_t n = std::min<std::int64_t>(p.grid[0], 512);
  const double each = static_cast<double>(p.grid[0]) / static_cast<double>(n);
  double sum = 0;
  for (std::int64_t s = 0; s < n; ++s) {
    const auto x = static_cast<std::int64_t>((static_cast<double>(s) + 0.5) * each);
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      double times = p.code[i].repeat * static_cast<double>(std::min<int>(p.code[i].warps, p.warps));
      for (std::size_t l = 0; l < p.loops.size(); ++l) {
        if (p.loops[l].begin <= i && i <= ends[l]) times *= static_cast<double>(p.loops[l].trips_at(x));
      }
      sum += times * value(p.code[i]);
    }
  }
  return sum * each * static_cast<double>(p.grid[1]) * static_cast<double>(p.grid[2]);
}

inline double total(const Program& p, Op op) {
  return total(p, [op](const Instruction& i) { return i.op == op ? 1.0 : 0.0; });
}

inline double mma_macs(const Program& p) {
  return total(p, Op::mma) * p.mma.macs() / p.mma.issues;
}

/// Bytes that one tensor's accesses ask for, sectors whole.
inline double asked_bytes(const Program& p, const std::string& name, bool after_l1 = false) {
  return total(p, [&](const Instruction& i) {
    if (!is_global(i.op)) return 0.0;
    const Access& a = p.accesses[i.argument];
    if (p.tensors[a.tensor].name != name) return 0.0;
    return 32.0 * a.sectors * (after_l1 ? 1 - a.l1_hit : 1);
  });
}

}  // namespace voltaic::cycle::test
