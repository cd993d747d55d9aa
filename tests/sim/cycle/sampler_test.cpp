// SPDX-License-Identifier: MIT
#include "sim/cycle/sampler.hpp"

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/cycle/tag_replay.hpp"
#include "tests/sim/cycle/toy.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

using Catch::Matchers::WithinRel;

constexpr Instruction plain(Op op, std::uint8_t stall, std::uint16_t repeat = 1, std::uint16_t argument = 0) {
  return {op, stall, 0, kNoScoreboard, repeat, argument, 0xffff};
}
constexpr Instruction waiting(Op op, std::uint8_t waits, std::uint8_t stall = 1, std::uint16_t repeat = 1) {
  return {op, stall, waits, kNoScoreboard, repeat, 0, 0xffff};
}
constexpr Instruction setting(Op op, std::uint8_t sets, std::uint16_t access, std::uint16_t repeat = 1) {
  return {op, 2, 0, sets, repeat, access, 0xffff};
}

/// A line per warp, CTA after CTA, trip after trip: every channel has its turn.
Access line_access(std::uint16_t tensor) {
  Access a;
  a.per_warp = 128;
  a.per_cta = {512, 0, 0};
  a.per_trip[0] = 1 << 20;
  a.tensor = tensor;
  a.sectors = 4;
  a.lines = 1;
  return a;
}

/// Per trip: what the trip before loaded goes to shared memory, the next lines are asked for, products from shared
/// memory hide their way.
Program product(std::int64_t ctas, std::int64_t trips, double l2_hit = 0.9) {
  Program p;
  p.name = "product";
  p.warps = 4;
  p.registers_per_thread = 128;
  p.shared_bytes = 16 * 1024;
  p.grid = {ctas, 1, 1};
  p.tensors = {{"a", 1e6, 1e6}, {"c", 1e6, 1e6}};
  p.tensors[0].l2_hit = l2_hit;
  p.tensors[1].written = true;
  p.accesses = {line_access(0), Access{}, line_access(1)};
  p.loops = {{2, trips}};
  p.code = {plain(Op::alu, 4, 8),
            setting(Op::load_global, 0, 0, 2),
            waiting(Op::store_shared, 1, 2, 2),  // the loop begins
            plain(Op::barrier, 1),
            setting(Op::load_global, 0, 0, 2),
            setting(Op::load_shared, 1, 1, 4),
            waiting(Op::mma, 2, 2, 32),
            plain(Op::barrier, 1),
            plain(Op::alu, 4, 2),
            plain(Op::branch, 1),
            setting(Op::store_global, 2, 2, 8),
            plain(Op::exit, 1)};
  p.code[2].argument = 1;
  return p;
}

/// Loads a line per warp, works on it, stores it.
Program stream(std::int64_t ctas) {
  Program p;
  p.name = "stream";
  p.warps = 4;
  p.grid = {ctas, 1, 1};
  p.tensors = {{"x", 1e8, 1e8}, {"y", 1e8, 1e8}};
  p.tensors[1].written = true;
  p.accesses = {line_access(0), line_access(1)};
  p.code = {plain(Op::alu, 4, 4), setting(Op::load_global, 0, 0, 2), waiting(Op::ffma, 1, 4, 4),
            setting(Op::store_global, 1, 1, 2), plain(Op::exit, 1)};
  return p;
}

const arch::GpuSpec& gpu() {
  static const arch::ResolvedGpu a100 = arch::resolve_gpu("a100-sxm4-40gb");
  return a100.spec;
}

Machine machine(std::int64_t sms) {
  Machine m = test::toy_machine();
  m.sms = sms;
  m.l2_bytes_per_cycle = 48.0 * static_cast<double>(sms);
  m.dram_bytes_per_cycle = 12.0 * static_cast<double>(sms);
  return m;
}

Counters run(const Program& p, const Machine& m, Sample sample) {
  return run_kernel(p, gpu(), m, {sample, L2Model::footprint}).counters;
}

