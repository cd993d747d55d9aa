// SPDX-License-Identifier: MIT
#include "sim/cycle/engine.hpp"

#include <thread>

#include "arch/units/error.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cycle/what_if.hpp"
#include "sim/kernel/gemm.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

using Catch::Matchers::WithinRel;
using kernel::Bound;

struct Bench {
  explicit Bench(const char* name)
      : gpu(arch::resolve_gpu(name)),
        reference(cost::make_engine(cost::EngineKind::analytic, gpu)),
        library(cost::make_library(gpu)),
        engine(gpu.spec, *reference) {}

  kernel::Launch product(std::int64_t m, std::int64_t n, std::int64_t k) const {
    kernel::GemmProblem p;
    p.m = m, p.n = n, p.k = k;
    p.math = DataType::fp16;
    p.a_bytes = p.b_bytes = p.c_bytes = 2;
    return kernel::gemm_launches(p, library->choose(p), gpu.spec).front();
  }

  const arch::ResolvedGpu gpu;
  const std::unique_ptr<kernel::CostModel> reference;
  const std::unique_ptr<kernel::LibraryChoice> library;
  const CycleEngine engine;
};

kernel::Launch copy_to_device() {
  kernel::Launch launch;
  launch.work.written = Bytes{1e6};
  launch.detail = kernel::TransferKernel{Bytes{1e6}, true, true};
  return launch;
}

}  // namespace

TEST_CASE("a kernel's legs lie within its time, its time above its bound", "[cycle][engine]") {
  for (const char* name : {"v100-sxm2-16gb", "a100-sxm4-40gb"}) {
    const Bench bench(name);
    for (const std::int64_t n : {64, 1000, 4096}) {
      const kernel::KernelCost cost = bench.engine.cost(bench.product(n, n, n));
      CHECK(cost.time >= cost.roofline);
      for (const Seconds leg : cost.legs) CHECK(leg <= cost.time);
      CHECK(cost.leg(Bound::tensor) > Seconds{0});
      CHECK(cost.ctas_per_sm >= 1);
      CHECK(cost.occupancy <= 1);
    }
  }
}

TEST_CASE("power is that of the reference, so energy follows the time", "[cycle][engine]") {
  const Bench bench("a100-sxm4-40gb");
  const kernel::Launch launch = bench.product(4096, 4096, 4096);
  const kernel::KernelCost here = bench.engine.cost(launch), there = bench.reference->cost(launch);
  CHECK(here.clock == there.clock);
  CHECK_THAT(here.energy / here.time / (there.energy / there.time), WithinRel(1.0, 1e-12));
}

TEST_CASE("copies between host and device take what the reference says", "[cycle][engine]") {
  const Bench bench("a100-sxm4-40gb");
  CHECK(bench.engine.profile(copy_to_device())->parts.empty());
  CHECK(bench.engine.cost(copy_to_device()).time == bench.reference->cost(copy_to_device()).time);
}

TEST_CASE("equal launches are simulated once, from however many threads", "[cycle][engine]") {
  const Bench bench("a100-sxm4-40gb");
  std::vector<std::shared_ptr<const Profile>> got(4);
  std::vector<std::thread> threads;
  for (auto& profile : got) {
    threads.emplace_back([&] { profile = bench.engine.profile(bench.product(512, 512, 512)); });
  }
  for (auto& t : threads) t.join();
  for (const auto& profile : got) CHECK(profile == got.front());
  CHECK(bench.engine.profile(bench.product(512, 512, 544)) != got.front());
}

TEST_CASE("a product on tensor cores gains most from faster ones", "[cycle][engine]") {
  const Bench bench("a100-sxm4-40gb");
  const auto profile = bench.engine.profile(bench.product(8192, 8192, 8192));
  const auto changes = what_if(*profile, bench.gpu.spec, {});
  REQUIRE(!changes.empty());
  CHECK(changes.front().path == "sm.tensor.rate");
  CHECK(changes.front().time_ratio < 0.9);
}

TEST_CASE("a GPU whose SM is not modelled is refused", "[cycle][engine]") {
  CHECK_THROWS_AS(Bench("h100-sxm5-80gb"), UnsupportedError);
}

}  // namespace voltaic::cycle
