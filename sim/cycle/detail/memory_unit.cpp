// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/memory_unit.hpp"

#include <cmath>

namespace voltaic::cycle::detail {
namespace {

constexpr double kSector = 32;
constexpr std::int64_t kLineBytes = 128;

/// Sectors of line `i` of an access: whole lines first, what is left in the last.
int sectors_of(const Access& access, int line) {
  const int each = (access.sectors + access.lines - 1) / access.lines;
  return std::clamp(access.sectors - line * each, 0, each);
}

}  // namespace

double cut_share(const Access& access) {
  // A run that begins inside a sector ends inside one: two are cut for one that it touches beyond its bytes.
  const double whole = std::floor(access.bytes / kSector);
  return std::clamp(2 * (access.sectors - whole) / std::max<double>(access.sectors, 1), 0.0, 1.0);
}

MemoryUnit::Times MemoryUnit::global(int partition, double at, Op op, std::uint16_t index, std::uint64_t address,
                                     Counters& counters) {
  const Access& access = program_.accesses[index];
  const double start = enter(partition, at, tag_free_);
  tag_free_ = start + access.lines / machine_.tag_lines;
  if (op == Op::store_global || (op == Op::atomic)) {
    const double passes = take_data(start, access.wavefronts, counters);
    const double done = write_lines(access, start + passes, address, counters);
    last_access_ = std::max(last_access_, done);
    // An atomic's result makes the way back from L2.
    return {start + passes, op == Op::atomic ? done + machine_.l2_latency / 2 : done};
  }
  // Lines apart are rows of a matrix, each in another row of DRAM. L2 fetches two sectors at a time, whole lines for
  // asynchronous copies (LDGSTS with LTC128B), so that one visit serves the steps that follow.
  const bool rows = access.lines > 1 && access.line_stride != kLineBytes;
  const bool whole = op == Op::copy_async || access.sectors > 2 * access.lines;
  const double apart = !rows ? 1 : whole ? machine_.dram_lines : machine_.dram_sector_pairs;
  const double done = read_lines(access, index, start, address, apart, counters);
  // What comes back passes the data stage on its way to registers or shared memory.
  take_data(start, access.wavefronts, counters);
  const double there = std::max(done, data_free_ - pass() + machine_.l1_latency);
  last_access_ = std::max(last_access_, there);
  return {start, there};
}

double MemoryUnit::read_lines(const Access& access, std::size_t index, double start, std::uint64_t address,
                              double apart, Counters& counters) {
  double done = 0;
  counters.l1_sectors += access.sectors;
  for (int line = 0; line < access.lines; ++line) {
    const int sectors = sectors_of(access, line);
    if (sectors == 0) continue;
    if (access.l1_hit > 0 && hits_[index].draw(access.l1_hit)) {
      counters.l1_hit_sectors += sectors;
      continue;
    }
    const double bytes = kSector * sectors;
    // The way into the SM is taken in the order of requests, before the data is there: rates hold, order is kept.
    const double room = loads_.room_at(bytes, start);
    tag_free_ = std::max(tag_free_, room);
    const double sent = std::max(room, in_free_);
    in_free_ = sent + bytes / machine_.port_bytes;
    const auto place = address + static_cast<std::uint64_t>(line * access.line_stride);
    const double back = behind_.read({place, sectors, access.tensor, apart}, sent, counters);
    loads_.add(back, bytes);
    done = std::max(done, back);
  }
  return done;
}

double MemoryUnit::write_lines(const Access& access, double start, std::uint64_t address, Counters& counters) {
  double done = start;
  const double cut = cut_share(access);
  for (int line = 0; line < access.lines; ++line) {
    const int sectors = sectors_of(access, line);
    if (sectors == 0) continue;
    const double bytes = kSector * sectors;
    const double room = stores_.room_at(bytes, start);
    tag_free_ = std::max(tag_free_, room);
    const double sent = std::max(room, out_free_);
    out_free_ = sent + bytes / machine_.store_bytes;
    const auto place = address + static_cast<std::uint64_t>(line * access.line_stride);
    const double taken = behind_.write({place, sectors, access.tensor, 1, cut * sectors}, sent, counters);
    stores_.add(taken + machine_.l2_latency / 2, bytes);  // until L2 has said so
    done = std::max(done, taken);
  }
  return done;
}

}  // namespace voltaic::cycle::detail
