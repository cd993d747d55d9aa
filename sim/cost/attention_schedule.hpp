// SPDX-License-Identifier: MIT
// List scheduling of attention CTAs of unequal length on the SMs.
#pragma once

#include <cstdint>
#include <vector>

namespace voltaic::cost {

/// CTAs of `groups` equal groups (one per batch entry and head). A CTA waits `wait` seconds, which costs its SM
/// nothing, then works; n working CTAs of one SM advance at min(1, rate / n) each.
struct AttentionSchedule {
  std::vector<double> work;  ///< Seconds alone on an SM, per tile of one group in dispatch order.
  double groups = 1;
  double wait = 0;
  double rate = 1;   ///< CTAs' worth of speed of a full SM.
  int resident = 1;  ///< CTAs per SM, 1 or 2.
  int sms = 1;
  bool longest_first = false;  ///< Over all groups; else group by group in tile order.
  double overlap_power = 6;    ///< How little CTAs of one SM disturb each other's waits.
};

/// Seconds from the first CTA to the last. CTAs of equal length are counted in closed form; otherwise the schedule of
/// some rounds is played event by event and further groups add their mean time per SM,
///     ((w / min(resident, rate))^p + ((wait + w) / resident)^p)^(1/p),  p = overlap_power.
/// Bounded: at most about 4,000 CTAs are played, whatever the problem.
double schedule_time(const AttentionSchedule& schedule);

/// The same if each CTA took `work`: an upper bound when no CTA is longer.
double uniform_time(const AttentionSchedule& schedule, double ctas, double work);

}  // namespace voltaic::cost
