// SPDX-License-Identifier: MIT
// Calendar queue of one pending event per member (a warp scheduler), by cycle, then by the order of scheduling. One
// bucket per cycle on a ring; events beyond the ring wait in its last bucket and are put back when met.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "arch/units/error.hpp"

namespace voltaic::cycle::detail {

class EventWheel {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit EventWheel(std::size_t members) : members_(members) {}

  std::int64_t now() const { return now_; }
  std::int64_t time_of(std::uint32_t member) const { return members_[member].at; }

  /// Sets or moves the event of `member`; kNever takes it away.
  void schedule(std::uint32_t member, std::int64_t at) {
    Member& m = members_[member];
    if (m.at == at) return;
    if (m.at != kNever) unlink(member);
    m.at = at;
    if (at == kNever) return;
    ensure(at >= now_, "an event must not be scheduled in the past");
    link(member);
  }

  /// The member of the next event, whose event is taken away and whose cycle is now; false: none is left.
  bool pop(std::uint32_t& member) {
    while (pending_ > 0) {
      const std::size_t bucket = next_bucket();
      const std::uint32_t first = buckets_[bucket].first;
      const std::int64_t cycle = now_ + static_cast<std::int64_t>((bucket - start()) & kMask);
      now_ = cycle;
      unlink(first);
      if (members_[first].at > cycle) {  // Waited here from beyond the ring.
        link(first);
        continue;
      }
      members_[first].at = kNever;
      member = first;
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kBuckets = 1024;
  static constexpr std::size_t kMask = kBuckets - 1;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Member {
    std::int64_t at = kNever;
    std::uint32_t before = kNone, after = kNone, bucket = 0;
  };
  struct Bucket {
    std::uint32_t first = kNone, last = kNone;
  };

  std::size_t start() const { return static_cast<std::size_t>(now_) & kMask; }

  void link(std::uint32_t member) {
    Member& m = members_[member];
    const std::int64_t at = m.at - now_ < static_cast<std::int64_t>(kBuckets) ? m.at : now_ + kMask;
    m.bucket = static_cast<std::uint32_t>(static_cast<std::size_t>(at) & kMask);
    Bucket& b = buckets_[m.bucket];
    m.before = b.last;
    m.after = kNone;
    (b.last == kNone ? b.first : members_[b.last].after) = member;
    b.last = member;
    taken_[m.bucket / 64] |= std::uint64_t{1} << (m.bucket % 64);
    ++pending_;
  }

  void unlink(std::uint32_t member) {
    const Member& m = members_[member];
    Bucket& b = buckets_[m.bucket];
    (m.before == kNone ? b.first : members_[m.before].after) = m.after;
    (m.after == kNone ? b.last : members_[m.after].before) = m.before;
    if (b.first == kNone) taken_[m.bucket / 64] &= ~(std::uint64_t{1} << (m.bucket % 64));
    --pending_;
  }

  /// The first bucket with an event at or after now. Precondition: one is pending.
  std::size_t next_bucket() const {
    const std::size_t from = start();
    std::size_t word = from / 64;
    std::uint64_t bits = taken_[word] & (~std::uint64_t{0} << (from % 64));
    while (bits == 0) {
      word = (word + 1) % (kBuckets / 64);
      bits = taken_[word];
    }
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

  std::vector<Member> members_;
  std::vector<Bucket> buckets_ = std::vector<Bucket>(kBuckets);
  std::uint64_t taken_[kBuckets / 64] = {};
  std::size_t pending_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace voltaic::cycle::detail
