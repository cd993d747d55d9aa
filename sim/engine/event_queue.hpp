// SPDX-License-Identifier: MIT
// An ordered queue of future events: by time, then by the order in which they were scheduled.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "arch/units/error.hpp"
#include "sim/engine/sim_time.hpp"

namespace voltaic::engine {

/// `Payload` says what happens; the caller acts on it. The queue owns the clock: now() never goes back.
template <class Payload>
class EventQueue {
 public:
  void schedule(SimTime at, Payload payload) {
    ensure(at >= now_, "an event must not be scheduled in the past");
    heap_.push({at, sequence_++, std::move(payload)});
  }
  bool empty() const { return heap_.empty(); }
  SimTime now() const { return now_; }
  /// Removes and returns the next event and moves the clock to it.
  Payload pop() {
    Entry entry = heap_.top();
    heap_.pop();
    now_ = entry.at;
    return std::move(entry.payload);
  }

 private:
  struct Entry {
    SimTime at;
    std::uint64_t sequence;
    Payload payload;
    friend bool operator>(const Entry& a, const Entry& b) {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
  SimTime now_;
  std::uint64_t sequence_ = 0;
};

}  // namespace voltaic::engine
