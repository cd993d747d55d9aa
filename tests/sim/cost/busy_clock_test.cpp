// SPDX-License-Identifier: MIT
// The clock of a GPU that is busy for a while and rests, again and again.
#include "sim/cost/busy_clock.hpp"

#include "sim/cost/gemm_simt.hpp"
#include "tests/sim/cost/gemm_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

/// 1.5 GHz boost; linear settles at 0.8 of it within 10 ms, batched products stay where they are.
arch::ResolvedGpu toy(double start_share = 1) {
  arch::ResolvedGpu gpu;
  gpu.spec.clocks.boost = Hertz{1.5e9};
  gpu.spec.clocks.sustained = Hertz{1.5e9};
  gpu.calibration =
      arch::ParameterTree::parse(R"({"gemm_simt": {"linear": {"clock_share": 0.8, "start_share": )" +
                                     std::to_string(start_share) + R"(, "ramp_s": 0.01}, "bmm": {"clock_share": 1}}})",
                                 "toy.json");
  return gpu;
}

double share(const arch::ResolvedGpu& gpu, const char* section = "linear") {
  return gpu.calibration.number(std::string("gemm_simt.") + section + ".clock_share");
}

}  // namespace

TEST_CASE("busy for one ramp, the clock is half-way between start and settled", "[cost][busy_clock]") {
  // (1 + 0.8 x) / (1 + x): 1 at x = 0, 0.9 at 1, 0.85 at 3.
  CHECK_THAT(share(cost::busy_for(toy(), Seconds{0})), WithinRel(1, 1e-12));
  CHECK_THAT(share(cost::busy_for(toy(), Seconds{0.01})), WithinRel(0.9, 1e-12));
  CHECK_THAT(share(cost::busy_for(toy(), Seconds{0.03})), WithinRel(0.85, 1e-12));
  CHECK_THAT(share(cost::busy_for(toy(0.9), Seconds{0.01})), WithinRel(0.85, 1e-5));
}

TEST_CASE("the longer it is busy the lower its clock, down to the settled one", "[cost][busy_clock][property]") {
  double last = 2;
  for (double busy = 1e-6; busy < 1e6; busy *= 3) {
    const double now = share(cost::busy_for(toy(), Seconds{busy}));
    CHECK(now < last);
    CHECK(now > 0.8);
    CHECK(now < 1);
    last = now;
  }
  CHECK_THAT(last, WithinRel(0.8, 1e-5));
}

TEST_CASE("a board without a ramp, or that starts where it settles, is unchanged", "[cost][busy_clock]") {
  CHECK(share(cost::busy_for(toy(), Seconds{1}), "bmm") == 1);
  CHECK(share(cost::busy_for(toy(0.8), Seconds{0.01})) == 0.8);
  CHECK(share(cost::busy_for(toy(0.5), Seconds{0.01})) == 0.8);
  const arch::ResolvedGpu gpu = toy();
  const auto other = cost::busy_for(gpu, Seconds{0.01});
  CHECK(share(gpu) == 0.8);
  CHECK(other.spec.clocks.boost == gpu.spec.clocks.boost);
}

TEST_CASE("shipped boards are as fast as under lasting load, or faster, when they rest", "[cost][busy_clock]") {
  const auto problem = test::product(4096, 4096, 4096, DataType::fp32);
  for (const char* name : {"v100-pcie-32gb", "a100-pcie-40gb", "h100-sxm5-80gb", "t4"}) {
    const auto gpu = arch::resolve_gpu(name);
    const auto seconds = [&](const arch::ResolvedGpu& g) {
      const cost::SimtModel model(g);
      const auto& law = model.law(true);
      return law.time(law.kernels().front(), problem, 1, model.machine(DataType::fp32, law)).total;
    };
    const double settled = seconds(gpu);
    double last = 0;
    for (const double busy : {0.0, 1e-3, 1e-1, 10.0, 1e9}) {
      const double now = seconds(cost::busy_for(gpu, Seconds{busy}));
      INFO(name << " " << busy);
      CHECK(now <= settled * (1 + 1e-9));
      CHECK(now >= last * (1 - 1e-9));
      last = now;
    }
    CHECK_THAT(last, WithinRel(settled, 1e-4));
  }
}
