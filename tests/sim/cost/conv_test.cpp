// SPDX-License-Identifier: MIT
#include <memory>
#include <random>

#include "arch/loader.hpp"
#include "sim/cost/conv_law.hpp"
#include "sim/cost/engine.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::ConvPass;
using kernel::ConvProblem;

namespace {

struct Machine {
  explicit Machine(const std::string& name, const std::vector<arch::Override>& overrides = {})
      : gpu(arch::resolve_gpu(name, overrides)),
        engine(cost::make_engine(cost::EngineKind::analytic, gpu)),
        library(cost::make_library(gpu)) {}
  kernel::KernelCost cost(const ConvProblem& p) const {
    return engine->cost(kernel::conv_launches(library->choose(p), gpu.spec).at(0));
  }
  double time(const ConvProblem& p) const { return cost(p).time.value; }
  arch::ResolvedGpu gpu;
  std::unique_ptr<kernel::CostModel> engine;
  std::unique_ptr<kernel::LibraryChoice> library;
};

ConvProblem square(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size, std::int64_t filter) {
  ConvProblem p;
  p.n = n;
  p.c = c;
  p.k = k;
  p.in[1] = p.in[2] = p.out[1] = p.out[2] = size;
  p.filter[1] = p.filter[2] = filter;
  p.pad[1] = p.pad[2] = filter / 2;
  return p;
}

ConvProblem half(ConvProblem p) {
  p.math = DataType::fp16;
  p.element_bytes = 2;
  return p;
}

/// Shapes as networks have them, all passes, FP32 and half.
ConvProblem random_problem(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  ConvProblem p = square(pick(1, 64), pick(1, 512), pick(1, 512), pick(1, 64), 2 * pick(0, 2) + 1);
  p.pass = static_cast<ConvPass>(pick(0, 2));
  return pick(0, 1) == 1 ? half(p) : p;
}

}  // namespace

TEST_CASE("waves of tiles cost a prologue and a loop each, and a lone CTA does not fill its SM", "[cost][conv]") {
  cost::ConvMachine m;
  m.sms = 10;
  m.clock = 1e9;
  m.dram = 1e30;
  m.lanes = 64;
  cost::TileWaves w;
  w.ctas = 20;
  w.k = 15;       // Rounded up to 16.
  w.tile = 6400;  // 100 cycles per k.
  w.prologue = 400;
  w.even = 0;
  // Two CTAs per SM, one after the other: 2 * (400 + 16 * 100) cycles.
  CHECK_THAT(cost::wave_time(w, 0, m).time, WithinRel(4000e-9, 1e-12));
  w.ctas = 21;
  CHECK_THAT(cost::wave_time(w, 0, m).time, WithinRel(6000e-9, 1e-12));
  w.ctas = 1;
  w.fill = 1.5;  // Half a loop more for want of a neighbour.
  CHECK_THAT(cost::wave_time(w, 0, m).time, WithinRel(2800e-9, 1e-12));
  // Equal arithmetic and traffic: 2^(1/4) of either.
  m.dram = 1e9;
  CHECK_THAT(cost::wave_time(w, 2800, m).time, WithinRel(2800e-9 * 1.189207115, 1e-9));
}

TEST_CASE("no convolution beats its roofline, and no leg exceeds the time", "[cost][conv]") {
  for (const char* name : {"v100-sxm2-16gb", "a100-sxm4-80gb", "t4", "h100-sxm5-80gb", "a10"}) {
    const Machine machine(name);
    std::mt19937 random(7);
    for (int i = 0; i < 200; ++i) {
      const auto p = random_problem(random);
      const auto cost = machine.cost(p);
      REQUIRE(std::isfinite(cost.time.value));
      REQUIRE(cost.time.value > 0);
      REQUIRE(cost.time >= cost.roofline);
      for (const auto leg : cost.legs) REQUIRE(leg <= cost.time);
    }
  }
}

TEST_CASE("more bandwidth never makes a convolution slower", "[cost][conv]") {
  const Machine slow("a100-pcie-40gb");
  const Machine fast("a100-pcie-40gb", {arch::parse_override("gpu.dram.peak_bandwidth*=2")});
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    const auto p = random_problem(random);
    // The library compares times at full clock; under the power limit the kernel that it leaves may have been quicker.
    const auto a = fast.library->choose(p), b = slow.library->choose(p);
    const bool same = a.algorithm == b.algorithm && a.tile.name == b.tile.name && a.tile.split_k == b.tile.split_k;
    REQUIRE(fast.time(p) <= slow.time(p) * (same ? 1 + 1e-9 : 1.01));
  }
}

TEST_CASE("a larger batch on the same kernel never takes less time", "[cost][conv]") {
  const Machine machine("v100-pcie-32gb");
  for (const auto& base : {square(1, 64, 64, 56, 3), square(1, 256, 512, 14, 1), half(square(1, 128, 128, 28, 3))}) {
    auto kernel = machine.library->choose(base);
    double before = 0;
    for (std::int64_t n = 1; n <= 96; ++n) {
      kernel.problem.n = n;
      const double now = machine.engine->cost(kernel::conv_launches(kernel, machine.gpu.spec).at(0)).time.value;
      REQUIRE(now >= before * (1 - 1e-12));
      before = now;
    }
  }
}

TEST_CASE("tensor cores speed up half-precision convolutions, and --set turns them off", "[cost][conv]") {
  const Machine on("v100-pcie-32gb");
  const Machine off("v100-pcie-32gb", {arch::parse_override("gpu.sm.tensor_cores=0")});
  auto p = half(square(64, 256, 256, 28, 3));
  p.channels_last = true;
  CHECK(on.time(p) * 2 < off.time(p));
  // At best the FMA rate of half precision: 256 FMA per cycle and SM would be tensor cores'.
  CHECK(on.time(half(p)) < on.time(square(64, 256, 256, 28, 3)));
}

TEST_CASE("layout changes cost the passes that channels-last tensors save", "[cost][conv]") {
  const Machine machine("a100-sxm4-80gb");
  auto p = half(square(64, 64, 64, 56, 1));
  const double converted = machine.time(p);
  p.channels_last = true;
  CHECK(machine.time(p) < converted);
}

TEST_CASE("a depthwise convolution is bound by its memory or its load issue, far below a dense one", "[cost][conv]") {
  const Machine machine("a100-sxm4-80gb");
  auto p = square(32, 256, 256, 56, 3);
  const double dense = machine.time(p);
  p.groups = 256;
  const auto cost = machine.cost(p);
  CHECK(cost.time.value < dense / 4);
  // 103 MB each way at 2.04 TB/s take at least 0.1 ms.
  CHECK(cost.time.value > 2 * 4.0 * 32 * 256 * 56 * 56 / 2.04e12 * 0.75);
}

TEST_CASE("splitting the filter gradient's long sum fills the SMs", "[cost][conv]") {
  const Machine machine("v100-pcie-32gb");
  auto p = half(square(64, 64, 64, 56, 1));
  p.pass = ConvPass::wgrad;
  const auto kernel = machine.library->choose(p);
  CHECK(kernel.tile.split_k > 8);
}

TEST_CASE("absurd sizes stay finite", "[cost][conv]") {
  const Machine machine("a100-sxm4-80gb");
  auto p = square(1, 1, 1, 1, 1);
  CHECK(std::isfinite(machine.time(p)));
  p = square(1 << 20, 1 << 12, 1 << 12, 1 << 10, 3);
  CHECK(std::isfinite(machine.time(p)));
  p.pass = ConvPass::wgrad;
  CHECK(std::isfinite(machine.time(half(p))));
}
