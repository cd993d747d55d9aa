// SPDX-License-Identifier: MIT
// One warp scheduler with its pipes: which of its warps issues next, and when. Warps are kept oldest first, so that
// greedy-then-oldest is: the one that issued last if it can, else the first that can.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/cycle/counters.hpp"
#include "sim/cycle/detail/event_wheel.hpp"

namespace voltaic::cycle::detail {

class SubPartition {
 public:
  static constexpr std::int64_t kNever = EventWheel::kNever;

  void add(std::uint32_t warp) {
    warps_.push_back({kNever, warp, 0});
    eligible_.push_back(kNever);
  }
  void remove(std::uint32_t warp) {
    const auto at = static_cast<std::size_t>(place(warp) - warps_.begin());
    warps_.erase(warps_.begin() + static_cast<std::ptrdiff_t>(at));
    eligible_.pop_back();
    last_ = last_ == at ? kNone : last_ > at && last_ != kNone ? last_ - 1 : last_;
  }
  std::size_t size() const { return warps_.size(); }

  /// The warp's next instruction takes pipe `gate`, its operands are there at `ready`.
  void set(std::uint32_t warp, std::int64_t ready, Pipe gate) {
    Entry& e = *place(warp);
    e.ready = ready;
    e.gate = static_cast<std::uint32_t>(gate);
  }
  void set_picked(std::int64_t ready, Pipe gate) {
    warps_[picked_].ready = ready;
    warps_[picked_].gate = static_cast<std::uint32_t>(gate);
  }

  /// Decides who issues next, at the earliest at `from`; returns the cycle (kNever: nobody).
  std::int64_t decide(std::int64_t from) {
    std::int64_t best = kNever;
    const std::size_t n = warps_.size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t at = std::max(warps_[i].ready, gates_[warps_[i].gate]);
      eligible_[i] = at;
      best = std::min(best, at);
    }
    if (best == kNever) return kNever;
    best = std::max(best, from);
    if (last_ != kNone && eligible_[last_] <= best) {
      picked_ = last_;
      return best;
    }
    picked_ = 0;
    while (eligible_[picked_] > best) ++picked_;
    return best;
  }
  std::uint32_t picked() const { return warps_[picked_].warp; }
  /// The warp decided on; it issues, so the scheduler is greedy for it.
  std::uint32_t take() {
    last_ = picked_;
    return warps_[picked_].warp;
  }

  /// Keeps the cycle of an issue and its pipe; cycles come in order.
  void note_issue(std::int64_t at, Pipe pipe) {
    all_.note(at);
    by_pipe_[static_cast<std::size_t>(pipe)].note(at);
  }
  /// Of the cycles from `ready` until now, `at`, in which a warp waited for `pipe`: those in which the pipe would have
  /// taken it and another warp issued. An issue closes its pipe for the rest of `interval`.
  std::int64_t turns_of_others(std::int64_t ready, std::int64_t at, Pipe pipe, double interval) const {
    const std::int64_t waited = at - ready;
    const std::int64_t same = by_pipe_[static_cast<std::size_t>(pipe)].between(ready, at);
    const auto closed = static_cast<std::int64_t>(static_cast<double>(same) * std::max(0.0, interval - 1));
    return std::min(all_.between(ready, at), std::max<std::int64_t>(0, waited - closed));
  }

  std::int64_t gate(Pipe pipe) const { return gates_[static_cast<std::size_t>(pipe)]; }
  void set_gate(Pipe pipe, std::int64_t at) { gates_[static_cast<std::size_t>(pipe)] = at; }
  /// Takes a pipe for `interval` cycles from `at` on. A pipe that was free for less than a cycle keeps its fraction.
  void occupy(Pipe pipe, std::int64_t at, double interval) {
    double& free = free_[static_cast<std::size_t>(pipe)];
    const auto start = static_cast<double>(at);
    free = (start - free < 1 ? free : start) + interval;
    const auto whole = static_cast<std::int64_t>(free);
    set_gate(pipe, whole + (static_cast<double>(whole) < free - 1e-9 ? 1 : 0));
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  /// The last issues.
  class Notes {
   public:
    void note(std::int64_t at) { cycles_[count_++ % kKept] = at; }
    /// How many of the cycles from `from` until now, `at`, are noted; of a longer wait than is kept, the same share.
    std::int64_t between(std::int64_t from, std::int64_t at) const {
      const std::uint64_t known = std::min<std::uint64_t>(count_, kKept);
      std::uint64_t low = count_ - known, high = count_;
      while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (cycles_[middle % kKept] < from) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      const auto met = static_cast<std::int64_t>(count_ - high);
      if (high > count_ - known || known < kKept) return met;
      const std::int64_t covered = at - cycles_[high % kKept];
      return covered > 0 ? (at - from) * met / covered : met;
    }

   private:
    static constexpr std::uint64_t kKept = 64;
    std::array<std::int64_t, kKept> cycles_{};
    std::uint64_t count_ = 0;
  };
  struct Entry {
    std::int64_t ready;
    std::uint32_t warp, gate;
  };
  std::vector<Entry>::iterator place(std::uint32_t warp) {
    return std::find_if(warps_.begin(), warps_.end(), [warp](const Entry& e) { return e.warp == warp; });
  }

  std::vector<Entry> warps_;
  std::vector<std::int64_t> eligible_;
  std::array<std::int64_t, kPipes> gates_{};
  std::array<double, kPipes> free_{};
  Notes all_;
  std::array<Notes, kPipes> by_pipe_{};
  std::size_t last_ = kNone, picked_ = 0;
};

}  // namespace voltaic::cycle::detail
