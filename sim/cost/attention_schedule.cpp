// SPDX-License-Identifier: MIT
#include "sim/cost/attention_schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace voltaic::cost {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kRounds = 2;  ///< Played CTAs per slot; more change the result by less than its error.
constexpr double kMostPlayed = 4096;

/// One SM: up to two CTAs, each with the end of its wait and the work it has left.
struct Sm {
  struct Slot {
    double wait_until = 0;
    double left = 0;
    bool busy = false;
  };
  std::array<Slot, 2> slots;
  double now = 0;
  double next = kNever;  ///< When its next CTA completes.
  int first = 0;         ///< Which one that is.
};

/// Advances `sm` to time `t`, no later than its next completion.
void advance(Sm& sm, double t, double pair_speed) {
  while (sm.now < t) {
    double until = t;
    int working = 0;
    for (const auto& slot : sm.slots) {
      if (!slot.busy) continue;
      if (slot.wait_until > sm.now)
        until = std::min(until, slot.wait_until);
      else
        ++working;
    }
    const double done = (until - sm.now) * (working == 2 ? pair_speed : 1.0);
    for (auto& slot : sm.slots) {
      if (slot.busy && slot.wait_until <= sm.now) slot.left = std::max(0.0, slot.left - done);
    }
    sm.now = until;
  }
}

/// Finds the next completion: alone until the other's wait ends, then side by side.
void predict(Sm& sm, double pair_speed) {
  Sm::Slot& a = sm.slots[0];
  Sm::Slot& b = sm.slots[1];
  sm.next = kNever;
  if (!a.busy && !b.busy) return;
  if (!a.busy || !b.busy) {
    sm.first = a.busy ? 0 : 1;
    const auto& only = sm.slots[static_cast<std::size_t>(sm.first)];
    sm.next = std::max(sm.now, only.wait_until) + only.left;
    return;
  }
  const double start_a = std::max(sm.now, a.wait_until);
  const double start_b = std::max(sm.now, b.wait_until);
  const int early = start_a <= start_b ? 0 : 1;
  const auto& e = sm.slots[static_cast<std::size_t>(early)];
  const auto& l = sm.slots[static_cast<std::size_t>(1 - early)];
  const double together = std::max(start_a, start_b);
  const double alone = together - std::min(start_a, start_b);
  if (e.left <= alone) {
    sm.first = early;
    sm.next = std::min(start_a, start_b) + e.left;
    return;
  }
  const double rest = e.left - alone;
  sm.first = rest <= l.left ? early : 1 - early;
  sm.next = together + std::min(rest, l.left) / pair_speed;
}

/// Order of dispatch: which tile the i-th CTA is.
class Dispatch {
 public:
  Dispatch(const AttentionSchedule& s, double groups) : s_(s), groups_(static_cast<std::size_t>(groups)) {
    if (!s.longest_first) return;
    order_.resize(s.work.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return s.work[a] > s.work[b]; });
  }
  double work(std::size_t i) const {
    return s_.longest_first ? s_.work[order_[i / groups_]] : s_.work[i % s_.work.size()];
  }

 private:
  const AttentionSchedule& s_;
  std::size_t groups_;
  std::vector<std::size_t> order_;
};

using Event = std::pair<double, std::size_t>;

/// Restores the heap after its first event moved into the future.
void sink(std::vector<Event>& heap) {
  const Event moved = heap.front();
  std::size_t hole = 0;
  for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
    if (child + 1 < heap.size() && heap[child + 1] < heap[child]) ++child;
    if (!(heap[child] < moved)) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = moved;
}

/// Plays `groups` whole groups event by event.
double play(const AttentionSchedule& s, double groups) {
  const Dispatch dispatch(s, groups);
  const std::size_t ctas = s.work.size() * static_cast<std::size_t>(groups);
  const std::size_t sms = std::min(static_cast<std::size_t>(s.sms), ctas);
  const double pair_speed = std::min(1.0, s.rate / 2);
  std::vector<Sm> machine(sms);
  std::size_t next = 0;
  for (int slot = 0; slot < s.resident; ++slot) {
    for (std::size_t i = 0; i < sms && next < ctas; ++i) {
      machine[i].slots[static_cast<std::size_t>(slot)] = {s.wait, dispatch.work(next++), true};
    }
  }
  std::vector<Event> heap;
  heap.reserve(sms);
  for (std::size_t i = 0; i < sms; ++i) {
    predict(machine[i], pair_speed);
    heap.emplace_back(machine[i].next, i);
  }
  const auto later = std::greater<>{};
  std::make_heap(heap.begin(), heap.end(), later);
  double end = 0;
  while (!heap.empty()) {
    const auto [t, i] = heap.front();
    Sm& sm = machine[i];
    end = t;
    advance(sm, t, pair_speed);
    auto& slot = sm.slots[static_cast<std::size_t>(sm.first)];
    slot = next < ctas ? Sm::Slot{t + s.wait, dispatch.work(next), true} : Sm::Slot{};
    if (next < ctas) ++next;
    predict(sm, pair_speed);
    if (sm.next == kNever) {
      std::pop_heap(heap.begin(), heap.end(), later);
      heap.pop_back();
    } else {
      heap.front().first = sm.next;
      sink(heap);
    }
  }
  return end;
}

/// Mean time that one CTA adds to its SM when many follow each other.
double mean_time(const AttentionSchedule& s, double work) {
  const double busy = work / std::max(std::min<double>(s.resident, s.rate), 1e-9);
  const double held = (s.wait + work) / s.resident;
  const double high = std::max(busy, held);
  const double low = std::min(busy, held);
  if (!(low > 0)) return high;
  return high * std::pow(1 + std::pow(low / high, s.overlap_power), 1 / s.overlap_power);
}

}  // namespace

double uniform_time(const AttentionSchedule& s, double ctas, double work) {
  const double per_sm = std::ceil(ctas / s.sms);
  const double together = std::min<double>(per_sm, s.resident);
  const double first = s.wait + work * std::max(1.0, together / std::max(s.rate, 1e-9));
  return first + (per_sm - together) * mean_time(s, work);
}

double schedule_time(const AttentionSchedule& s) {
  if (s.work.empty() || !(s.groups > 0)) return 0;
  const auto [least, most] = std::minmax_element(s.work.begin(), s.work.end());
  const double tiles = static_cast<double>(s.work.size());
  const double ctas = tiles * s.groups;
  const double bound = uniform_time(s, ctas, *most);
  if (*least == *most) return bound;
  double group = 0;
  for (const double w : s.work) group += mean_time(s, w) / s.sms;
  if (tiles > kMostPlayed) return std::min(bound, s.groups * group + 0.5 * (s.wait + *most));
  const double round = std::min(kMostPlayed, static_cast<double>(kRounds) * s.sms * s.resident);
  const double played = std::min(s.groups, std::max(1.0, std::floor(round / tiles)));
  return std::min(bound, play(s, played) + (s.groups - played) * group);
}

}  // namespace voltaic::cost
