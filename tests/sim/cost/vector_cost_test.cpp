// SPDX-License-Identifier: MIT
#include <cmath>

#include "arch/units/literals.hpp"
#include "sim/cost/analytic.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cost/single_op.hpp"
#include "sim/cost/transfer_cost.hpp"
#include "sim/kernel/vector.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::literals;
using kernel::Bound;
using kernel::Launch;
using kernel::VectorKernel;
using kernel::VectorKind;
using kernel::vector::Pass;

namespace {

/// 10 SMs at 1 GHz with 100 FP32 lanes; L2 10 MB at 1000 GB/s; DRAM 200 GB/s at half efficiency.
arch::ResolvedGpu toy() {
  arch::ResolvedGpu gpu;
  arch::GpuSpec& s = gpu.spec;
  s.sm.count = 10;
  s.sm.fp32_lanes = 100;
  s.sm.sfu_lanes = 25;
  s.sm.max_warps = 64;
  s.sm.max_ctas = 32;
  s.sm.sub_partitions = 4;
  s.sm.registers = 65536;
  s.sm.register_allocation_unit = 256;
  s.sm.warp_allocation_granularity = 4;
  s.sm.shared_memory = 96_KiB;
  s.sm.shared_allocation_unit = 256_B;
  s.clocks.boost = 1_GHz;
  s.l1.capacity = 100_KB;
  s.l2.capacity = 10_MB;
  s.l2.bytes_per_cycle_per_sm = 100;
  s.dram.peak_bandwidth = 200_GBps;
  s.dram.stream_efficiency = 0.5;
  s.dram.idle_latency = 1_us;
  s.links.pcie_each_way = 10_GBps;
  gpu.calibration = arch::ParameterTree::parse(R"({
    "vector": {
      "kinds": {
        "default": {"all_hit_share": 0.5, "all_miss_share": 1.0, "exponent": 100, "fixed_s": 2e-6},
        "layer_norm": {"row_cycles": 1000, "step_cycles": 100, "reread_l1_share": 1, "reread_l2_share": 0.5},
        "embedding": {"elements_in_flight": 1},
        "copy_strided": {"short_run_efficiency": 0.5}},
      "function_slots": {"default": 0, "pow": 50, "exp": 10},
      "idle_clock": {"elementwise": {"slowdown": 1, "below_s": 1e-4}}},
    "single_op": {"add": {"floor_s": 3e-5, "launch_s": 1e-5, "exponent": 100},
                  "default": {"floor_s": 2e-5, "launch_s": 1e-5, "exponent": 100}},
    "transfer": {"pinned_share": 0.8, "pageable_share": 0.4, "latency_s": 1e-5}})",
                                               "toy.json");
  return gpu;
}

/// n elements of four bytes, read once and written once.
Launch unary(double n, std::string_view function = "") {
  return kernel::vector::elementwise(function, Pass{n, 4 * n, 4 * n, 1, 4});
}

double time_of(const arch::ResolvedGpu& gpu, const Launch& launch) {
  return cost::VectorCost(gpu)(launch, std::get<kernel::VectorKernel>(launch.detail)).time.value;
}

}  // namespace

TEST_CASE("a stream beyond L2 runs at the sustained DRAM bandwidth", "[cost][vector]") {
  // 80 MB at 100 GB/s is 800 us, plus 2 us fixed.
  CHECK_THAT(time_of(toy(), unary(10e6)), WithinRel(802e-6, 1e-3));
}

TEST_CASE("a stream that fits L2 runs at L2 bandwidth and touches no DRAM", "[cost][vector]") {
  // 4 MB at 1000 GB/s is 4 us, plus 2 us fixed.
  const auto gpu = toy();
  const Launch launch = unary(0.5e6);
  const auto cost = cost::VectorCost(gpu)(launch, std::get<kernel::VectorKernel>(launch.detail));
  CHECK_THAT(cost.time.value, WithinRel(6e-6, 1e-3));
  CHECK(cost.dram_traffic.value == 0);
  CHECK(cost.leg(Bound::dram).value == 0);
}

TEST_CASE("heavy functions are bound by the lanes", "[cost][vector]") {
  // 0.5e6 elements of 50 slots over 1000 lanes at 1 GHz: 25 us against 4 us of bytes.
  const auto gpu = toy();
  const Launch launch = unary(0.5e6, "pow");
  const auto cost = cost::VectorCost(gpu)(launch, std::get<kernel::VectorKernel>(launch.detail));
  CHECK_THAT(cost.time.value, WithinRel(27e-6, 1e-3));
  CHECK(cost.bound() == Bound::fma);
}

