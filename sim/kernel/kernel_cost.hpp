// SPDX-License-Identifier: MIT
// The answer of an engine for one launch, and the interface every engine implements.
#pragma once

#include <array>
#include <string_view>

#include "arch/units/quantity.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// What can limit a kernel. Each leg is the time the kernel would need if only that resource were finite.
enum class Bound : std::uint8_t { tensor, fma, dram, l2, shared, issue, latency };
inline constexpr std::size_t kBounds = 7;
inline constexpr std::array<std::string_view, kBounds> kBoundNames{"tensor", "fma",   "dram",   "l2",
                                                                   "shared", "issue", "latency"};
constexpr std::string_view to_string(Bound b) {
  return kBoundNames[static_cast<std::size_t>(b)];
}

/// How a kernel's time moves with the SM clock f: fixed + (memory^4 + (clocked f0/f)^4)^(1/4). All zero where its law
/// does not tell; then its legs do.
struct TimeParts {
  Seconds fixed, memory, clocked;
};

struct KernelCost {
  Seconds time;      ///< Execution on the GPU, first CTA to last; no host time.
  Seconds roofline;  ///< Lower bound: max(operations / peak, compulsory DRAM bytes / peak bandwidth).
  std::array<Seconds, kBounds> legs{};  ///< Indexed by Bound; none exceeds `time`.
  TimeParts parts;
  Hertz clock;       ///< SM clock assumed while it runs.
  double waves = 0;  ///< CTAs over resident CTAs of the whole GPU.
  int ctas_per_sm = 0;
  double occupancy = 0;  ///< Resident warps over the SM's limit.
  Bytes dram_traffic;    ///< After L2.
  Bytes l2_traffic;      ///< After L1.
  Bytes shared_traffic;
  Joules energy;         ///< Of the whole board while the kernel runs.
  bool settled = false;  ///< Its law was measured on this board and holds the clock that the board settles at.

  Seconds leg(Bound b) const { return legs[static_cast<std::size_t>(b)]; }
  Seconds& leg(Bound b) { return legs[static_cast<std::size_t>(b)]; }
  /// The largest leg; ties go to the first.
  Bound bound() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < kBounds; ++i) {
      if (legs[i] > legs[best]) best = i;
    }
    return static_cast<Bound>(best);
  }
  Cycles cycles() const { return time * clock; }
};

/// An engine: prices one launch on the GPU it was made for. Implementations are immutable and safe to share between
/// threads.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Inside a stream of other kernels: the clock has settled under load.
  virtual KernelCost cost(const Launch& launch) const = 0;
  /// Alone between idle gaps, as a timed single call sees it: short kernels end before the clock settles, and some
  /// boards clock down in the gaps.
  virtual KernelCost isolated(const Launch& launch) const { return cost(launch); }
};

}  // namespace voltaic::kernel
