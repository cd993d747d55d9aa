// SPDX-License-Identifier: MIT
// The software-pipelined main loop of matrix products. While a warp multiplies group g of a k step, the fragments of
// group g + 1 come from shared memory, and the tiles of a later step from global memory: through registers, stored to
// the other buffer before the barrier (Volta, Turing, CUDA cores), or by asynchronous copies several steps ahead.
#include <algorithm>
#include <cmath>

#include "sim/cycle/generate_gemm.hpp"

namespace voltaic::cycle::gemm {
namespace {

constexpr int kLoadA = 2, kLoadB = 3, kStoreA = 4, kStoreB = 5;

class MainLoop {
 public:
  MainLoop(Emitter& e, const Product& p, const Group& group, int groups, const Feed& feed)
      : e_(e), p_(p), group_(group), groups_(std::max(1, groups)), feed_(feed) {
    a_ = e.tensor(p.a.tensor);
    b_ = e.tensor(p.b.tensor);
  }

  void through_registers() {
    const double ahead = p_.steps - 1;
    load_now(step_requests(0, -1));
    for (const Side& s : shared_stores()) s(e_);
    e_.barrier();
    fragments(0);
    if (ahead >= 1) {
      const std::uint16_t loop = e_.open_loop(ahead);
      step(load_sides(step_requests(1, loop)), true);
      e_.close_loop();
    }
    step({}, false);
  }

  void async() {
    const int ahead = std::max(1, feed_.stages - 1);
    const double first = std::min<double>(ahead, p_.steps);
    const std::uint16_t fill = e_.open_loop(first);
    load_now(step_requests(0, fill));
    e_.commit_group();
    e_.close_loop();
    e_.wait_group(ahead - 1);
    e_.barrier();
    fragments(0);
    if (p_.steps > ahead) {
      const std::uint16_t loop = e_.open_loop(p_.steps - ahead);
      step(load_sides(step_requests(ahead, loop)), true);
      e_.close_loop();
    }
    e_.open_loop(first);
    step({}, true);
    e_.close_loop();
  }

 private:
  struct Loads {
    std::vector<Request> a, b;
  };

  Place place(const Operand& o, double steps_ahead, int loop) const {
    Place out;
    out.per_cta = o.per_cta;
    const double step = p_.tile.tile_k * (o.along_k ? o.element : o.pitch);
    out.base = steps_ahead * step;
    if (loop >= 0) out.per_trip[static_cast<std::size_t>(loop)] = step;
    return out;
  }

  Loads step_requests(double steps_ahead, int loop) {
    const int warps = e_.program.warps;
    return {requests(e_, a_, step_block(p_.a, p_.tile.tile_k, p_.k_filled), place(p_.a, steps_ahead, loop), warps),
            requests(e_, b_, step_block(p_.b, p_.tile.tile_k, p_.k_filled), place(p_.b, steps_ahead, loop), warps)};
  }

  /// One request of the loop; the registers it fills must have been stored.
  Side load(const Request& r, double address, int board, int free) const {
    const Op op = feed_.async ? Op::copy_async : Op::load_global;
    const int sets = feed_.async ? kNoScoreboard : board;
    return [=](Emitter& e) {
      e.address(address);
      if (sets != kNoScoreboard) e.wait(detail::bit(free));
      if (r.warps < e.program.warps) e.only_warps(r.warps);
      e.memory(op, r.access, 1, sets);
      e.all_warps();
    };
  }

  std::vector<Side> load_sides(const Loads& loads) const {
    std::vector<Side> out;
    for (const Request& r : loads.a) out.push_back(load(r, p_.a.address, kLoadA, kStoreA));
    for (const Request& r : loads.b) out.push_back(load(r, p_.b.address, kLoadB, kStoreB));
    return out;
  }

  void load_now(const Loads& loads) {
    for (const Side& s : load_sides(loads)) s(e_);
  }

  static Side store(const Feed::Store& s, int loaded, int stored) {
    return [=](Emitter& e) {
      e.wait(detail::bit(loaded));
      e.math(Op::alu, s.pack);
      e.math(Op::ffma, s.transform);
      e.memory(Op::store_shared, s.access, s.count, stored);
    };
  }

  std::vector<Side> shared_stores() const { return {store(feed_.a, kLoadA, kStoreA), store(feed_.b, kLoadB, kStoreB)}; }

  void fragments(int group) {
    for (const Group::Load& l : group_.fragments) e_.memory(l.op, l.access, l.count, group % 2);
  }

  /// The next group's fragments, split so that multiplications fit between.
  void fragment_sides(int group, std::vector<Side>& out) const {
    for (const Group::Load& l : group_.fragments) {
      for (double left = l.count; left > 0; left -= 1) {
        const double count = std::min(1.0, left);
        out.emplace_back([=](Emitter& e) { e.memory(l.op, l.access, count, group % 2); });
      }
    }
  }

  /// Multiplies one group with `sides` spread between its instructions.
  void multiply(int group, const std::vector<Side>& sides) {
    e_.wait(detail::bit(group % 2));
    for (const Group::Work& w : group_.convert) e_.math(w.op, w.count);
    const auto count = static_cast<std::int64_t>(std::max(1.0, std::ceil(group_.count - 1e-9)));
    const auto gaps = static_cast<std::int64_t>(sides.size()) + 1;
    std::int64_t done = 0;
    for (std::int64_t i = 0; i < gaps; ++i) {
      // Fragments that arrived are waited for before their scoreboard is set again.
      const std::int64_t until = std::max<std::int64_t>(1, (i + 1) * count / gaps);
      const bool last = until == count;
      if (until > done) e_.stalled(group_.math, static_cast<double>(until - done), last ? group_.last_stall : 1);
      done = std::max(done, until);
      if (i + 1 < gaps) sides[static_cast<std::size_t>(i)](e_);
    }
  }

