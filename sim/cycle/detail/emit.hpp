// SPDX-License-Identifier: MIT
// Building blocks of generators: appends instructions with their control codes, opens and closes loops, adds tensors
// and accesses. Stall counts come from the GPU's fixed latencies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle::detail {

/// What follows an instruction in the same warp.
enum class Next : std::uint8_t {
  independent,  ///< May issue in the next cycle.
  dependent,    ///< Needs the result: the fixed latency is stalled.
};

/// One scoreboard as a mask for `waits`.
constexpr std::uint8_t bit(int scoreboard) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(scoreboard));
}

/// A warp-wide request for `runs` runs of `run_bytes` contiguous bytes each, aligned to sectors.
Access global_access(std::uint16_t tensor, double runs, double run_bytes);
/// A warp-wide access of `bytes` to shared memory, `conflict` times as long as its bytes need.
Access shared_access(double bytes, double conflict = 1);

class Emitter {
 public:
  Emitter(std::string name, const arch::GpuSpec& gpu);

  std::uint16_t tensor(Tensor tensor);
  std::uint16_t access(const Access& access);

  /// Mask of scoreboards that the next instruction emitted waits for; sums until then.
  Emitter& wait(std::uint8_t mask);
  /// Instructions until the next call to all_warps() are for warps below this index.
  void only_warps(int below);
  void all_warps() { only_warps(0xffff); }

  /// `count` instructions of a fixed-latency class, rounded up; none for 0.
  void math(Op op, double count = 1, Next next = Next::independent);
  /// The same with the stall after the last one given.
  void stalled(Op op, double count, double stall);
  /// Address arithmetic, predicates, packing: independent of each other.
  void address(double count) { math(Op::alu, count); }
  /// `count` instructions whose results come by scoreboard: special functions, shuffles, conversions.
  void variable(Op op, double count, int scoreboard);
  /// Tensor instructions of the program's shape; Next::dependent stalls for the pipe's latency.
  void mma(double count, Next next = Next::independent);
  /// `count` requests; loads set the scoreboard, stores may.
  void memory(Op op, std::uint16_t access, double count = 1, int scoreboard = kNoScoreboard);
  void commit_group();
  void wait_group(int most);
  void barrier(int id = 0);

  /// Opens a loop and returns its index; close_loop() ends the innermost with the counter, the test and the branch.
  std::uint16_t open_loop(double trips, double trips_per_x = 0);
  void close_loop();
  /// Trips of the innermost open loop: `first` at x = 0 and `per_x` more with each CTA in x, each rounded up.
  void rising_trips(double first, double per_x);
  /// Trips of the innermost open loop: whole numbers around `mean`, which the CTAs in x have on average.
  void mean_trips(double mean, double ctas_in_x);

  /// Adds the exit. The emitter is spent.
  Program finish();

  /// Cycles from the last issue to a dependent one; of tensor instructions beyond those in which they issue.
  int latency(Op op) const;

  Program program;  ///< Shape, warps, grid: the generator fills them in.

 private:
  void put(Instruction in, double count, int last_stall);
  const arch::PipelineSpec& pipe_;
  std::uint8_t waits_ = 0;
  std::uint16_t warps_ = 0xffff;
  std::vector<std::uint16_t> open_;
};

}  // namespace voltaic::cycle::detail
