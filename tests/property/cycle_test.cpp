// SPDX-License-Identifier: MIT
// Properties of the cycle engine over random programs.
#include <cmath>
#include <numeric>
#include <random>

#include "sim/cycle/simulate.hpp"
#include "tests/sim/cycle/toy.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

constexpr std::size_t kKernels = 200;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  double share() { return std::uniform_real_distribution<double>(0, 1)(engine_); }
  bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::mt19937 engine_;
};

Instruction random_instruction(Random& random) {
  static constexpr Op kMath[] = {Op::ffma, Op::hfma2, Op::dfma, Op::imad, Op::alu, Op::mma};
  Instruction in;
  in.stall = static_cast<std::uint8_t>(random.between(1, 6));
  in.repeat = static_cast<std::uint16_t>(random.between(1, 12));
  switch (random.between(0, 5)) {
    case 0:
    case 1: in.op = kMath[random.between(0, 5)]; break;
    case 2: in.op = random.one_in(2) ? Op::load_global : Op::copy_async; break;
    case 3:
      in.op = random.one_in(2) ? Op::load_shared : Op::shuffle;
      in.argument = 2;
      break;
    case 4:
      in.op = Op::store_global;
      in.argument = 1;
      break;
    default: in.op = Op::mufu; break;
  }
  const bool variable =
      in.op == Op::load_global || in.op == Op::load_shared || in.op == Op::shuffle || in.op == Op::mufu;
  if (variable) in.sets = static_cast<std::uint8_t>(random.between(0, kScoreboards - 1));
  if (random.one_in(3)) in.waits = static_cast<std::uint8_t>(random.between(0, (1 << kScoreboards) - 1));
  return in;
}

Program random_program(Random& random) {
  Program p;
  p.name = "random";
  p.warps = random.between(1, 8);
  p.grid = {random.between(1, 5), random.between(1, 4), 1};
  p.tensors = {{.name = "x", .unique_bytes = 1e5, .wave_bytes = 1e5, .l2_hit = random.share()},
               {.name = "y", .unique_bytes = 1e5, .wave_bytes = 1e5, .written = true, .write_back = random.share()}};
  const auto lines = static_cast<std::uint16_t>(random.between(1, 4));
  const auto passes = static_cast<std::uint16_t>(random.between(1, 8));
  p.accesses = {{.tensor = 0,
                 .sectors = static_cast<std::uint16_t>(4 * lines),
                 .lines = lines,
                 .wavefronts = lines,
                 .l1_hit = random.one_in(2) ? random.share() : 0},
                {.tensor = 1, .sectors = static_cast<std::uint16_t>(4 * lines), .lines = lines, .wavefronts = lines},
                {.tensor = 0, .wavefronts = passes}};
  const auto body = [&](int n) {
    for (int i = 0; i < n; ++i) p.code.push_back(random_instruction(random));
  };
  body(random.between(0, 4));
  if (random.one_in(2)) {
    p.loops.push_back({.begin = static_cast<std::uint32_t>(p.code.size()), .trips = random.between(1, 9)});
    body(random.between(1, 6));
    if (random.one_in(2)) {
      p.code.push_back({.op = Op::commit_group});
      p.code.push_back({.op = Op::wait_group, .argument = static_cast<std::uint16_t>(random.between(0, 2))});
    }
    if (random.one_in(2)) p.code.push_back({.op = Op::barrier});
    p.code.push_back({.op = Op::branch, .argument = 0});
  }
  body(random.between(0, 4));
  p.code.push_back({.op = Op::exit});
  return p;
}

RunOptions whole(const Program& p, Random& random) {
  RunOptions o;
  o.ctas = p.ctas();
  o.ctas_per_sm = random.between(1, 4);
  return o;
}

double per_warp(const Program& p, Op op) {
  double n = 0;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    if (p.code[i].op != op) continue;
    const bool inside = !p.loops.empty() && i >= p.loops[0].begin && [&] {
      for (std::size_t j = i; j < p.code.size(); ++j) {
        if (p.code[j].op == Op::branch) return true;
      }
      return false;
    }();
    n += p.code[i].repeat * (inside ? static_cast<double>(p.loops[0].trips) : 1);
  }
  return n;
}

double stalls(const Counters& c, std::initializer_list<Stall> which) {
  double sum = 0;
  for (const Stall s : which) sum += c.warp_cycles[static_cast<std::size_t>(s)];
  return sum;
}

template <class F>
void for_random_kernels(unsigned seed, F f) {
  for (unsigned i = 0; i < kKernels; ++i) {
    Random random(seed * 1000 + i);
    Program p = random_program(random);
    const RunOptions o = whole(p, random);
    INFO("kernel " << i);
    f(p, o);
  }
}

TEST_CASE("every instruction of every warp is issued once, and every cycle of every warp has a state",
          "[property][cycle]") {
  for_random_kernels(1, [](const Program& p, const RunOptions& o) {
    const Counters c = simulate(p, test::toy_machine(), o).counters;
    const double warps = static_cast<double>(p.ctas()) * p.warps;
    for (std::size_t op = 0; op < kOps; ++op) CHECK(c.issued[op] == warps * per_warp(p, static_cast<Op>(op)));
    const double states = std::accumulate(c.warp_cycles.begin(), c.warp_cycles.end(), 0.0);
    CHECK(states == c.resident_warp_cycles);
    CHECK(c.warp_cycles[0] == c.instructions());
    CHECK(c.issue_cycles <= c.partition_cycles);
    CHECK(c.resident_warp_cycles <= c.cycles * o.ctas_per_sm * p.warps);
  });
}

