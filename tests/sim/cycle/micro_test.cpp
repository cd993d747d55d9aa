// SPDX-License-Identifier: MIT
// Microbenchmarks on the simulated machine against published figures.
#include "sim/cycle/micro.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "arch/loader.hpp"
#include "arch/units/literals.hpp"
#include "sim/cycle/simulate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"

using namespace voltaic;
using namespace voltaic::literals;
using namespace voltaic::cycle;

namespace {

constexpr const char* kV100 = "v100-pcie-16gb";
constexpr const char* kA100 = "a100-sxm4-80gb";
constexpr MmaShape kHmma884{.m = 8, .n = 8, .k = 4, .type = DataType::fp16, .issues = 4};
constexpr MmaShape kHmma16816{.m = 16, .n = 8, .k = 16, .type = DataType::fp16};

arch::GpuSpec spec(const std::string& name) {
  return arch::resolve_gpu(name).spec;
}

double cycles(const std::string& gpu, const Program& p, int ctas_per_sm = 1) {
  const auto g = spec(gpu);
  return micro::cycles(p, make_machine(g, g.clocks.boost, p), ctas_per_sm);
}

/// Cycles between two instructions of a chain, start and end taken off.
double latency(const std::string& gpu, Op op, const MmaShape& shape = {}) {
  return (cycles(gpu, micro::dependent(op, 300, shape)) - cycles(gpu, micro::dependent(op, 100, shape))) / 200;
}

/// Cycles of one sub-partition per instruction when all have work.
double interval(const std::string& gpu, Op op, int warps, const MmaShape& shape = {}) {
  const double per_partition = warps / 4.0;
  const auto run = [&](int count) { return cycles(gpu, micro::independent(op, count, warps, shape)); };
  return (run(3000) - run(1000)) / 2000 / per_partition;
}

double chase(const std::string& gpu, Bytes footprint) {
  const auto g = spec(gpu);
  return (cycles(gpu, micro::pointer_chase(footprint, 300, g)) - cycles(gpu, micro::pointer_chase(footprint, 100, g))) /
         200;
}

/// GB/s of all SMs in the steady state of a loop.
double rate(const std::string& gpu, Bytes per_sm, Bytes footprint) {
  const auto g = spec(gpu);
  const auto run = [&](int trips) { return cycles(gpu, micro::read_again(per_sm, footprint, trips, g), 2); };
  const double bytes = 40.0 * 2 * 32 * 8 * 256;  // trips x CTAs x warps x loads x bytes
  return bytes / (run(60) - run(20)) * g.clocks.boost.value * static_cast<double>(g.sm.count) / 1e9;
}

/// GB/s of a stream with `ctas_per_sm` CTAs of `warps` warps.
double stream_rate(const std::string& gpu, int reads, int writes, int warps, int ctas_per_sm) {
  const auto g = spec(gpu);
  const auto run = [&](int rounds) {
    return cycles(gpu, micro::stream(reads, writes, warps, g.sm.count * ctas_per_sm * rounds), ctas_per_sm);
  };
  const double bytes = 60.0 * ctas_per_sm * warps * 256 * (reads + writes);
  return bytes / (run(80) - run(20)) * g.clocks.boost.value * static_cast<double>(g.sm.count) / 1e9;
}

}  // namespace

TEST_CASE("a dependent instruction issues when published measurements say", "[cycle][micro]") {
  // Volta: 4.1, 6.2, 8.1, 4.3 and 21.1 cycles on Titan V [ACCELTUNE]; 8 cycles also [RRZE].
  CHECK_THAT(latency(kV100, Op::ffma), WithinRel(4.12, 0.1));
  CHECK_THAT(latency(kV100, Op::hfma2), WithinRel(6.18, 0.1));
  CHECK_THAT(latency(kV100, Op::dfma), WithinRel(8.06, 0.1));
  CHECK_THAT(latency(kV100, Op::imad), WithinRel(4.31, 0.1));
  CHECK_THAT(latency(kV100, Op::mufu), WithinRel(21.1, 0.1));
  CHECK_THAT(latency(kV100, Op::load_shared), WithinRel(19, 0.1));  // [JIA18]
  // 35.3 cycles for four sets of HMMA steps, each set accumulating onto the one before [ACCELTUNE].
  CHECK_THAT(latency(kV100, Op::mma, kHmma884), WithinRel(35.3 / 4, 0.05));
  // Ampere: [ABDEL], [NAK] and 24.6 cycles for HMMA.16816 [LUO24], [SUN].
  CHECK_THAT(latency(kA100, Op::ffma), WithinRel(4.0, 0.1));
  CHECK_THAT(latency(kA100, Op::hfma2), WithinRel(5.0, 0.1));
  CHECK_THAT(latency(kA100, Op::dfma), WithinRel(6.0, 0.1));
  CHECK_THAT(latency(kA100, Op::imad), WithinRel(4.0, 0.1));
  CHECK_THAT(latency(kA100, Op::load_shared), WithinRel(23, 0.1));
  CHECK_THAT(latency(kA100, Op::mma, kHmma16816), WithinRel(24.6, 0.05));
}

