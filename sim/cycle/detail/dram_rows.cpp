// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/dram_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace voltaic::cycle::detail {
namespace {

/// One pseudo-channel with a full queue, oldest ready request first.
class PseudoChannel {
 public:
  PseudoChannel(const RowTiming& timing, double data, std::size_t queued)
      : timing_(timing), data_(data), free_(static_cast<std::size_t>(std::max(1, timing.banks)), 0.0) {
    for (std::size_t i = 0; i < queued; ++i) queue_.push_back(next_bank());
  }

  /// Serves one visit and lets the next request in.
  void serve() {
    const auto first = std::min_element(queue_.begin(), queue_.end(),
                                        [this](std::size_t a, std::size_t b) { return opens(a) < opens(b); });
    // Rows are opened no earlier than their data finds the bus free.
    const double at = std::max(opens(*first), bus_ - timing_.open);
    bus_ = std::max(bus_, at + timing_.open) + data_;
    free_[*first] = at + timing_.same_bank;
    last_ = opened_[turn_] = at;
    turn_ = (turn_ + 1) % opened_.size();
    queue_.erase(first);
    queue_.push_back(next_bank());
  }
  double time() const { return bus_; }

 private:
  double opens(std::size_t bank) const {
    return std::max({free_[bank], last_ + timing_.any_bank, opened_[turn_] + timing_.four_rows});
  }
  std::size_t next_bank() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 33) % free_.size();
  }

  const RowTiming& timing_;
  double data_;
  std::vector<double> free_;        ///< When each bank may open its next row.
  std::vector<std::size_t> queue_;  ///< Banks of the requests that wait.
  std::array<double, 4> opened_{-1, -1, -1, -1};
  std::size_t turn_ = 0;
  double last_ = -1, bus_ = 0;
  std::uint64_t state_ = 1;
};

}  // namespace

/// [RAMU] HBM2 at 1.6, 2.0 and 2.4 Gb/s: nRC, nRCDRD; tRRD 4 ns, tFAW 15 ns of all. [GPGPUSIM] queues 64 requests of 32
/// bytes per channel: half of them belong to each of its pseudo-channels.
RowTiming row_timing(double pin_rate) {
  constexpr double kNs = 1e-9;
  RowTiming t;
  t.any_bank = 4 * kNs;
  t.four_rows = 15 * kNs;
  if (pin_rate < 1.8e9) {
    t.same_bank = 34 * 1.25 * kNs;
    t.open = 10 * 1.25 * kNs;
  } else if (pin_rate < 2.2e9) {
    t.same_bank = 48 * 1.0 * kNs;
    t.open = 14 * 1.0 * kNs;
  } else {
    t.same_bank = 57 * 0.833 * kNs;
    t.open = 17 * 0.833 * kNs;
  }
  return t;
}

double row_share(const RowTiming& timing, double rate, double run) {
  constexpr int kVisits = 2048;
  if (!(rate > 0) || !(run > 0) || !std::isfinite(run / rate)) return 1;
  const double queued = std::clamp(std::floor(timing.queued_bytes / run), 1.0, 64.0);
  PseudoChannel channel(timing, run / rate, static_cast<std::size_t>(queued));
  for (int i = 0; i < kVisits; ++i) channel.serve();
  return std::clamp(kVisits * run / rate / channel.time(), 1e-3, 1.0);
}

}  // namespace voltaic::cycle::detail