TEST_CASE("functions of a fused chain add up", "[cost][vector]") {
  Launch launch = unary(0.5e6);
  std::get<kernel::VectorKernel>(launch.detail).fused = {"exp", "pow"};
  // 60 slots: 30 us, plus 2 us fixed.
  CHECK_THAT(time_of(toy(), launch), WithinRel(32e-6, 1e-3));
}

TEST_CASE("rows of a norm queue behind the CTAs that fit", "[cost][vector]") {
  // 320 rows over 10 SMs of 16 CTAs are two waves of 1000 + 100 * 128/128 cycles: 2.2 us, plus 2 us fixed.
  Launch launch = kernel::vector::rowwise("norm", VectorKind::layer_norm, 320, 128, 128,
                                          Pass{320 * 128, 4 * 320 * 128, 4 * 320 * 128, 1, 4});
  CHECK_THAT(time_of(toy(), launch), WithinRel(4.2e-6, 1e-3));
}

TEST_CASE("a second reading of long rows costs bandwidth, of short rows nothing", "[cost][vector]") {
  const auto norm = [](std::int64_t rows, std::int64_t cols, double again) {
    const double n = static_cast<double>(rows) * static_cast<double>(cols);
    Launch launch =
        kernel::vector::rowwise("norm", VectorKind::softmax_block, rows, cols, 128, Pass{n, 4 * n, 4 * n, 1, 4});
    std::get<kernel::VectorKernel>(launch.detail).reread_bytes = again * 4 * n;
    return time_of(toy(), launch);
  };
  CHECK_THAT(norm(1000000, 16, 1), WithinRel(norm(1000000, 16, 0), 1e-9));
  CHECK_THAT(norm(160, 100000, 1) / norm(160, 100000, 0), WithinRel(1.5, 0.02));
}

TEST_CASE("a broadcast operand is read again from DRAM when more than L2 passes in between", "[cost][vector]") {
  Launch launch = unary(10e6);
  auto& detail = std::get<kernel::VectorKernel>(launch.detail);
  const double plain = time_of(toy(), launch);
  detail.reread_bytes = 40e6;
  detail.reuse_bytes = 1e6;
  CHECK_THAT(time_of(toy(), launch), WithinRel(plain, 1e-9));
  detail.reuse_bytes = 50e6;
  // 40 MB more at 100 GB/s.
  CHECK_THAT(time_of(toy(), launch) - plain, WithinRel(400e-6, 1e-3));
}

TEST_CASE("few bytes in flight leave the memory idle", "[cost][vector]") {
  // Eight CTAs of 128 threads with one element each keep 4096 B in flight; a loaded access takes 2 us: 40 KB need 20
  // us.
  Launch launch = kernel::vector::elementwise("", Pass{10000, 40000, 40000, 1, 4}, VectorKind::embedding);
  launch.grid[0] = 8;
  CHECK_THAT(time_of(toy(), launch), WithinRel(40000.0 / 4096 * 2e-6 + 2e-6, 0.01));
}

TEST_CASE("runs below a sector waste bandwidth", "[cost][vector]") {
  const auto strided = [](std::int64_t run) {
    Launch launch = kernel::vector::elementwise("", Pass{10e6, 40e6, 40e6, 1, 4}, VectorKind::copy_strided);
    std::get<kernel::VectorKernel>(launch.detail).cols = run;
    std::get<kernel::VectorKernel>(launch.detail).rows = 10000000 / run;
    return time_of(toy(), launch) - 2e-6;
  };
  CHECK_THAT(strided(1) / strided(64), WithinRel(2.0, 1e-6));
}

TEST_CASE("an isolated kernel runs at the clock that idle gaps leave", "[cost][vector]") {
  const auto gpu = toy();
  const cost::VectorCost model(gpu);
  const Launch small = unary(0.5e6), large = unary(10e6);
  // Below 40 us the slow-down is whole: 4 us of L2 become 8 us.
  CHECK_THAT(model.isolated(small, std::get<kernel::VectorKernel>(small.detail)).time.value, WithinRel(10e-6, 1e-3));
  CHECK_THAT(model.isolated(large, std::get<kernel::VectorKernel>(large.detail)).time.value,
             WithinRel(time_of(gpu, large), 1e-12));
}