TEST_CASE("independent instructions take their pipe and no less", "[cycle][micro]") {
  // 32 lanes over 16, 8 and 4 lanes of a sub-partition; half precision two to a lane, four on GA100.
  CHECK_THAT(interval(kV100, Op::ffma, 16), WithinRel(2, 0.01));
  CHECK_THAT(interval(kV100, Op::hfma2, 16), WithinRel(2, 0.01));
  CHECK_THAT(interval(kV100, Op::dfma, 16), WithinRel(4, 0.01));
  CHECK_THAT(interval(kV100, Op::imad, 16), WithinRel(2, 0.01));
  CHECK_THAT(interval(kV100, Op::mufu, 16), WithinRel(8, 0.01));
  CHECK_THAT(interval(kA100, Op::ffma, 16), WithinRel(2, 0.015));
  CHECK_THAT(interval(kA100, Op::hfma2, 16), WithinRel(1, 0.015));
  CHECK_THAT(interval(kA100, Op::dfma, 16), WithinRel(4, 0.015));
  CHECK_THAT(interval(kA100, Op::mufu, 16), WithinRel(8, 0.01));
}

TEST_CASE("from 1 to 64 warps FFMA chains fill the pipe, then share it", "[cycle][micro]") {
  // A chain takes 4 cycles, the pipe 2: two warps on a sub-partition fill it. Cycles of the SM per instruction.
  for (const auto* gpu : {kV100, kA100}) {
    for (const int warps : {1, 2, 4, 8, 16, 32, 64}) {
      INFO(gpu << ", " << warps << " warps");
      Program longer = micro::dependent(Op::ffma, 300), shorter = micro::dependent(Op::ffma, 100);
      const int ctas = warps > 32 ? 2 : 1;
      longer.warps = shorter.warps = warps / ctas;
      const double taken = (cycles(gpu, longer, ctas) - cycles(gpu, shorter, ctas)) / 200;
      const double on_one = std::ceil(warps / 4.0);
      CHECK_THAT(taken, WithinRel(std::max(4.0, 2 * on_one), 0.02));
    }
  }
}

TEST_CASE("tensor instructions reach the data sheet's peak within 3 percent and no more", "[cycle][micro]") {
  const auto reached = [](const char* gpu, const MmaShape& shape, double macs) {
    const auto g = spec(gpu);
    const double per_cycle = macs * 4 / interval(gpu, Op::mma, 16, shape);
    return 2 * per_cycle * static_cast<double>(g.sm.count) * g.clocks.boost.value / g.tensor_peak(shape.type).value;
  };
  // One of four steps of 8x8x4 for each of four quad pairs.
  const double volta = reached(kV100, kHmma884, 8 * 8 * 4);
  const double ampere = reached(kA100, kHmma16816, kHmma16816.macs());
  const MmaShape imma{.m = 16, .n = 8, .k = 32, .type = DataType::int8};
  const MmaShape dmma{.m = 8, .n = 8, .k = 4, .type = DataType::fp64};
  const MmaShape tf32{.m = 16, .n = 8, .k = 8, .type = DataType::tf32};
  for (const double share : {volta, ampere, reached(kA100, imma, imma.macs()), reached(kA100, dmma, dmma.macs()),
                             reached(kA100, tf32, tf32.macs())}) {
    CHECK(share > 0.97);
    CHECK(share <= 1 + 1e-9);
  }
}

