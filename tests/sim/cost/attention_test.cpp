// SPDX-License-Identifier: MIT
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/attention_schedule.hpp"
#include "sim/cost/engine.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::AttentionKernel;

namespace {

struct Machine {
  explicit Machine(const std::string& name, const std::vector<arch::Override>& overrides = {})
      : gpu(arch::resolve_gpu(name, overrides)), engine(cost::make_engine(cost::EngineKind::analytic, gpu)) {}
  kernel::KernelCost main(const AttentionKernel& k) const {
    const auto launches = kernel::attention_launches(k, gpu.spec);
    return engine->cost(launches.at(launches.size() / 2));
  }
  double time(const AttentionKernel& k) const { return main(k).time.value; }
  arch::ResolvedGpu gpu;
  std::unique_ptr<kernel::CostModel> engine;
};

AttentionKernel prompt(std::int64_t batch, std::int64_t seq, bool causal) {
  AttentionKernel k;
  k.batch = batch;
  k.heads = 32;
  k.kv_heads = 8;
  k.seq_q = k.seq_kv = seq;
  k.head_dim = k.value_dim = 128;
  k.causal = causal;
  return k;
}

AttentionKernel step(std::int64_t batch, std::int64_t context) {
  auto k = prompt(batch, 1, false);
  k.seq_kv = context;
  k.decode = true;
  return k;
}

const Machine& a100() {
  static const Machine machine("a100-sxm4-80gb");
  return machine;
}

}  // namespace

TEST_CASE("CTAs of one SM share its speed while both work, and waiting costs nothing", "[cost][attention]") {
  cost::AttentionSchedule s;
  s.sms = 1;
  s.resident = 2;
  s.rate = 1;  // Two together are as fast as one alone.
  s.wait = 1;
  s.work = {2, 4};
  s.groups = 1;
  // Both wait to 1; side by side until the first has done 2 at half speed, t = 5; the second's last 2 alone, t = 7.
  CHECK_THAT(cost::schedule_time(s), WithinRel(7.0, 1e-12));
  s.rate = 2;  // No interference: 1 + 4.
  CHECK_THAT(cost::schedule_time(s), WithinRel(5.0, 1e-12));
  s.resident = 1;  // One after the other: 1 + 2 + 1 + 4.
  CHECK_THAT(cost::schedule_time(s), WithinRel(8.0, 1e-12));
  s.sms = 2;
  CHECK_THAT(cost::schedule_time(s), WithinRel(5.0, 1e-12));
}

TEST_CASE("longest-first balances what tile order leaves for the end", "[cost][attention]") {
  cost::AttentionSchedule s;
  s.sms = 2;
  s.resident = 1;
  s.work = {1, 1, 2};
  CHECK_THAT(cost::schedule_time(s), WithinRel(3.0, 1e-12));
  s.longest_first = true;  // 2 beside 1 + 1.
  CHECK_THAT(cost::schedule_time(s), WithinRel(2.0, 1e-12));
}

TEST_CASE("attention takes longer with more tokens and more sequences", "[cost][attention]") {
  for (const char* name : {"a100-sxm4-80gb", "v100-sxm2-16gb", "h100-sxm5-80gb"}) {
    const Machine machine(name);
    for (const bool causal : {false, true}) {
      double before = 0;
      for (std::int64_t batch = 1; batch <= 64; ++batch) {
        const double now = machine.time(prompt(batch, 1000, causal));
        REQUIRE(now >= before * (1 - 1e-9));
        before = now;
      }
      before = 0;
      for (std::int64_t seq = 128; seq <= 8192; seq += 128) {
        const double now = machine.time(prompt(4, seq, causal));
        REQUIRE(now >= before * (1 - 1e-9));
        before = now;
      }
    }
  }
}

TEST_CASE("a causal mask never makes attention slower, nor does a window", "[cost][attention]") {
  for (const char* name : {"a100-sxm4-80gb", "v100-sxm2-16gb", "h100-sxm5-80gb"}) {
    const Machine machine(name);
    for (const std::int64_t seq : {16, 64, 200, 256, 512, 777, 2048, 8192}) {
      auto k = prompt(2, seq, false);
      const double full = machine.time(k);
      k.causal = true;
      const double causal = machine.time(k);
      REQUIRE(causal <= full);
      k.window = 256;
      REQUIRE(machine.time(k) <= causal * (1 + 1e-9));
      k = prompt(2, seq, false);
      k.backward = true;
      const double back = machine.time(k);
      k.causal = true;
      REQUIRE(machine.time(k) <= back);
    }
  }
  auto k = prompt(1, 16384, true);
  const double causal = a100().time(k);
  k.window = 1024;
  CHECK(a100().time(k) < causal / 4);
  auto s = step(8, 16384);
  const double all = a100().time(s);
  s.window = 1024;
  CHECK(a100().time(s) < all / 2);
}

