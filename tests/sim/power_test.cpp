// SPDX-License-Identifier: MIT
#include "sim/cost/power.hpp"

#include "arch/calibration_document.hpp"
#include "arch/units/error.hpp"
#include "sim/cost/engine.hpp"
#include "sim/kernel/gemm.hpp"
#include "sim/request.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::Bound;

namespace {

/// A board whose law has round numbers: 50 W + 50 W V^2 F, 1 pJ per FLOP, 100 pJ per byte, V = 1 - 0.5 (1 - F).
arch::ResolvedGpu round_board(double limit_w) {
  arch::ResolvedGpu gpu = arch::resolve_gpu("a100-sxm4-80gb");
  gpu.spec.power.limit = Watts{limit_w};
  gpu.calibration = arch::with_numbers(gpu.calibration, {{"power.constant_w", 50},
                                                         {"power.clock_w", 50},
                                                         {"power.dram_j_per_byte", 1e-10},
                                                         {"power.l2_j_per_byte", 0},
                                                         {"power.tensor_j_per_flop.fp16", 1e-12},
                                                         {"power.special_j", 0},
                                                         {"power.instruction_j", 0},
                                                         {"power.dram_fp16_factor", 1},
                                                         {"power.constant_operands_math", 0.4},
                                                         {"power.constant_operands_dram", 1},
                                                         {"power.voltage_slope", 0.5},
                                                         {"power.voltage_least", 0.5},
                                                         {"power.clock_least", 0.1},
                                                         {"power.limit_share", 1},
                                                         {"power.controller_s", 1e-3}});
  return gpu;
}

kernel::Launch products(double mac) {
  kernel::Launch launch;
  launch.math = DataType::fp16;
  launch.tensor_cores = true;
  launch.work.mac = mac;
  return launch;
}

kernel::KernelCost took(double seconds, double dram_s, double dram_bytes, const arch::ResolvedGpu& gpu) {
  kernel::KernelCost cost;
  cost.time = Seconds{seconds};
  cost.clock = gpu.spec.clocks.boost;
  cost.leg(Bound::dram) = Seconds{dram_s};
  cost.leg(Bound::tensor) = Seconds{seconds};
  cost.dram_traffic = cost.l2_traffic = Bytes{dram_bytes};
  return cost;
}

report::Prediction predicted(const char* workload, const char* gpu,
                             std::vector<std::pair<const char*, const char*>> options) {
  Request r;
  r.workload = workload;
  set_option(r, "gpu", gpu);
  for (const auto& [name, value] : options) set_option(r, name, value);
  return Runner().predict(r);
}

}  // namespace

TEST_CASE("a kernel below the limit keeps its clock and pays for its bytes and operations", "[cost][power]") {
  const auto gpu = round_board(400);
  const cost::PowerModel power(gpu);
  // 50 + 50 + 1 pJ * 2 * 50e9 FLOP / 1 ms (100 W) + 100 pJ * 1e8 B / 1 ms (10 W) = 210 W for 1 ms.
  auto cost = took(1e-3, 0.1e-3, 1e8, gpu);
  power.apply(products(50e9), cost);
  CHECK_THAT(cost.time.value, WithinRel(1e-3, 1e-12));
  CHECK_THAT(cost.energy.value, WithinRel(0.210, 1e-9));
  CHECK(cost.clock == gpu.spec.clocks.boost);
  CHECK_THAT(power.gap().value, WithinRel(100, 1e-12));
}

TEST_CASE("operands that never change take less", "[cost][power]") {
  auto gpu = round_board(400);
  gpu.operating.toggle = 0;
  // 100 + 0.4 * 100 + 10 W.
  auto cost = took(1e-3, 0.1e-3, 1e8, gpu);
  cost::PowerModel(gpu).apply(products(50e9), cost);
  CHECK_THAT(cost.energy.value, WithinRel(0.150, 1e-9));
}

TEST_CASE("above the limit the clock falls until the limit is met", "[cost][power]") {
  const auto gpu = round_board(300);
  // 300 W of switching: 400 W at full clock. At F: V = 0.5 + F/2, P = 50 + 50 V^2 F + 300 V^2 F = 300.
  auto cost = took(1e-3, 0, 0, gpu);
  cost::PowerModel(gpu).apply(products(150e9), cost);
  const double f = cost.clock / gpu.spec.clocks.boost;
  const double v = 0.5 + f / 2;
  CHECK(f < 1);
  CHECK_THAT(50 + 350 * v * v * f, WithinRel(300, 1e-6));
  CHECK_THAT(cost.time.value, WithinRel(1e-3 / f, 1e-9));
  CHECK_THAT((cost.energy / cost.time).value, WithinRel(300, 1e-6));
  SECTION("a lone call as long as the controller's time feels half of it") {
    auto alone = took(1e-3, 0, 0, gpu);
    cost::PowerModel(gpu).apply(products(150e9), alone, true);
    CHECK_THAT(alone.time.value, WithinRel(1e-3 * (1 + 0.5 * (1 / f - 1)), 1e-9));
  }
  SECTION("time in DRAM does not stretch") {
    auto memory = took(1e-3, 1e-3, 3e9, gpu);  // 100 + 300 W; a lower clock saves only the clock's own watts
    memory.leg(Bound::tensor) = Seconds{0};
    memory.l2_traffic = Bytes{0};
    cost::PowerModel(gpu).apply(products(0), memory);
    CHECK_THAT(memory.time.value, WithinRel(1e-3, 1e-9));
  }
}