TEST_CASE("a pointer chase finds L1, L2 near and far, and DRAM", "[cycle][micro]") {
  // [RRZE] gpu-latency at 1380 and 1410 MHz: V100 28, 212, 425; A100 33, 205, 390 to 410 from 25 to 38 MB, 507 to 552.
  CHECK_THAT(chase(kV100, 64_KiB), WithinRel(28, 0.1));
  CHECK_THAT(chase(kV100, 3_MiB), WithinRel(212, 0.1));
  CHECK_THAT(chase(kV100, 32_MiB), WithinRel(425, 0.1));
  CHECK_THAT(chase(kA100, 64_KiB), WithinRel(33, 0.1));
  CHECK_THAT(chase(kA100, 8_MiB), WithinRel(205, 0.1));
  CHECK_THAT(chase(kA100, 30_MiB), WithinRel(400, 0.1));
  CHECK_THAT(chase(kA100, 64_MiB), WithinRel(527, 0.1));
}

TEST_CASE("bandwidth by working set has the plateaus of L1, L2 and DRAM", "[cycle][micro]") {
  // [RRZE] gpu-cache and gpu-l2-cache: V100 13.87 and 2.44 TB/s; A100 19.1, 5.42 and, far beyond L2, 1.73 to 1.87 TB/s.
  CHECK_THAT(rate(kV100, 64_KiB, 64_KiB), WithinRel(13870, 0.1));
  CHECK_THAT(rate(kV100, 2_MiB, 2_MiB), WithinRel(2440, 0.1));
  CHECK_THAT(rate(kA100, 64_KiB, 64_KiB), WithinRel(19100, 0.1));
  CHECK_THAT(rate(kA100, 512_KiB, 16_MiB), WithinRel(5420, 0.1));
  CHECK_THAT(rate(kA100, 512_KiB, 512_MiB), WithinRel(1800, 0.1));
}

TEST_CASE("a load with n-way bank conflicts takes n passes", "[cycle][micro]") {
  // [RRZE] gpu-l1-cache, A100: lanes 2, 4, 8, 16, 32 words apart take 2.0, 4.0, 8.0, 16.0, 32.0 cycles per load of a
  // warp.
  for (const auto* gpu : {kV100, kA100}) {
    for (const int degree : {1, 2, 4, 8, 32}) {
      INFO(gpu << ", degree " << degree);
      const auto run = [&](int count) { return cycles(gpu, micro::shared_loads(degree, count, 16)); };
      CHECK_THAT((run(300) - run(100)) / 200 / 16, WithinRel(static_cast<double>(degree), 0.02));
    }
  }
}

TEST_CASE("a stream's bandwidth grows with occupancy, then meets DRAM", "[cycle][micro]") {
  for (const auto* gpu : {kV100, kA100}) {
    double last = 0;
    for (const int warps : {1, 2, 4, 8, 16, 32}) {
      const double now = stream_rate(gpu, 1, 1, warps, 2);
      INFO(gpu << ", " << 2 * warps << " warps: " << now << " GB/s");
      CHECK(now > 0.98 * last);
      last = now;
    }
    const auto g = spec(gpu);
    CHECK(last <= g.dram.peak_bandwidth.value / 1e9);
  }
}

