// SPDX-License-Identifier: MIT
// The shared memory unit of one SM: queues of the sub-partitions, tag and data stages, what is in flight. As behind the
// SM (memory_system.hpp), stages take requests in the order of issue and know when they are free next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cycle/detail/memory_system.hpp"

namespace voltaic::cycle::detail {

/// Instructions of one sub-partition that wait for the shared unit.
class MemoryQueue {
 public:
  explicit MemoryQueue(int entries) : leaves_(static_cast<std::size_t>(std::max(1, entries)), 0.0) {}
  /// From when on there is a free entry.
  double free_at() const { return leaves_[oldest_]; }
  void enter(double leaves) {
    leaves_[oldest_] = leaves;
    oldest_ = oldest_ + 1 == leaves_.size() ? 0 : oldest_ + 1;
  }
  double port_free = 0;  ///< When the next request may go to the shared unit.

 private:
  std::vector<double> leaves_;
  std::size_t oldest_ = 0;
};

/// Bytes under way between an SM and L2, in the order in which they were sent, up to a limit.
class InFlight {
 public:
  explicit InFlight(double limit) : limit_(limit) {}
  /// From when on `bytes` more have room.
  double room_at(double bytes, double at) {
    while (head_ < entries_.size() && (held_ + bytes > limit_ || entries_[head_].done <= at)) {
      at = std::max(at, held_ + bytes > limit_ ? entries_[head_].done : at);
      held_ -= entries_[head_++].bytes;
    }
    compact();
    return at;
  }
  void add(double done, double bytes) {
    entries_.push_back({done, bytes});
    held_ += bytes;
  }

 private:
  struct Entry {
    double done, bytes;
  };
  void compact() {
    if (head_ == entries_.size()) {
      entries_.clear();
      head_ = 0;
      held_ = 0;
    } else if (head_ > 4096) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }
  std::vector<Entry> entries_;
  std::size_t head_ = 0;
  double held_ = 0, limit_;
};

/// Share of the sectors of a store of which a part only is written.
double cut_share(const Access& access);

class MemoryUnit {
 public:
  MemoryUnit(const Program& program, const Machine& machine, MemorySystem& behind)
      : program_(program),
        machine_(machine),
        behind_(behind),
        queues_(static_cast<std::size_t>(machine.partitions), MemoryQueue(machine.queue_entries)),
        hits_(program.accesses.size()),
        loads_(machine.l1_bytes),
        stores_(std::max(machine.stores_under_way, kLeastStores)) {}

  /// From when on a memory instruction of this sub-partition may issue.
  double gate(int partition) const {
    const MemoryQueue& q = queues_[static_cast<std::size_t>(partition)];
    return std::max(q.free_at(), q.port_free - machine_.port_interval);
  }

  struct Times {
    double leaves = 0;  ///< When the instruction has left its queue: its source registers are free.
    double done = 0;    ///< When its result is there, or its bytes are taken.
  };
  /// Shared memory, LDSM and shuffles: `wavefronts` passes of the data stage.
  Times shared(int partition, double at, double wavefronts, double latency, Counters& counters) {
    const double start = enter(partition, at, data_free_);
    const double passes = take_data(start, wavefronts, counters);
    last_access_ = std::max(last_access_, data_free_);
    return {start, start + passes - pass() + latency};
  }
  Times global(int partition, double at, Op op, std::uint16_t access, std::uint64_t address, Counters& counters);
  double last_access() const { return last_access_; }

 private:
  double pass() const { return kPass / machine_.data_bytes; }
  double take_data(double start, double wavefronts, Counters& counters) {
    const double cycles = wavefronts * pass();
    data_free_ = std::max(start, data_free_) + cycles;
    counters.lsu_data_busy += cycles;
    return cycles;
  }
  /// An instruction issued at `at` goes through its queue and port into a stage that is free at `stage_free`.
  double enter(int partition, double at, double stage_free) {
    MemoryQueue& q = queues_[static_cast<std::size_t>(partition)];
    const double start = std::max({at + 1, q.port_free, stage_free});
    q.port_free = start + machine_.port_interval;
    q.enter(start);
    return start;
  }
  double read_lines(const Access& access, std::size_t index, double start, std::uint64_t address, double visits,
                    Counters& counters);
  double write_lines(const Access& access, double start, std::uint64_t address, Counters& counters);

  static constexpr double kPass = 128;         ///< Bytes of a wavefront.
  static constexpr double kLeastStores = 256;  ///< A line, whatever a machine says.
  const Program& program_;
  const Machine& machine_;
  MemorySystem& behind_;
  std::vector<MemoryQueue> queues_;
  std::vector<Spread> hits_;
  InFlight loads_, stores_;
  double tag_free_ = 0, data_free_ = 0, in_free_ = 0, out_free_ = 0, last_access_ = 0;
};

}  // namespace voltaic::cycle::detail