TEST_CASE("attention holds its roofline and gains from bandwidth", "[cost][attention]") {
  const Machine fast("a100-sxm4-80gb", {arch::parse_override("gpu.dram.peak_bandwidth*=1.5")});
  for (const std::int64_t batch : {1, 3, 16}) {
    for (const std::int64_t seq : {1, 17, 128, 1024, 4096}) {
      for (const auto& k : {prompt(batch, seq, true), prompt(batch, seq, false), step(batch, seq)}) {
        const auto cost = a100().main(k);
        REQUIRE(std::isfinite(cost.time.value));
        REQUIRE(cost.time >= cost.roofline);
        for (const auto leg : cost.legs) REQUIRE(leg <= cost.time);
        REQUIRE(fast.time(k) <= cost.time.value * (1 + 1e-12));
      }
    }
  }
  CHECK(fast.time(step(64, 8192)) < 0.82 * a100().time(step(64, 8192)));
}

TEST_CASE("decoding reads its cache from DRAM exactly once, at below the pins' rate", "[cost][attention]") {
  const auto k = step(16, 8192);
  const double cache = 2.0 * 16 * 8 * 8192 * 256;
  const auto cost = a100().main(k);
  CHECK_THAT(cost.dram_traffic.value, WithinRel(cache, 1e-3));
  CHECK(cost.time.value > cache / 2.039e12);
  CHECK(cost.time.value < 1.6 * cache / 2.039e12);
  CHECK(cost.bound() == kernel::Bound::dram);
}

TEST_CASE("grouped heads decode faster than one KV head per query head", "[cost][attention]") {
  auto k = step(16, 8192);
  const double grouped = a100().time(k);
  k.kv_heads = 32;
  CHECK(a100().time(k) > 2.5 * grouped);
}

TEST_CASE("Volta runs fused attention on CUTLASS, several times slower than Ampere's flash kernel",
          "[cost][attention]") {
  const Machine volta("v100-sxm2-16gb");
  const auto k = prompt(4, 2048, true);
  CHECK(volta.time(k) > 3 * a100().time(k));
  CHECK(volta.time(k) < 12 * a100().time(k));
}

TEST_CASE("backward takes two to four times forward on A100", "[cost][attention]") {
  auto k = prompt(4, 4096, true);
  const double forward = a100().time(k);
  k.backward = true;
  CHECK(a100().time(k) > 2 * forward);
  CHECK(a100().time(k) < 4 * forward);
}

TEST_CASE("every library holds its roofline, grows with its tokens and gains from bandwidth", "[cost][attention]") {
  using kernel::AttentionLibrary;
  const std::pair<const char*, std::vector<AttentionLibrary>> kBoards[] = {
      {"a100-sxm4-80gb", {AttentionLibrary::flash2_dense, AttentionLibrary::flash3_sm80, AttentionLibrary::tensorrt}},
      {"h100-sxm5-80gb",
       {AttentionLibrary::flash3_dense, AttentionLibrary::flash3_first, AttentionLibrary::flash2_dense}},
  };
  for (const auto& [name, libraries] : kBoards) {
    const Machine machine(name);
    const Machine fast(name, {arch::parse_override("gpu.dram.peak_bandwidth*=1.5")});
    for (const auto library : libraries) {
      for (const bool warm : {false, true}) {
        double before = 0;
        for (const std::int64_t batch : {1, 2, 5, 16, 64}) {
          auto k = prompt(batch, 1000, true);
          k.library = library;
          k.warm = warm;
          const auto cost = machine.main(k);
          INFO(kernel::to_string(library) << " batch " << batch << " warm " << warm);
          REQUIRE(cost.time >= cost.roofline);
          REQUIRE(cost.time.value >= before * (1 - 1e-9));
          // Under the power limit a shorter DRAM leg leaves the same work a little less clock.
          REQUIRE(fast.time(k) <= cost.time.value * (1 + 1e-3));
          before = cost.time.value;
        }
      }
    }
  }
}

TEST_CASE("warm caches are never slower and bring fewer bytes from DRAM", "[cost][attention]") {
  for (const std::int64_t context : {128, 1024, 8192, 65536}) {
    auto k = step(4, context);
    const auto cold = a100().main(k);
    k.warm = true;
    const auto warm = a100().main(k);
    CHECK(warm.time <= cold.time);
    CHECK(warm.dram_traffic <= cold.dram_traffic);
  }
}

TEST_CASE("sizes beyond all memory have a finite price in bounded time", "[cost][attention]") {
  const auto start = std::chrono::steady_clock::now();
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  for (const char* name : {"a100-sxm4-80gb", "h100-sxm5-80gb", "v100-sxm2-16gb"}) {
    const Machine machine(name);
    for (const bool causal : {false, true}) {
      auto k = prompt(1, kHuge, causal);
      REQUIRE(std::isfinite(machine.time(k)));
      k.append = name[0] != 'v';
      REQUIRE(std::isfinite(machine.time(k)));
      k.append = false;
      k.backward = true;
      REQUIRE(std::isfinite(machine.time(k)));
      k = prompt(kHuge, 4096, causal);
      REQUIRE(std::isfinite(machine.time(k)));
    }
    REQUIRE(std::isfinite(machine.time(step(kHuge, kHuge))));
  }
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 5.0);
}

TEST_CASE("absurd prompts are priced in bounded time", "[cost][attention]") {
  const auto start = std::chrono::steady_clock::now();
  for (const std::int64_t seq : {1 << 17, 1 << 20, 1 << 24}) {
    auto k = prompt(1, seq, true);
    CHECK(std::isfinite(a100().time(k)));
    k.backward = true;
    CHECK(std::isfinite(a100().time(k)));
  }
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 1.0);
}