namespace {

/// Median of a column where another lies in [from, to], for one board.
double plateau(const test::MeasuredTable& table, const std::string& board, const std::string& size,
               const std::string& value, double from, double to) {
  std::vector<double> values;
  for (const auto& row : table.rows) {
    const double at = table.number(row, size);
    if (table.word(row, "gpu") == board && at >= from && at <= to) values.push_back(table.number(row, value));
  }
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The table, or nothing and a word on it.
std::optional<test::MeasuredTable> pack(const std::string& name) {
  auto table = test::measured_table("microbench/" + name);
  if (!table) WARN("microbench/" << name << " is not there: nothing is compared");
  return table;
}

}  // namespace

TEST_CASE("plateaus of measured latency lie within 10 percent", "[cycle][micro][pack]") {
  const auto table = pack("latency_vs_working_set.csv");
  if (!table) return;
  struct Plateau {
    const char *board, *gpu;
    double from, to, simulated;  // KiB
  };
  for (const Plateau& p :
       {Plateau{"V100-PCIE-16GB", kV100, 4, 96, 64}, Plateau{"V100-PCIE-16GB", kV100, 256, 5000, 2048},
        Plateau{"V100-PCIE-16GB", kV100, 9000, 100000, 50000}, Plateau{"A100-SXM4-80GB", kA100, 4, 128, 64},
        Plateau{"A100-SXM4-80GB", kA100, 300, 15000, 8192}, Plateau{"A100-SXM4-80GB", kA100, 26000, 36000, 30000},
        Plateau{"A100-SXM4-80GB", kA100, 50000, 120000, 80000}}) {
    INFO(p.board << ", " << p.simulated << " KiB");
    CHECK_THAT(chase(p.gpu, Bytes{p.simulated * 1024}),
               WithinRel(plateau(*table, p.board, "working_set_kib", "latency_cycles_mean", p.from, p.to), 0.1));
  }
}

TEST_CASE("plateaus of measured bandwidth lie within 10 percent", "[cycle][micro][pack]") {
  const auto cache = pack("cache_bw_shared_data_vs_size.csv");
  const auto l2 = pack("l2_bw_vs_footprint.csv");
  if (!cache || !l2) return;
  const auto measured = [&](const char* board, double from, double to) {
    return plateau(*cache, board, "data_set_kib", "eff_bw_gbps", from, to);
  };
  CHECK_THAT(rate(kV100, 64_KiB, 64_KiB), WithinRel(measured("V100-PCIE-16GB", 8, 112), 0.1));
  CHECK_THAT(rate(kV100, 2_MiB, 2_MiB), WithinRel(measured("V100-PCIE-16GB", 400, 5000), 0.1));
  CHECK_THAT(rate(kA100, 64_KiB, 64_KiB), WithinRel(measured("A100-SXM4-80GB", 16, 148), 0.1));
  CHECK_THAT(rate(kA100, 2_MiB, 2_MiB), WithinRel(measured("A100-SXM4-80GB", 1000, 18000), 0.1));
  const auto of_own = [&](double from, double to) {
    return plateau(*l2, "A100-SXM4-80GB", "footprint_kib", "eff_bw_gbps", from, to);
  };
  CHECK_THAT(rate(kA100, 512_KiB, 16_MiB), WithinRel(of_own(2000, 25000), 0.1));
  CHECK_THAT(rate(kA100, 512_KiB, 256_MiB), WithinRel(of_own(60000, 500000), 0.1));
}

TEST_CASE("streams of one load or store a thread meet the measured bandwidth of DRAM", "[cycle][micro][pack]") {
  const auto table = pack("dram_stream_bw_vs_occupancy.csv");
  if (!table) return;
  struct Kernel {
    const char* name;
    int reads, writes;
  };
  for (const auto& [board, gpu] : {std::pair{"V100-PCIE-16GB", kV100}, std::pair{"A100-SXM4-80GB", kA100}}) {
    for (const Kernel kernel :
         {Kernel{"init", 0, 1}, Kernel{"read", 1, 0}, Kernel{"scale", 1, 1}, Kernel{"triad", 3, 1}}) {
      test::Errors errors;
      double full = 1;
      for (const auto& row : table->rows) {
        const auto threads = table->integer(row, "block_threads");
        if (table->word(row, "gpu") != board || table->word(row, "kernel") != kernel.name) continue;
        if (threads != 32 && threads != 64 && threads % 256 != 0) continue;
        const auto blocks = static_cast<int>(table->integer(row, "blocks_per_sm"));
        const double got = stream_rate(gpu, kernel.reads, kernel.writes, static_cast<int>(threads / 32), blocks);
        errors.add(got, table->number(row, "bw_gbps"));
        if (threads == 1024) full = errors.values.back();
      }
      INFO(board << ' ' << kernel.name << ": mean error " << errors.mean_absolute());
      CHECK(std::abs(full) < 0.1);
      // Between one warp and all of them the model is up to a quarter fast where half the bytes are written: its queues
      // are those of the mean, latency grows only once DRAM is full.
      CHECK(errors.mean_absolute() < 0.15);
    }
  }
}
