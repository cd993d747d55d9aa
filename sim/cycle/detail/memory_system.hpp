// SPDX-License-Identifier: MIT
// L2 and DRAM behind the SMs. Each server (an L2 slice, a DRAM channel) takes requests in the order in which SMs send
// them and knows when it is free next, so a request's whole way is known when it is sent: no event of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cycle/counters.hpp"
#include "sim/cycle/l2_tags.hpp"
#include "sim/cycle/machine.hpp"
#include "sim/cycle/program.hpp"
#include "sim/cycle/simulate.hpp"

namespace voltaic::cycle::detail {

/// One line's part of a warp-wide access on its way to L2.
struct LineRequest {
  std::uint64_t address = 0;
  int sectors = 4;
  std::uint16_t tensor = 0;
  double apart = 1;  ///< Share of DRAM's rate: below one where neighbours are not asked for at the same time.
  double cut = 0;    ///< Sectors of which a part is written.
};

/// One server in virtual time: requests come in nearly the order of their arrival. What arrives before the end of the
/// queue may use idle times from its own arrival on, so that nobody waits for work that is not there, and no more is
/// served in any time than it allows. The last idle times are kept; more of them change nothing.
class Server {
 public:
  /// When the service of a request that arrives at `at` begins.
  double take(double at, double service) {
    constexpr double kNothing = 1e-9;
    if (service < kNothing) return at;
    if (at >= free_) {
      if (at > free_) gaps_[newest_ = (newest_ + 1) % kGaps] = {free_, at};
      free_ = at + service;
      return at;
    }
    // Gaps are in order, so none reaches further than the newest one.
    const std::size_t tried = gaps_[newest_].end - at < service ? 0 : kGaps;
    for (std::size_t i = 1; i <= tried; ++i) {  // the oldest first
      Gap& gap = gaps_[(newest_ + i) % kGaps];
      const double start = std::max(at, gap.begin);
      if (gap.end - start < service) continue;
      // The larger part of what is left stays.
      if (start - gap.begin > gap.end - start - service) {
        gap.end = start;
      } else {
        gap.begin = start + service;
      }
      return start;
    }
    const double start = free_;
    free_ += service;
    return start;
  }

 private:
  static constexpr std::size_t kGaps = 16;
  struct Gap {
    double begin = 0, end = 0;
  };
  double free_ = 0;
  std::array<Gap, kGaps> gaps_{};
  std::size_t newest_ = 0;
};

/// A value that comes up in shares of one: true `share` of the times, evenly spread.
class Spread {
 public:
  bool draw(double share) {
    sum_ += share;
    if (sum_ < 1 - 1e-9) return false;
    sum_ -= 1;
    return true;
  }

 private:
  double sum_ = 0.5;
};

class MemorySystem {
 public:
  MemorySystem(const Program& program, const Machine& machine, const RunOptions& options);

  /// A read that leaves its SM at `at`: when its data is back there. Rates, hits and queues are counted.
  double read(const LineRequest& request, double at, Counters& counters);
  /// A write: when L2 (and DRAM, for the part that is written back) has taken it.
  double write(const LineRequest& request, double at, Counters& counters);

  bool needs_addresses() const { return !slices_alone_ || tags_.has_value(); }

 private:
  struct TensorState {
    Spread miss, write_back;
    double miss_share = 0, far_share = 0, write_back_share = 0;
  };
  double l2_start(double bytes, double at, Counters& counters);
  double dram_start(const LineRequest& request, double bytes, bool write, double at, Counters& counters);
  std::size_t channel_of(std::uint64_t address);
  bool missing(const LineRequest& request, TensorState& tensor, bool write);

  const Machine& machine_;
  std::vector<TensorState> tensors_;
  std::vector<Server> slices_, channels_;
  std::size_t next_slice_ = 0, next_channel_ = 0;
  double slice_rate_, channel_rate_;
  bool slices_alone_;
  double read_bytes_ = 0, written_bytes_ = 0;
  std::optional<L2Tags> tags_;
};

}  // namespace voltaic::cycle::detail
