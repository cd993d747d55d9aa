// SPDX-License-Identifier: MIT
// From a GPU's description to cycles and bytes per cycle.
#include "sim/cycle/machine.hpp"

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "arch/units/literals.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::literals;
using namespace voltaic::cycle;

namespace {

Program with_op(Op op) {
  Program p;
  p.name = "toy";
  p.code = {Instruction{op}, Instruction{Op::exit}};
  return p;
}

Program product(int m, int n, int k, DataType type, double issues = 1, bool sparse = false) {
  Program p = with_op(Op::mma);
  p.mma = MmaShape{m, n, k, type, sparse, issues};
  return p;
}

arch::GpuSpec gpu(const std::string& name, const std::string& set = "") {
  std::vector<arch::Override> overrides;
  if (!set.empty()) overrides.push_back(arch::parse_override(set));
  return arch::resolve_gpu(name, overrides).spec;
}

Machine machine(const std::string& name, const Program& p = with_op(Op::ffma)) {
  const auto spec = gpu(name);
  return make_machine(spec, spec.clocks.boost, p);
}

OpTiming op(const Machine& m, Op o) {
  return m.ops[static_cast<std::size_t>(o)];
}

double mma_interval(const std::string& name, const Program& p) {
  return op(machine(name, p), Op::mma).interval;
}

}  // namespace

TEST_CASE("a pipe is taken for 32 lanes over its lanes per sub-partition", "[cycle][machine]") {
  // V100: 64 FP32, 32 FP64, 64 x 2 half, 16 special lanes over 4 sub-partitions.
  const Machine v100 = machine("v100-sxm2-16gb");
  CHECK(op(v100, Op::ffma).interval == 2);
  CHECK(op(v100, Op::dfma).interval == 4);
  CHECK(op(v100, Op::hfma2).interval == 2);
  CHECK(op(v100, Op::imad).interval == 2);
  CHECK(op(v100, Op::mufu).interval == 8);
  // A100 doubles the halves; GA102 has 128 FP32 and 2 FP64 lanes.
  CHECK(op(machine("a100-sxm4-40gb"), Op::hfma2).interval == 1);
  CHECK(op(machine("a40"), Op::ffma).interval == 1);
  CHECK(op(machine("a40"), Op::dfma).interval == 64);
  CHECK(v100.partitions == 4);
  CHECK(v100.warps_per_partition == 16);
  CHECK(v100.sms == 80);
}

TEST_CASE("a tensor instruction takes its multiply-adds over the rate of a sub-partition", "[cycle][machine]") {
  // A100: 256 FP16 FMA per cycle and sub-partition. 16 x 8 x 16 = 2048: 8 cycles; half of it for k = 8.
  CHECK(mma_interval("a100-sxm4-40gb", product(16, 8, 16, DataType::fp16)) == 8);
  CHECK(mma_interval("a100-sxm4-40gb", product(16, 8, 8, DataType::fp16)) == 4);
  CHECK(mma_interval("a100-sxm4-40gb", product(16, 8, 8, DataType::tf32)) == 8);
  CHECK(mma_interval("a100-sxm4-40gb", product(16, 8, 32, DataType::int8)) == 8);
  CHECK(mma_interval("a100-sxm4-40gb", product(8, 8, 4, DataType::fp64)) == 16);
  // Sparse: twice the dense k in the same cycles.
  CHECK(mma_interval("a100-sxm4-40gb", product(16, 8, 32, DataType::fp16, 1, true)) == 8);
  // Volta: 8 x 8 x 4 for each of four quad pairs in four steps, 128 FMA per cycle: 2 cycles a step.
  CHECK(mma_interval("v100-sxm2-16gb", product(8, 8, 4, DataType::fp16, 4)) == 2);
  CHECK(mma_interval("v100-sxm2-16gb", product(16, 16, 4, DataType::fp16, 4)) == 2);
  // The latency lies beyond the cycles of issue: 24.6 on A100.
  CHECK_THAT(op(machine("a100-sxm4-40gb", product(16, 8, 16, DataType::fp16)), Op::mma).latency, WithinRel(24.6, 1e-9));
}

TEST_CASE("what a GPU cannot execute is refused in one line", "[cycle][machine]") {
  const auto refusal = [](const std::string& name, const Program& p) -> std::string {
    try {
      machine(name, p);
    } catch (const UnsupportedError& e) {
      return e.what();
    }
    return "(none)";
  };
  CHECK(refusal("h100-sxm5-80gb", with_op(Op::ffma)) ==
        "--engine cycle: h100-sxm5-80gb: its warp-group instructions and bulk copies are not modelled; expected Volta, "
        "Turing or Ampere (v100-*, t4, a100-*, a30, a10, a40)");
  CHECK(refusal("v100-sxm2-16gb", product(16, 8, 16, DataType::bf16)) ==
        "--engine cycle: v100-sxm2-16gb: toy needs bf16 tensor cores, which it lacks");
  CHECK(refusal("t4", product(16, 8, 32, DataType::fp16, 1, true)) ==
        "--engine cycle: t4: toy needs sparse fp16 tensor cores, which it lacks");
  CHECK(refusal("v100-sxm2-16gb", with_op(Op::copy_async)).find("begins with Ampere") != std::string::npos);
  CHECK(refusal("v100-sxm2-16gb", with_op(Op::load_matrix)).find("begins with Turing") != std::string::npos);
  CHECK(refusal("t4", with_op(Op::load_matrix)) == "(none)");
  // A program without tensor instructions does not need the cores of its shape.
  CHECK(refusal("v100-sxm2-16gb", with_op(Op::ffma)) == "(none)");
}