TEST_CASE("bytes are conserved from level to level", "[property][cycle]") {
  for_random_kernels(2, [](const Program& p, const RunOptions& o) {
    const Counters c = simulate(p, test::toy_machine(), o).counters;
    const double loads =
        c.issued[static_cast<std::size_t>(Op::load_global)] + c.issued[static_cast<std::size_t>(Op::copy_async)];
    CHECK(c.l1_sectors == loads * p.accesses[0].sectors);
    CHECK(c.l2_read_sectors == c.l1_sectors - c.l1_hit_sectors);
    CHECK(c.l2_write_sectors == c.issued[static_cast<std::size_t>(Op::store_global)] * p.accesses[1].sectors);
    CHECK(c.dram_read_bytes == 32 * (c.l2_read_sectors + c.l2_write_sectors - c.l2_hit_sectors));
    CHECK(c.dram_write_bytes <= 32 * c.l2_write_sectors);
  });
}

TEST_CASE("no kernel beats its pipes, its links or its memory", "[property][cycle]") {
  for_random_kernels(3, [](const Program& p, const RunOptions& o) {
    const Machine m = test::toy_machine();
    const Counters c = simulate(p, m, o).counters;
    for (std::size_t pipe = 0; pipe + 1 < kPipes; ++pipe) {
      const double servers = static_cast<Pipe>(pipe) == Pipe::lsu ? 1 : m.partitions;
      CHECK(c.pipe_busy[pipe] <= servers * (c.cycles + 8));
    }
    CHECK(c.cycles >= (c.dram_read_bytes + c.dram_write_bytes) / m.dram_bytes_per_cycle);
    CHECK(c.cycles >= 32 * (c.l2_read_sectors + c.l2_write_sectors) / m.l2_bytes_per_cycle);
    CHECK(c.cycles >= 32 * c.l2_read_sectors / m.port_bytes);
    CHECK(c.cycles >= c.shared_wavefronts * 128 / m.data_bytes);
  });
}

TEST_CASE("memory without latency and limits leaves no memory stall", "[property][cycle]") {
  for_random_kernels(4, [](const Program& p, const RunOptions& o) {
    Machine m = test::toy_machine();
    constexpr double kEndless = 1e18;
    m.queue_entries = 1 << 16;
    m.port_interval = 0;
    m.tag_lines = m.data_bytes = m.l1_bytes = m.port_bytes = m.store_bytes = kEndless;
    m.l2_bytes_per_cycle = m.dram_bytes_per_cycle = kEndless;
    m.l1_latency = m.l2_latency = m.l2_far_latency = m.dram_latency = 0;
    const Counters c = simulate(p, m, o).counters;
    // An access enters its unit a cycle after its issue: by then the next instruction may issue anyhow.
    CHECK(stalls(c, {Stall::long_scoreboard, Stall::lg_throttle, Stall::drain}) <= c.instructions());
  });
}

TEST_CASE("a CTA on one SM takes as long as one on each of several", "[property][cycle]") {
  for_random_kernels(5, [](const Program& p, RunOptions o) {
    Machine m = test::toy_machine();
    m.l2_bytes_per_cycle = m.dram_bytes_per_cycle = 1e18;  // so that SMs do not meet
    o.ctas = 1;
    o.ctas_per_sm = 1;
    Program alone = p;
    alone.grid = {1, 1, 1};
    alone.tensors[0].l2_hit = alone.tensors[1].write_back = 1;
    const double one = simulate(alone, m, o).counters.cycles;
    constexpr int kSms = 5;
    Program several = alone;
    several.grid = {kSms, 1, 1};
    o.ctas = o.sms = kSms;
    o.active_sms = kSms;
    CHECK(simulate(several, m, o).counters.cycles == one);
  });
}

TEST_CASE("twice the bandwidth is never slower", "[property][cycle]") {
  for_random_kernels(6, [](Program p, const RunOptions& o) {
    // Which lines hit is drawn in the order of requests: hit shares of 0 and 1 leave nothing to draw.
    for (Tensor& tensor : p.tensors) {
      tensor.l2_hit = std::round(tensor.l2_hit);
      tensor.write_back = std::round(tensor.write_back);
    }
    p.accesses[0].l1_hit = std::round(p.accesses[0].l1_hit);
    Machine m = test::toy_machine();
    const double before = simulate(p, m, o).counters.cycles;
    m.dram_bytes_per_cycle *= 2;
    m.l2_bytes_per_cycle *= 2;
    // Loads that come back earlier change whose turn it is, which may cost a few issue slots.
    CHECK(simulate(p, m, o).counters.cycles <= 1.02 * before + 16);
  });
}

TEST_CASE("the same program gives the same counts each time", "[property][cycle]") {
  for_random_kernels(7, [](const Program& p, const RunOptions& o) {
    const Counters a = simulate(p, test::toy_machine(), o).counters;
    Counters b = simulate(p, test::toy_machine(), o).counters;
    b.combine(a, [](double mine, double other) { CHECK(mine == other); });
  });
}

}  // namespace
}  // namespace voltaic::cycle
