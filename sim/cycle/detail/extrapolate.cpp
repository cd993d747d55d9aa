// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/extrapolate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace voltaic::cycle::detail {
namespace {

constexpr double kSteady = 0.01;     ///< Cycles per trip may differ by this share between samples.
constexpr std::int64_t kShort = 40;  ///< Loops up to this many trips run whole.
constexpr std::int64_t kFirst = 16;  ///< Trips of the first sample of longer ones,
constexpr std::int64_t kFewest = 4;  ///< and of those whose trips are long.
constexpr std::int64_t kShortWaves = 8, kFewestWaves = 3;
constexpr double kRuns = 8;  ///< What the points of a line cost, in runs of the first one.

double length(const Counters& a, const Counters& b) {
  return b.cycles - a.cycles;
}

}  // namespace

Extrapolation::Extrapolation(const Program& program, const LoopNest& nest, Runs run, double budget)
    : program_(program), nest_(nest), run_(std::move(run)), budget_(budget) {
  base_.fill(1);
}

bool Extrapolation::affordable(const Point& point, double runs) const {
  Extent extent{};
  for (std::size_t i = 0; i < extent.size(); ++i) extent[i] = static_cast<double>(point[i]);
  return spent_ + runs * extent[kQueue] * nest_.issues(extent) <= budget_;
}

const Counters& Extrapolation::run(const Point& point) {
  const auto found = done_.find(point);
  if (found != done_.end()) return found->second;
  Counters counters = run_(point);
  spent_ += counters.instructions();
  return done_.emplace(point, counters).first->second;
}

/// Samples at first + step, first + 2 step, first + 4 step, ...: doubles until cycles per step no longer change.
void Extrapolation::lengthen(Axis& axis, double extent, std::int64_t first, std::int64_t step) {
  const auto last = static_cast<std::int64_t>(std::floor(extent));
  const auto at = [&](std::int64_t x) {
    Point point = base_;
    point[axis.place] = x;
    return point;
  };
  std::int64_t steps = 1;
  while (true) {
    axis.low = first + steps * step;
    axis.high = first + 2 * steps * step;
    const std::int64_t check = first + 4 * steps * step;
    if (check >= last && collapses(axis.place) && affordable(at(last))) {
      axis.low = axis.high = last;  // a run of everything costs no more
      return;
    }
    if (check >= last || !affordable(at(check))) return;
    const double before = length(run(at(axis.low)), run(at(axis.high)));
    const double after = length(run(at(axis.high)), run(at(check))) / 2;
    steps *= 2;
    if (std::abs(after - before) <= kSteady * std::abs(after)) {
      axis.low = axis.high;
      axis.high = check;
      return;
    }
  }
}

void Extrapolation::add_axis(std::size_t place, double extent, std::int64_t first, std::int64_t step) {
  Axis axis;
  axis.place = place;
  lengthen(axis, extent, first, step);
  if (axis.low == axis.high) {
    base_[place] = axis.low;
    return;
  }
  axes_.push_back(axis);
}

/// Where all CTAs have the same whole number of trips one point serves.
bool Extrapolation::collapses(std::size_t place) const {
  return place == kQueue || program_.loops[place].trips_per_x == 0;
}

void Extrapolation::sample(const Extent& extent, const Extent& most, std::int64_t wave) {
  axes_.clear();
  const std::size_t loops = program_.loops.size();
  std::vector<std::size_t> long_loops;
  for (std::size_t l = 0; l < loops; ++l) {
    const double whole = std::floor(extent[l]);
    if (extent[l] > static_cast<double>(kShort)) {
      base_[l] = kFirst;
      long_loops.push_back(l);
    } else {
      base_[l] = static_cast<std::int64_t>(whole);
      if (!collapses(l)) {
        axes_.push_back({l, base_[l], std::max(base_[l] + 1, static_cast<std::int64_t>(std::ceil(most[l])))});
      }
    }
  }
  const auto queue = static_cast<std::int64_t>(extent[kQueue]);
  base_[kQueue] = queue;
  const std::int64_t waves = affordable(base_, kRuns) ? kShortWaves : kFewestWaves;
  const bool long_queue = queue > waves * wave;
  const std::int64_t rest = queue % wave;  // The last wave is as ragged in every sample.
  if (long_queue) base_[kQueue] = 2 * wave + rest;
  std::int64_t first = kFirst;
  while (first > kFewest && !affordable(base_, kRuns)) {
    first /= 2;
    for (const std::size_t l : long_loops) base_[l] = first;
  }
  for (const std::size_t l : long_loops) add_axis(l, extent[l], 0, first);
  if (long_queue) add_axis(kQueue, extent[kQueue], rest, 2 * wave);
  for (const Axis& axis : axes_) base_[axis.place] = axis.low;
}

/// Trips of two loops side by side add up; all else multiplies.
bool Extrapolation::multiply(const std::vector<const Axis*>& axes) const {
  for (const Axis* a : axes) {
    for (const Axis* b : axes) {
      if (a->place < b->place && b->place != kQueue && !nest_.nested(a->place, b->place)) return false;
    }
  }
  return true;
}

/// Sum over sets S of axes that multiply:  product over S of (x - low) / (high - low), times the part of the counters
/// that only S together makes:  sum over T in S of (-1)^(|S| - |T|) counters(high on T, low elsewhere).
Counters Extrapolation::at(const Extent& extent) {
  Counters out;
  const unsigned sets = 1U << axes_.size();
  for (unsigned s = 0; s < sets; ++s) {
    std::vector<const Axis*> chosen;
    double weight = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if ((s >> i & 1U) == 0) continue;
      chosen.push_back(&axes_[i]);
      weight *= axes_[i].at(extent[axes_[i].place]);
    }
    if (weight == 0 || !multiply(chosen)) continue;
    for (unsigned t = s;; t = (t - 1) & s) {
      Point point = base_;
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        if ((t >> i & 1U) != 0) point[axes_[i].place] = axes_[i].high;
      }
      const double sign = (std::popcount(s) - std::popcount(t)) % 2 == 0 ? weight : -weight;
      out.combine(run(point), [sign](double& mine, double other) { mine += sign * other; });
      if (t == 0) break;
    }
  }
  return out;
}

}  // namespace voltaic::cycle::detail
