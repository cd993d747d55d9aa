// SPDX-License-Identifier: MIT
#include "sim/cycle/tag_replay.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/cycle/l2_tags.hpp"

namespace voltaic::cycle {
namespace {

constexpr double kMostAccesses = 1e6;  ///< Line accesses of one pass over the kernel.
constexpr int kTensorShift = 44;       ///< Tensors lie far apart.
constexpr std::uint64_t kColdShift = 60;

/// What a tensor's sectors met.
struct Tally {
  double read = 0, read_hits = 0, written = 0, evicted = 0;
};

class Replay {
 public:
  Replay(const Program& program, const Machine& machine, int resident)
      : program_(program),
        tags_(machine.l2_capacity, machine.l2_ways),
        wave_(std::max<std::int64_t>(1, std::min(program.ctas(), machine.sms * resident))),
        waves_((program.ctas() + wave_ - 1) / wave_),
        tallies_(program.tensors.size()) {
    limit_trips();
  }

  /// A pass with nothing to count leaves warm tensors in L2; those that are cold lie elsewhere in the next one.
  std::vector<Tally> run() {
    const bool warm =
        std::any_of(program_.tensors.begin(), program_.tensors.end(), [](const Tensor& t) { return !t.cold; });
    if (warm) pass(0);
    return pass(1);
  }

 private:
  using Trips = std::array<std::int64_t, kLoopDepth>;

  /// Halves the longest loop until one wave stays within the limit.
  void limit_trips() {
    for (std::size_t l = 0; l < program_.loops.size(); ++l) most_[l] = program_.loops[l].trips_at(program_.grid[0] / 2);
    while (accesses_of_wave() > kMostAccesses) {
      const auto longest = std::max_element(most_.begin(), most_.end());
      if (*longest <= 1) break;
      *longest = (*longest + 1) / 2;
    }
  }

  double accesses_of_wave() const {
    double sum = 0;
    std::vector<std::size_t> ends(program_.loops.size());
    for (std::size_t i = 0; i < program_.code.size(); ++i) {
      if (program_.code[i].op == Op::branch) ends[program_.code[i].argument] = i;
    }
    for (std::size_t i = 0; i < program_.code.size(); ++i) {
      const Instruction& in = program_.code[i];
      if (!is_global(in.op)) continue;
      double n = static_cast<double>(in.repeat) * program_.accesses[in.argument].lines * program_.warps;
      for (std::size_t l = 0; l < ends.size(); ++l) {
        if (program_.loops[l].begin <= i && i <= ends[l]) n *= static_cast<double>(most_[l]);
      }
      sum += n;
    }
    return sum * static_cast<double>(wave_);
  }

  std::vector<Tally> pass(std::uint64_t round) {
    round_ = round;
    std::fill(tallies_.begin(), tallies_.end(), Tally{});
    std::vector<Tally> before = tallies_;
    double spent = 0;
    const double each = std::max(1.0, accesses_of_wave());
    std::int64_t wave = 0;
    for (; wave < waves_ && (wave < 2 || spent + each <= kMostAccesses); ++wave, spent += each) {
      before = tallies_;
      step(wave);
    }
    // The waves left over hit as the last one did.
    const auto left = static_cast<double>(waves_ - wave);
    for (std::size_t i = 0; i < tallies_.size(); ++i) {
      Tally& t = tallies_[i];
      const Tally& b = before[i];
      t = {t.read + left * (t.read - b.read), t.read_hits + left * (t.read_hits - b.read_hits),
           t.written + left * (t.written - b.written), t.evicted + left * (t.evicted - b.evicted)};
    }
    return tallies_;
  }

  /// One wave: each instruction for all its CTAs before the next one.
  void step(std::int64_t wave) {
    const std::int64_t first = wave * wave_;
    const std::int64_t last = std::min(program_.ctas(), first + wave_);
    Trips trip{};
    for (std::size_t pc = 0; pc < program_.code.size(); ++pc) {
      const Instruction& in = program_.code[pc];
      if (is_global(in.op)) {
        for (std::int64_t cta = first; cta < last; ++cta) touch(in, cta, trip);
      }
      if (in.op != Op::branch) continue;
      auto& t = trip[in.argument];
      if (++t < most_[in.argument]) {
        pc = program_.loops[in.argument].begin - std::size_t{1};  // the loop's step leads to its first instruction
      } else {
        t = 0;
      }
    }
  }

  void touch(const Instruction& in, std::int64_t cta, const Trips& trip) {
    const Access& a = program_.accesses[in.argument];
    if (a.lines == 0) return;
    const auto& g = program_.grid;
    const std::int64_t x = cta % g[0];
    std::int64_t at =
        a.base + a.per_cta[0] * x + a.per_cta[1] * (cta / g[0] % g[1]) + a.per_cta[2] * (cta / g[0] / g[1]);
    for (std::size_t l = 0; l < program_.loops.size(); ++l) {
      if (trip[l] >= program_.loops[l].trips_at(x)) return;  // this CTA has left the loop
      at += a.per_trip[l] * trip[l];
    }
    const bool write = in.op == Op::store_global || in.op == Op::atomic;
    const int warps = std::min<int>(in.warps, program_.warps);
    for (int r = 0; r < in.repeat; ++r) {
      for (int warp = 0; warp < warps; ++warp) lines(a, at + a.per_warp * warp, write);
    }
  }

  void lines(const Access& a, std::int64_t at, bool write) {
    const int each = (a.sectors + a.lines - 1) / a.lines;
    Tally& t = tallies_[a.tensor];
    for (int line = 0; line < a.lines; ++line) {
      const int sectors = std::clamp(a.sectors - line * each, 0, each);
      if (sectors == 0) continue;
      if (!write && a.l1_hit > 0) {
        l1_ += a.l1_hit;
        if (l1_ >= 1) {
          l1_ -= 1;
          continue;
        }
      }
      const auto place =
          static_cast<std::uint64_t>(at + line * a.line_stride) & ((std::uint64_t{1} << kTensorShift) - 1);
      std::uint64_t address = place + (static_cast<std::uint64_t>(a.tensor) << kTensorShift);
      if (program_.tensors[a.tensor].cold) address ^= round_ << kColdShift;
      const bool hit = tags_.access(address, static_cast<unsigned>(sectors), write);
      (write ? t.written : t.read) += sectors;
      if (!write && hit) t.read_hits += sectors;
      const auto owner = tags_.evicted().address << 4 >> 4 >> kTensorShift;
      if (tags_.evicted().sectors > 0 && owner < tallies_.size()) tallies_[owner].evicted += tags_.evicted().sectors;
    }
  }

  const Program& program_;
  L2Tags tags_;
  std::int64_t wave_, waves_;
  std::vector<Tally> tallies_;
  Trips most_{1, 1, 1, 1};
  std::uint64_t round_ = 0;
  double l1_ = 0;
};

}  // namespace

void replay_tags(Program& program, const Machine& machine, int ctas_per_sm) {
  const std::vector<Tally> tallies = Replay(program, machine, ctas_per_sm).run();
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    const Tally& t = tallies[i];
    if (t.read > 0) program.tensors[i].l2_hit = t.read_hits / t.read;
    if (t.written > 0) program.tensors[i].write_back = std::min(1.0, t.evicted / t.written);
  }
}

}  // namespace voltaic::cycle
