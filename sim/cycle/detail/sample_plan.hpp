// SPDX-License-Identifier: MIT
// How much of a kernel a sample must run: the CTAs of its busiest SM, the trips of its loops, which of them multiply.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/cycle/machine.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle::detail {

/// Trips of each loop, then the CTAs of one SM. Real numbers: means over CTAs whose trips differ.
using Extent = std::array<double, kLoopDepth + 1>;
inline constexpr std::size_t kQueue = kLoopDepth;

/// The loops around each instruction of a program.
class LoopNest {
 public:
  explicit LoopNest(const Program& program);
  /// Whether one of the loops lies in the other, so that their trips multiply.
  bool nested(std::size_t a, std::size_t b) const;
  /// How often all warps of a CTA issue instruction `i`.
  double issues(std::size_t i, const Extent& trips) const;
  /// Of all instructions.
  double issues(const Extent& trips) const;

 private:
  struct Range {
    std::size_t begin = 0, end = 0;  ///< Instructions of the body, the branch included.
  };
  const Program& program_;
  std::vector<Range> loops_;
};

struct Plan {
  double ctas = 0;         ///< Of the whole grid.
  std::int64_t queue = 1;  ///< CTAs of the busiest SM.
  double active_sms = 1;   ///< ctas / queue: each stands for as many CTAs, and bytes, as the busiest one.
  Extent mean{};           ///< Trips and queue that count everything.
  Extent busiest{};        ///< The same for the SM that ends last: CTAs of unequal length do not spread evenly.
};
/// `ctas_per_sm` resident at once on each of `sms`.
Plan make_plan(const Program& program, std::int64_t sms, int ctas_per_sm);

/// Sectors and bytes of the whole kernel that follow from shares of hits. Small samples round those shares.
struct Traffic {
  double l1_sectors = 0, l1_hit_sectors = 0;
  double l2_read_sectors = 0, l2_write_sectors = 0, l2_hit_sectors = 0;
  double dram_read_bytes = 0, dram_write_bytes = 0;
};
Traffic traffic(const Program& program, const LoopNest& nest, const Plan& plan, const Machine& machine);

}  // namespace voltaic::cycle::detail
