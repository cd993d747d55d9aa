// SPDX-License-Identifier: MIT
// L2 as a tag array: 128-byte lines of four 32-byte sectors, hashed over sets, the least recently used way leaves.
// Knows what is there, not how long anything takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace voltaic::cycle {

class L2Tags {
 public:
  static constexpr std::uint64_t kLineBytes = 128;
  static constexpr std::uint64_t kSectorBytes = 32;

  /// `capacity` in bytes, rounded down to whole sets of `ways` lines; at least one set.
  L2Tags(double capacity, int ways)
      : ways_(static_cast<std::size_t>(std::clamp(ways, 1, 64))),
        sets_(sets_of(capacity, static_cast<double>(ways_))),
        entries_(sets_ * ways_) {}

  /// What a dirty line that had to go held: sectors that DRAM must take. `sectors` 0: nothing went.
  struct Evicted {
    std::uint64_t address = 0;
    int sectors = 0;
  };

  /// Touches `sectors` sectors of the line at `address`, from its sector on; true: all were there. A read fetches those
  /// that were not, a write makes them without a fetch.
  bool access(std::uint64_t address, unsigned sectors, bool write) {
    const std::uint64_t line = address / kLineBytes;
    const unsigned wanted = mask(static_cast<unsigned>(address % kLineBytes / kSectorBytes), sectors);
    Entry* const set = &entries_[set_of(line) * ways_];
    evicted_ = {};
    std::size_t way = 0;
    while (way < ways_ && !(set[way].valid != 0 && set[way].line == line)) ++way;
    Entry entry;
    if (way < ways_) {
      entry = set[way];
    } else {
      entry.line = line;
      way = ways_ - 1;
      evicted_ = leaving(set[way]);
    }
    const bool hit = (entry.valid & wanted) == wanted;
    entry.valid = static_cast<std::uint8_t>(entry.valid | wanted);
    if (write) entry.dirty = static_cast<std::uint8_t>(entry.dirty | wanted);
    std::move_backward(set, set + way, set + way + 1);  // Ways are kept most recent first.
    set[0] = entry;
    return hit;
  }

  /// By the last access.
  const Evicted& evicted() const { return evicted_; }

 private:
  struct Entry {
    std::uint64_t line = 0;
    std::uint8_t valid = 0, dirty = 0;  ///< Sectors, as masks.
  };

  static std::size_t sets_of(double capacity, double ways) {
    constexpr double kMost = 1 << 24;  // 2 GiB of lines: beyond any chip, and what memory here allows
    return static_cast<std::size_t>(std::clamp(capacity / (static_cast<double>(kLineBytes) * ways), 1.0, kMost));
  }

  /// Sectors that would lie beyond the line are taken from its front, so that their number holds.
  static unsigned mask(unsigned first, unsigned sectors) {
    constexpr unsigned kSectors = kLineBytes / kSectorBytes;
    const unsigned n = std::clamp(sectors, 1U, kSectors);
    return ((1U << n) - 1) << std::min(first, kSectors - n);
  }

  static Evicted leaving(const Entry& entry) {
    int sectors = 0;
    for (unsigned d = entry.dirty; d != 0; d &= d - 1) ++sectors;
    return {entry.line * kLineBytes, sectors};
  }

  /// All bits of the line take part, so that no stride keeps to a few sets.
  std::size_t set_of(std::uint64_t line) const {
    std::uint64_t x = line * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    return static_cast<std::size_t>(((x >> 32) * static_cast<std::uint64_t>(sets_)) >> 32);
  }

  std::size_t ways_, sets_;
  std::vector<Entry> entries_;
  Evicted evicted_;
};

}  // namespace voltaic::cycle