TEST_CASE("a law that was measured on the board moves with a cap, not with the board's own limit", "[cost][power]") {
  auto gpu = round_board(300);
  auto own = took(1e-3, 0, 0, gpu);
  own.settled = true;
  cost::PowerModel(gpu).apply(products(150e9), own);
  CHECK_THAT(own.time.value, WithinRel(1e-3, 1e-12));
  CHECK((own.energy / own.time).value <= 300 * (1 + 1e-12));
  gpu.operating.power_cap = Watts{200};
  auto capped = took(1e-3, 0, 0, gpu);
  capped.settled = true;
  cost::PowerModel(gpu).apply(products(150e9), capped);
  CHECK(capped.time > own.time);
}

TEST_CASE("a locked clock slows what follows the clock", "[cost][power]") {
  auto gpu = round_board(400);
  gpu.operating.clock = 0.5 * gpu.spec.clocks.boost;
  auto cost = took(1e-3, 0, 0, gpu);
  cost::PowerModel(gpu).apply(products(50e9), cost);
  CHECK_THAT(cost.time.value, WithinRel(2e-3, 1e-9));
  // V = 0.75: 50 + 50 * 0.5625 * 0.5 + 0.5625 * 100 W / 2.
  CHECK_THAT((cost.energy / cost.time).value, WithinRel(50 + 14.0625 + 28.125, 1e-9));
}

TEST_CASE("idle is below a stream, a stream below a product, and nothing above the limit", "[cost][power]") {
  for (const auto& name : arch::gpu_names()) {
    const auto gpu = arch::resolve_gpu(name);
    INFO(name);
    const double gap = cost::PowerModel(gpu).gap().value;
    const auto copy = predicted("op:copy,bytes=4GiB", name.c_str(), {{"framework", "graph"}});
    const auto product = predicted("op:matmul,m=8192,n=8192,k=8192", name.c_str(), {{"framework", "graph"}});
    CHECK(gap >= gpu.spec.power.idle.value);
    CHECK(*copy.average_power_w.value > gap);
    CHECK(*product.average_power_w.value > *copy.average_power_w.value * (1 - 0.005));  // both may reach the limit
    CHECK(*product.average_power_w.value <= gpu.spec.power.limit.value * (1 + 1e-9));
  }
}

TEST_CASE("a lower power cap and a lower clock are never faster, and the cap holds", "[cost][power][property]") {
  double last = 0;
  for (const char* cap : {"400W", "300W", "250W", "200W", "150W"}) {
    const auto p = predicted("op:matmul,m=8192,n=8192,k=8192", "a100-sxm4-80gb", {{"power-cap", cap}});
    INFO(cap);
    CHECK(p.total.value >= last);
    CHECK(*p.average_power_w.value <= std::stod(cap) * (1 + 1e-9));
    last = p.total.value;
  }
  last = 0;
  for (const char* clock : {"1410MHz", "1200MHz", "900MHz", "600MHz"}) {
    const auto p = predicted("bert-base", "v100-sxm2-16gb", {{"clock", clock}});
    INFO(clock);
    CHECK(p.total.value >= last);
    last = p.total.value;
  }
}

TEST_CASE("the energy of a step is that of its kernels and its gaps", "[cost][power]") {
  const auto p = predicted("bert-base", "v100-pcie-32gb", {{"mode", "training"}});
  double kernels = 0, layers = 0;
  for (const auto& row : p.nodes) kernels += p.distinct[row.distinct].energy.value;
  for (const auto& layer : p.layers) layers += layer.energy.value;
  CHECK_THAT(layers, WithinRel(kernels, 1e-9));
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb");
  const double gaps = cost::PowerModel(gpu).gap().value * (1 - p.share_kernels) * p.total.value;
  CHECK_THAT(*p.energy_j.value, WithinRel(kernels + gaps, 1e-9));
  CHECK_THAT(*p.average_power_w.value * p.total.value, WithinRel(*p.energy_j.value, 1e-12));
}

TEST_CASE("power caps run from low to the board's own limit, which is the step itself", "[cost][power]") {
  Request r;
  r.workload = "resnet50";
  r.training = true;
  set_option(r, "gpu", "v100-pcie-32gb");
  set_option(r, "precision", "fp32");
  Runner runner;
  const auto p = runner.predict(r);
  const auto caps = runner.simulator(r)->power_caps(p, runner.options(r));
  REQUIRE(caps.size() > 10);
  CHECK(caps.back().cap.value == 250);
  CHECK_THAT(caps.back().time.value, WithinRel(p.total.value, 1e-9));
  CHECK_THAT(caps.back().energy.value, WithinRel(*p.energy_j.value, 1e-6));
  for (std::size_t i = 1; i < caps.size(); ++i) CHECK(caps[i].time <= caps[i - 1].time);
  const auto* best = report::least_energy(caps);
  CHECK(best->energy <= caps.back().energy);
}

TEST_CASE("caps and clocks that the board does not have are refused by name", "[cost][power]") {
  const auto message = [](const char* option, const char* value) {
    try {
      predicted("op:relu,rows=64,cols=64", "v100-pcie-32gb", {{option, value}});
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(message("power-cap", "400W").find("250 W") != std::string::npos);
  CHECK(message("power-cap", "10W").find("idles") != std::string::npos);
  CHECK(message("power-cap", "-5W").find("--power-cap") != std::string::npos);
  CHECK(message("clock", "3GHz").find("boost") != std::string::npos);
  CHECK(message("clock", "1MHz").find("--clock") != std::string::npos);
  CHECK(message("operands", "often").find("random, constant") != std::string::npos);
  CHECK(message("operands", "1.5").find("0 to 1") != std::string::npos);
}
