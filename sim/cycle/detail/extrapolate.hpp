// SPDX-License-Identifier: MIT
// Counters of a whole kernel from runs of parts of it. Along each axis (trips of a loop, CTAs of a queue) counters
// follow a line once the steady state is reached; axes that multiply (a loop and the queue, loops in loops) have
// products too.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sim/cycle/counters.hpp"
#include "sim/cycle/detail/sample_plan.hpp"

namespace voltaic::cycle::detail {

class Extrapolation {
 public:
  using Point = std::array<std::int64_t, kLoopDepth + 1>;
  using Runs = std::function<Counters(const Point&)>;  ///< Simulates one point.

  /// `budget`: warp instructions that samples may take before longer ones are not tried any more.
  Extrapolation(const Program& program, const LoopNest& nest, Runs run, double budget);

  /// Chooses what to sample for an SM of `extent` and one of `most`; `wave`: CTAs that are resident at once.
  void sample(const Extent& extent, const Extent& most, std::int64_t wave);
  /// Counters of one SM with these trips and CTAs. Precondition: sample() was called for it.
  Counters at(const Extent& extent);
  /// Along how many of loops and queue the samples are lines rather than whole.
  std::size_t lines() const { return axes_.size(); }
  double simulated_instructions() const { return spent_; }

 private:
  struct Axis {
    std::size_t place = 0;  ///< In Extent.
    std::int64_t low = 1, high = 1;
    double at(double x) const { return (x - static_cast<double>(low)) / static_cast<double>(high - low); }
  };
  void add_axis(std::size_t place, double extent, std::int64_t first, std::int64_t step);
  void lengthen(Axis& axis, double extent, std::int64_t first, std::int64_t step);
  const Counters& run(const Point& point);
  bool affordable(const Point& point, double runs = 1) const;
  bool collapses(std::size_t place) const;
  bool multiply(const std::vector<const Axis*>& axes) const;

  const Program& program_;
  const LoopNest& nest_;
  Runs run_;
  double budget_, spent_ = 0;
  Point base_{};
  std::vector<Axis> axes_;
  std::map<Point, Counters> done_;
};

}  // namespace voltaic::cycle::detail
