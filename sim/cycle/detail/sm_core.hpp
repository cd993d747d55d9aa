// SPDX-License-Identifier: MIT
// One SM: warps of its resident CTAs walk through the program, their schedulers issue, every cycle of every warp is
// booked under the state it was in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/cycle/detail/memory_unit.hpp"
#include "sim/cycle/detail/sub_partition.hpp"
#include "sim/cycle/simulate.hpp"

namespace voltaic::cycle::detail {

/// A program with everything that does not change from issue to issue looked up.
struct Decoded {
  struct Step {
    Op op = Op::nop;
    Pipe gate = Pipe::control;
    Stall throttle = Stall::math_pipe_throttle;
    std::uint8_t waits = 0, sets = kNoScoreboard;
    std::uint16_t repeat = 1, argument = 0, warps = 0xffff;
    std::int32_t stall = 1;
    bool local = false;  ///< Touches nothing that other sub-partitions share.
    double interval = 1, latency = 0, conflicts = 0;
  };
  Decoded(const Program& program, const Machine& machine);
  std::vector<Step> steps;
};

/// The next CTA of the grid for whichever SM has room. CTAs of equal length go round the SMs evenly: no SM takes more
/// than its share rounded up, as times of products follow CTAs over SMs rounded up [NEUDATA]. Those of unequal length
/// go to whoever is free first.
class CtaQueue {
 public:
  CtaQueue(const Program& program, const RunOptions& options) : program_(program), options_(options) {
    const bool equal =
        std::all_of(program.loops.begin(), program.loops.end(), [](const Loop& loop) { return loop.trips_per_x == 0; });
    if (equal) most_ = (options.ctas + options.sms - 1) / options.sms;
  }
  bool empty() const { return given_ >= options_.ctas; }
  /// Whether an SM that has had `taken` CTAs may take another one.
  bool open(std::int64_t taken) const { return !empty() && taken < most_; }
  /// Its index in x, y and z.
  std::array<std::int64_t, 3> next() {
    const std::int64_t index = (options_.first_cta + given_++ * options_.cta_stride) % program_.ctas();
    const auto& g = program_.grid;
    return {index % g[0], index / g[0] % g[1], index / g[0] / g[1]};
  }

 private:
  const Program& program_;
  const RunOptions& options_;
  std::int64_t given_ = 0;
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();
};

class SmCore {
 public:
  SmCore(const Program& program, const Decoded& decoded, const Machine& machine, const RunOptions& options,
         MemorySystem& behind, CtaQueue& queue, EventWheel& wheel, std::uint32_t first_member, Counters& counters);

  /// Takes a CTA from the queue if a slot is free.
  bool launch(std::int64_t at);
  /// The scheduler of `partition` issues, and goes on while nothing outside it can change what it does. Returns the
  /// number of instructions.
  std::int64_t issue(int partition, std::int64_t at);
  /// Adds what was booked to the counters; once, at the end.
  void settle();
  std::int64_t finished() const { return finished_; }
  double last_access() const { return memory_.last_access(); }
  /// "warp 3 of CTA (0, 1, 0) waits at barrier 0" for some of the warps that are still there; empty: none is.
  std::string waiting() const;
  std::vector<WarpSpan>& trace() { return trace_; }
  void record(std::int64_t from, std::int64_t to) { trace_from_ = from, trace_to_ = to; }

 private:
  static constexpr int kGroups = 16;  ///< Groups of asynchronous copies under way per warp.
  /// What each issue touches: one cache line.
  struct alignas(64) Warp {
    std::int64_t last = 0;         ///< Cycle of the last issue; before the first one, the cycle before the launch.
    std::int64_t fixed_until = 0;  ///< Ready as far as fixed latencies go,
    std::int64_t ready = 0;        ///< and with scoreboards, groups and barriers.
    std::uint32_t step = 0;
    std::uint16_t repeats = 0, index = 0, slot = 0;
    Stall fixed = Stall::wait, variable = Stall::long_scoreboard;
    std::uint8_t partition = 0, slow = 0;  ///< slow: scoreboards that hold a global access.
    bool live = false;
    std::int8_t barrier = -1;  ///< Waits there.
  };
  /// The rest of a warp.
  struct Pending {
    std::array<std::int64_t, kScoreboards> scoreboards{};
    std::array<std::int64_t, kLoopDepth> trip{};
    std::int64_t after_barrier = 0;  ///< Ready without the barrier it waits at.
    double open_group = 0, stores_left = 0;
    std::array<double, kGroups> groups{};
    std::uint32_t closed_groups = 0;
  };
  struct Cta {
    bool live = false;
    std::uint16_t warps_left = 0;
    std::array<std::int64_t, 3> at{};
    std::array<std::int64_t, kLoopDepth> trips{};
    std::array<std::uint16_t, kBarriers> arrived{};
    std::vector<std::uint16_t> on;  ///< Warps left by sub-partition.
  };

  struct Turn {
    std::int64_t from = 0;  ///< From when on the sub-partition may issue again.
    int at_barriers = 0;    ///< Warps of it that wait for others.
    int ctas = 0;           ///< CTAs with a warp on it.
  };

  void issue_one(SubPartition& part, std::int64_t at);
  bool on_its_own(const SubPartition& part, const Turn& turn) const;
  void book(const SubPartition& part, const Warp& warp, const Decoded::Step& step, std::int64_t at);
  void span(const Warp& warp, std::int64_t from, std::int64_t to, Stall state, Op op);
  void execute(Warp& warp, const Decoded::Step& step, std::int64_t at, SubPartition& part);
  void memory(Warp& warp, const Decoded::Step& step, std::int64_t at, SubPartition& part);
  void result(Warp& warp, const Decoded::Step& step, double done, bool slow);
  void step_on(Warp& warp, const Decoded::Step& step, std::int64_t at);
  void skip_other_warps(Warp& warp);
  void prepare(Warp& warp, const Decoded::Step& done, std::int64_t at);
  void arrive(Warp& warp, int barrier, std::int64_t at);
  void leave(Warp& warp, std::int64_t at);
  void take_groups(Warp& warp, std::uint32_t most);
  std::uint64_t address(const Warp& warp, const Access& access) const;
  std::int64_t trips_of(const Loop& loop, std::size_t index, std::int64_t x) const;
  std::size_t id(const Warp& warp) const { return static_cast<std::size_t>(&warp - warps_.data()); }
  Pending& pending(const Warp& warp) { return pending_[id(warp)]; }
  Warp* warps_of(std::size_t slot) { return &warps_[slot * static_cast<std::size_t>(program_.warps)]; }
  void place_warps(std::size_t slot, std::int64_t at);
  void reschedule(int partition);

  const Program& program_;
  const Decoded& decoded_;
  const Machine& machine_;
  const RunOptions& options_;
  CtaQueue& queue_;
  EventWheel& wheel_;
  Counters& counters_;
  struct Booked {
    std::array<std::int64_t, kStalls> warp_cycles{};
    std::array<std::int64_t, kOps> issued{};
  } booked_;
  MemoryUnit memory_;
  std::vector<SubPartition> partitions_;
  std::vector<Turn> turns_;
  std::vector<Warp> warps_;  ///< Slot by slot.
  std::vector<Pending> pending_;
  std::vector<Cta> ctas_;
  int live_ctas_ = 0;
  std::int64_t taken_ctas_ = 0;
  const std::uint32_t first_member_;
  const bool addresses_;
  std::int64_t started_ = -1, finished_ = 0;
  std::int64_t trace_from_ = 0, trace_to_ = 0;
  std::vector<WarpSpan> trace_;
};

}  // namespace voltaic::cycle::detail
