// SPDX-License-Identifier: MIT
// L2 as tags: lines of 128 bytes in sectors of 32, sets hashed, least recently used out.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace voltaic::cycle {

class L2Tags {
 public:
  L2Tags(double capacity_bytes, int ways)
      : ways_(static_cast<std::size_t>(std::max(1, ways))),
        sets_(std::max<std::size_t>(1, static_cast<std::size_t>(capacity_bytes / kLine) / ways_)),
        entries_(sets_ * ways_) {}

  /// Whether all of the first `sectors` sectors of the line at `address` are there; afterwards they are. A write takes
  /// its sectors in without reading them and hits where the line is already held.
  bool access(std::uint64_t address, unsigned sectors, bool write) {
    const std::uint64_t line = address / kLine + 1;
    const unsigned wanted = (1U << std::min(sectors, 4U)) - 1;
    Entry* const set = &entries_[hash(line) % sets_ * ways_];
    Entry* victim = set;
    ++clock_;
    for (Entry* e = set; e != set + ways_; ++e) {
      if (e->line == line) {
        const bool hit = write || (e->sectors & wanted) == wanted;
        e->sectors |= wanted;
        e->used = clock_;
        return hit;
      }
      if (e->used < victim->used) victim = e;
    }
    *victim = {line, clock_, wanted};
    return false;
  }

 private:
  static constexpr std::uint64_t kLine = 128;
  struct Entry {
    std::uint64_t line = 0, used = 0;
    unsigned sectors = 0;
  };
  static std::uint64_t hash(std::uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    return x;
  }
  std::size_t ways_, sets_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace voltaic::cycle