TEST_CASE("memory is counted in bytes and cycles of the clock asked for", "[cycle][machine]") {
  const auto spec = gpu("a100-sxm4-40gb");
  const Machine boost = make_machine(spec, 1410_MHz, with_op(Op::ffma));
  const Machine half = make_machine(spec, 705_MHz, with_op(Op::ffma));
  // 1555 GB/s at 1.41 GHz; twice that per cycle at half the clock, and half the cycles of latency.
  CHECK_THAT(boost.dram_bytes_per_cycle, WithinRel(1555e9 / 1410e6, 1e-12));
  CHECK_THAT(half.dram_bytes_per_cycle, WithinRel(2 * boost.dram_bytes_per_cycle, 1e-12));
  CHECK_THAT(boost.dram_latency, WithinRel(373e-9 * 1410e6, 1e-12));
  CHECK_THAT(half.dram_latency, WithinRel(boost.dram_latency / 2, 1e-12));
  CHECK(half.l2_latency == boost.l2_latency);
  CHECK_THAT(boost.l2_bytes_per_cycle, WithinRel(35.6 * 108, 1e-12));
  CHECK(boost.l2_slices == 80);
  CHECK(boost.dram_channels == 40);
  CHECK_THAT(boost.kernel_start, WithinRel(spec.pipeline.kernel_start.value * 1410e6, 1e-12));
}

TEST_CASE("reading loses refresh, mixed streams what the boards measured", "[cycle][machine]") {
  for (const auto& name : arch::gpu_names()) {
    const auto spec = gpu(name);
    if (spec.architecture == arch::Architecture::hopper) continue;
    INFO(name);
    const Machine m = machine(name);
    CHECK(m.dram_mixed_share == spec.dram.stream_efficiency);
    CHECK(m.dram_read_share >= m.dram_mixed_share);
    CHECK(m.dram_read_share <= 1);
  }
  // V100: 0.92 + 0.045 is more than refresh leaves.
  CHECK_THAT(machine("v100-sxm2-16gb").dram_read_share, WithinRel(1 - 0.041, 1e-12));
}

TEST_CASE("shared memory is carved out of L1 in the steps of the architecture", "[cycle][machine]") {
  Program p = with_op(Op::ffma);
  CHECK(machine("v100-sxm2-16gb", p).l1_bytes == 128 * 1024);
  // 40 KiB with one CTA resident: the step of 64.
  p.shared_bytes = 40 * 1024;
  p.ctas_per_sm = 1;
  CHECK(machine("v100-sxm2-16gb", p).l1_bytes == 64 * 1024);
  CHECK(machine("a100-sxm4-40gb", p).l1_bytes == 128 * 1024);
  // As many as fit: 2 x 40 need 96 of V100, 4 x 41 are all of 164 on A100.
  p.ctas_per_sm = 0;
  CHECK(machine("v100-sxm2-16gb", p).l1_bytes == 32 * 1024);
  CHECK(machine("a100-sxm4-40gb", p).l1_bytes == 28 * 1024);
}

TEST_CASE("a what-if moves the machine", "[cycle][machine]") {
  const auto slow = gpu("a100-sxm4-40gb", "gpu.pipeline.fma_latency=6");
  CHECK(op(make_machine(slow, 1410_MHz, with_op(Op::ffma)), Op::ffma).latency == 6);
  const auto many = gpu("a100-sxm4-40gb", "gpu.sm.tensor_cores*=2");
  CHECK(op(make_machine(many, 1410_MHz, product(16, 8, 16, DataType::fp16)), Op::mma).interval == 4);
  const auto wide = gpu("a100-sxm4-40gb", "gpu.dram.peak_bandwidth*=2");
  CHECK_THAT(make_machine(wide, 1410_MHz, with_op(Op::ffma)).dram_bytes_per_cycle,
             WithinRel(2 * 1555e9 / 1410e6, 1e-12));
}

TEST_CASE("wild what-ifs stay finite or are refused", "[cycle][machine]") {
  for (const char* set : {"gpu.l1.bytes_per_cycle=1e-12", "gpu.l2.bytes_per_cycle_per_sm=1e18", "gpu.l1.latency=1e18",
                          "gpu.dram.idle_latency=1e9s", "gpu.sm.sfu_lanes=1e-12", "gpu.dram.stream_efficiency=1e-12",
                          "gpu.pipeline.l2_port_bytes_per_cycle=1e-12", "gpu.sm.tensor.fp16=1e-12"}) {
    INFO(set);
    const Machine m = make_machine(gpu("a100-sxm4-40gb", set), 1410_MHz, product(16, 8, 16, DataType::fp16));
    for (const double v : {m.data_bytes, m.port_bytes, m.l2_bytes_per_cycle, m.dram_bytes_per_cycle, m.dram_mixed_share,
                           op(m, Op::mufu).interval, op(m, Op::mma).interval}) {
      CHECK(v > 0);
      CHECK(v <= 1e9);
    }
    CHECK(m.dram_latency <= 1e6);
    CHECK(m.l1_latency <= 1e6);
  }
  CHECK_THROWS_AS(make_machine(gpu("a100-sxm4-40gb", "gpu.sm.sub_partitions=100000"), 1410_MHz, with_op(Op::ffma)),
                  UnsupportedError);
}