void check_agreement(const Program& p, const Machine& m, double tolerance = 0.02) {
  const Counters full = run(p, m, Sample::full);
  const Counters steady = run(p, m, Sample::steady);
  INFO(p.name << " of " << p.ctas() << " CTAs: full " << full.cycles << ", sampled " << steady.cycles);
  CHECK_THAT(steady.cycles, WithinRel(full.cycles, tolerance));
  CHECK_THAT(steady.instructions(), WithinRel(full.instructions(), 1e-9));
  CHECK_THAT(steady.l2_read_sectors, WithinRel(full.l2_read_sectors, 1e-9));
  CHECK_THAT(steady.l2_write_sectors, WithinRel(full.l2_write_sectors, 1e-9));
  CHECK_THAT(steady.dram_read_bytes, WithinRel(full.dram_read_bytes, tolerance));
  CHECK_THAT(steady.shared_wavefronts + 1, WithinRel(full.shared_wavefronts + 1, 1e-9));
}

}  // namespace

TEST_CASE("a sampled kernel takes the time of the whole one", "[cycle][sampler]") {
  for (const std::int64_t sms : {4, 8}) {
    const Machine m = machine(sms);
    for (const std::int64_t trips : {40, 300}) {
      for (const std::int64_t per_sm : {1, 3, 9, 30}) check_agreement(product(sms * per_sm, trips), m);
    }
    for (const std::int64_t per_sm : {16, 100, 700}) check_agreement(stream(sms * per_sm), m);
  }
}

TEST_CASE("of a kernel of few trips a sample sees a few misses less than the SM that has most", "[cycle][sampler]") {
  const Machine m = machine(4);
  for (const std::int64_t per_sm : {1, 3, 9}) check_agreement(product(4 * per_sm, 5), m, 0.1);
  check_agreement(stream(8), m, 0.03);
}

TEST_CASE("a ragged last wave takes as long in a sample as in the whole", "[cycle][sampler]") {
  const Machine m = machine(4);
  for (const std::int64_t ctas : {4 * 4 + 4, 4 * 13, 4 * 21, 4 * 50 + 4}) check_agreement(product(ctas, 64), m);
}

TEST_CASE("products that L2 serves sample within 2 %, those that wait for DRAM within 3 %, a known gap",
          "[cycle][sampler]") {
  // One SM with its share of DRAM never meets the requests of the others.
  const Machine m = machine(4);
  for (const double hit : {0.95, 1.0}) check_agreement(product(48, 100, hit), m);
  for (const double hit : {0.0, 0.5}) check_agreement(product(48, 100, hit), m, 0.03);
}

TEST_CASE("CTAs with more trips the further they lie count as many as they are", "[cycle][sampler]") {
  Program p = product(4 * 16, 4);
  p.loops[0].trips_per_x = 1;
  const Machine m = machine(4);
  const Counters full = run(p, m, Sample::full);
  const Counters steady = run(p, m, Sample::steady);
  CHECK_THAT(steady.instructions(), WithinRel(full.instructions(), 1e-9));
  // Which CTAs meet on an SM is decided as they end, so the last one's end is known less well.
  CHECK_THAT(steady.cycles, WithinRel(full.cycles, 0.06));
}

TEST_CASE("a sample is short however long the kernel is", "[cycle][sampler]") {
  const Sampled s = run_kernel(product(1'000'000, 100'000), gpu(), machine(4), {});
  CHECK(s.simulated_instructions < 1e6);
  CHECK(s.counters.cycles > 1e9);
}

TEST_CASE("a CTA that no SM can hold is refused by name", "[cycle][sampler]") {
  Program p = product(4, 4);
  p.shared_bytes = 1e6;
  CHECK_THROWS_AS(run_kernel(p, gpu(), machine(4), {}), ConfigError);
}

TEST_CASE("tags keep what CTAs share and lose what is too large", "[cycle][tags]") {
  Program p = stream(64);
  p.tensors[0].cold = true;
  p.loops = {{1, 32}};
  p.code = {plain(Op::alu, 4), setting(Op::load_global, 0, 0), plain(Op::branch, 1), plain(Op::exit, 1)};
  p.accesses[0].per_cta = {};
  p.accesses[0].per_trip[0] = 512;
  const Machine m = machine(4);
  replay_tags(p, m, 2);
  // 128 distinct lines are touched by 64 CTAs.
  CHECK_THAT(p.tensors[0].l2_hit, WithinRel(63.0 / 64, 1e-9));
  p.accesses[0].per_cta[0] = 512 * 32;
  replay_tags(p, m, 2);
  CHECK(p.tensors[0].l2_hit == 0);
  p.tensors[0].cold = false;  // 1 MiB fits L2 but for a few sets that fill up
  replay_tags(p, m, 2);
  CHECK(p.tensors[0].l2_hit > 0.3);
}

}  // namespace voltaic::cycle