TEST_CASE("events around one call see the host floor or launch plus kernel", "[cost][single]") {
  const auto gpu = toy();
  struct VectorsOnly final : kernel::CostModel {
    explicit VectorsOnly(const arch::ResolvedGpu& gpu) : vectors(gpu) {}
    kernel::KernelCost cost(const Launch& launch) const override {
      return vectors.isolated(launch, std::get<kernel::VectorKernel>(launch.detail));
    }
    cost::VectorCost vectors;
  };
  const VectorsOnly engine(gpu);
  const cost::SingleOp protocol(gpu, engine);
  const auto seconds = [&](double elements, const char* function) {
    const Launch launch = unary(elements, function);
    return protocol.time({&launch, 1}).time.value;
  };
  CHECK_THAT(seconds(1000, "add"), WithinRel(30e-6, 1e-3));
  CHECK_THAT(seconds(1000, "tanh"), WithinRel(20e-6, 1e-3));
  CHECK_THAT(seconds(10e6, "add"), WithinRel(812e-6, 1e-3));
  CHECK_THAT(protocol.time({}).time.value, WithinRel(20e-6, 1e-3));
}

TEST_CASE("a host copy pays its latency and the protocol share of the link", "[cost][transfer]") {
  const auto gpu = toy();
  const cost::TransferCost model(gpu);
  // 80 MB at 0.8 * 10 GB/s is 10 ms, at 0.4 20 ms; the link alone needs 8 ms.
  CHECK_THAT(model({80_MB, true, true}).time.value, WithinRel(10.01e-3, 1e-9));
  CHECK_THAT(model({80_MB, true, false}).time.value, WithinRel(20.01e-3, 1e-9));
  CHECK_THAT(model({80_MB, true, true}).roofline.value, WithinRel(8e-3, 1e-9));
}

TEST_CASE("every built-in GPU prices every kind of vector kernel above its roofline, finitely", "[cost][vector]") {
  for (const auto& name : arch::gpu_names()) {
    const arch::ResolvedGpu gpu = arch::resolve_gpu(name);
    const auto engine = cost::make_engine(cost::EngineKind::analytic, gpu);
    for (std::size_t k = 0; k < cost::kVectorKinds; ++k) {
      const auto kind = static_cast<VectorKind>(k);
      CAPTURE(name, kernel::to_string(kind));
      double before = 0;
      for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{7}, std::int64_t{108}, std::int64_t{1729},
                                      std::int64_t{1} << 14, std::int64_t{1} << 20, std::int64_t{1} << 40}) {
        const double n = static_cast<double>(rows) * 1000;
        Launch launch = kernel::vector::rowwise("k", kind, rows, 1000, 128, Pass{n, 8 * n, 4 * n, 2, 4});
        const auto cost = engine->cost(launch);
        CHECK(std::isfinite(cost.time.value));
        CHECK(cost.time >= cost.roofline);
        CHECK(cost.time.value >= before * (1 - 1e-12));  // More rows are never faster.
        before = cost.time.value;
        for (const auto leg : cost.legs) CHECK(leg <= cost.time);
      }
    }
  }
}

TEST_CASE("more bandwidth is never slower", "[cost][vector]") {
  for (const double n : {1e3, 1e5, 1e6, 2e6, 1e7, 1e9}) {
    double before = 1e9;
    for (const double factor : {1.0, 1.3, 2.0, 5.0, 50.0}) {
      arch::ResolvedGpu gpu = arch::resolve_gpu("a100-sxm4-40gb");
      gpu.spec.dram.peak_bandwidth = factor * gpu.spec.dram.peak_bandwidth;
      const double t = time_of(gpu, unary(n));
      CHECK(t <= before * (1 + 1e-12));
      before = t;
    }
  }
}

TEST_CASE("a copy of 1 GiB on a 40 GB A100 takes about 1.59 ms", "[cost][anchor]") {
  // 2 GiB moved at 0.87 of 1555 GB/s: 1.587 ms.
  for (const auto* name : {"a100-sxm4-40gb", "a100-pcie-40gb"}) {
    const double n = 1024.0 * 1024 * 256;
    const Launch launch = kernel::vector::elementwise("", Pass{n, 4 * n, 4 * n, 1, 4}, VectorKind::copy);
    CHECK_THAT(time_of(arch::resolve_gpu(name), launch), WithinRel(1.59e-3, 0.01));
  }
}