  /// One step of the k loop: `loads` in its first groups; `more`: another step follows.
  void step(const std::vector<Side>& loads, bool more) {
    const int with_loads = feed_.async ? std::max(1, groups_ - 1) : 1;
    const auto total = static_cast<int>(loads.size());
    for (int g = 0; g < groups_; ++g) {
      std::vector<Side> sides;
      const bool last = g + 1 == groups_;
      if (more && last && groups_ == 1) sync(sides, loads);
      if (!last) fragment_sides(g + 1, sides);
      if (g < with_loads && groups_ > 1) {
        for (int i = g * total / with_loads; i < (g + 1) * total / with_loads; ++i)
          sides.push_back(loads[static_cast<std::size_t>(i)]);
      }
      if (more && !feed_.async && g + 2 == groups_) {
        for (const Side& s : shared_stores()) sides.push_back(s);
      }
      if (more && last && groups_ > 1) sync(sides, {});
      multiply(g, sides);
    }
  }

  /// The step's end: the next tile is in shared memory, and its first fragments are fetched.
  void sync(std::vector<Side>& sides, const std::vector<Side>& loads) {
    for (const Side& s : loads) sides.push_back(s);
    if (feed_.async) {
      const int under_way = std::max(0, feed_.stages - 2);
      sides.emplace_back([=](Emitter& e) {
        e.commit_group();
        e.wait_group(under_way);
        e.barrier();
      });
    } else {
      if (groups_ == 1) {
        for (const Side& s : shared_stores()) sides.push_back(s);
      }
      sides.emplace_back([](Emitter& e) { e.barrier(); });
    }
    fragment_sides(0, sides);
  }

  Emitter& e_;
  const Product& p_;
  const Group& group_;
  int groups_;
  const Feed& feed_;
  std::uint16_t a_ = 0, b_ = 0;
};

}  // namespace

/// A chain of reads through the constant cache. Programs have no such instruction: loads from L2 that take as long
/// stand for it, of which the CTAs of an SM but the first one find their data in L1. Lines of the L1 constant cache, 64
/// bytes, come from the next level in 113 cycles on V100, 121 on A100 and 124 on a 2080 Ti, that level's 256 bytes from
/// L2 [MT4G].
void fetch_arguments(Emitter& e, double lines, double from_l2, const arch::GpuSpec& gpu) {
  constexpr double kNextLevel = 120;
  Tensor arguments;
  arguments.name = "arguments";
  arguments.unique_bytes = arguments.wave_bytes = 64 * lines;
  arguments.cold = false;
  const std::uint16_t tensor = e.tensor(arguments);
  const double ctas_per_sm = static_cast<double>(e.program.ctas()) / std::max(1.0, static_cast<double>(gpu.sm.count));
  const double l2 = std::clamp(gpu.l2.latency.value, 1.0, 1e4);
  const int loads = static_cast<int>(std::round((lines * kNextLevel + from_l2 * l2) / l2));
  for (int i = 0; i < std::min(loads, 16); ++i) {
    Access fetch = detail::global_access(tensor, 1, 32);
    fetch.l1_hit = 1 - 1 / (std::max(1.0, ctas_per_sm) * e.program.warps);
    e.memory(Op::load_global, e.access(fetch), 1, 0);
    e.wait(detail::bit(0));
  }
}

void emit_prologue(Emitter& e, double accumulators, double requests, const arch::GpuSpec& gpu) {
  constexpr double kSpecialRegister = 20;  // cycles until S2R has the thread's index
  // Of the 368 bytes of CUTLASS's arguments from 0x160 on, problem, operands and the length of k lie in four lines of
  // 64 bytes and two of 256. The first line is part of any kernel's start.
  fetch_arguments(e, 3, 1, gpu);
  e.stalled(Op::alu, 3, kSpecialRegister);
  for (int i = 0; i < 4; ++i) e.math(Op::imad, 4, detail::Next::dependent);
  for (int i = 0; i < 4; ++i) e.math(Op::alu, 10, detail::Next::dependent);
  // Address, two bounds each for this step and the last one, and their place in a mask.
  e.math(Op::imad, requests);
  e.math(Op::alu, 6 * requests, detail::Next::dependent);
  e.math(Op::alu, accumulators / 2);  // cleared two at a time
}

double requests_per_step(const Product& p) {
  const auto of = [&](const Operand& o) {
    const double bytes = o.element * o.tile * p.tile.tile_k;
    return std::ceil(bytes / (32 * std::max(o.widest, 0.5) * std::max(1, p.tile.warps)));
  };
  return of(p.a) + of(p.b);
}

void emit_main_loop(Emitter& e, const Product& p, const Group& group, int groups, const Feed& feed) {
  MainLoop loop(e, p, group, groups, feed);
  if (feed.async) {
    loop.async();
  } else {
    loop.through_registers();
  }
}

}  // namespace voltaic::cycle::gemm
