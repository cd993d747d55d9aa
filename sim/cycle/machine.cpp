// SPDX-License-Identifier: MIT
#include "sim/cycle/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "arch/units/error.hpp"
#include "sim/cycle/detail/dram_rows.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cycle {
namespace {

constexpr double kWarpLanes = 32;
constexpr double kLine = 128;
/// Lines whose tags the L1 looks up per cycle: loads with a stride of 15 to 31 elements, a line per lane, take 0.27 to
/// 0.30 cycles a line on A100 [RRZE] gpu-l1-cache.
constexpr double kTagLines = 4;
constexpr double kLeastL1 = 4.0 * 1024;  ///< Bytes that are left for data under way, whatever shared memory takes.
// What-ifs may be wild; times stay finite and far from overflow.
/// Bytes that an SM stores over those that it loads per cycle: stores that stay in A100's L2 reach 2.6 TB/s, 17 bytes
/// of the port's 64 (A40 15, GH200 18: two SMs share 32 bytes) [RRZE] gpu-l2-stream.
constexpr double kStoreShare = 17.0 / 64;
/// Rate of L2 beyond what a near partition holds over that within: 4600 to 4800 of 5400 GB/s on A100 [RRZE]
/// gpu-l2-cache.
constexpr double kFarShare = 4700.0 / 5400;
constexpr double kMostCycles = 1e6;  ///< Of a memory latency and of an instruction on its pipe.
constexpr double kLeastCycles = 1e-3;
constexpr double kLeastRate = 1e-3, kMostRate = 1e9;  ///< Bytes per cycle.
constexpr double kLeastShare = 1e-3;

using arch::Architecture;

[[noreturn]] void refuse(const arch::GpuSpec& gpu, const std::string& problem) {
  throw UnsupportedError(fmt::format("--engine cycle: {}: {}", gpu.name, problem));
}

/// Cycles for one warp when `lanes` results leave the sub-partition per cycle.
double interval(double lanes, double partitions) {
  return std::clamp(kWarpLanes * partitions / std::max(lanes, 1e-9), kLeastCycles, kMostCycles);
}

double bounded(Cycles latency) {
  return std::clamp(latency.value, 0.0, kMostCycles);
}

double rate(double bytes_per_cycle) {
  return std::clamp(bytes_per_cycle, kLeastRate, kMostRate);
}

/// The simulation has a state for each of these.
void check_size(const arch::GpuSpec& gpu) {
  const auto at_most = [&gpu](std::string_view path, double value, double most) {
    if (value > most) refuse(gpu, fmt::format("{}: expected at most {:g}, got {:g}", path, most, value));
  };
  at_most("sm.sub_partitions", gpu.sm.sub_partitions, 64);
  at_most("sm.max_warps", gpu.sm.max_warps, 4096);
  at_most("pipeline.queue_entries", gpu.pipeline.queue_entries, 4096);
  at_most("l2.slices", gpu.l2.slices, 4096);
  at_most("l2.ways", gpu.l2.ways, 1024);
  at_most("dram.channels", gpu.dram.channels, 4096);
  at_most("l2.capacity", gpu.l2.capacity.value, 4.0 * (1 << 30));
}

/// Shared memory is carved out of L1 in these steps [CPG] K.6 and K.7, [OCC].
std::span<const double> carve_outs(Architecture architecture) {
  static constexpr std::array<double, 6> kVolta{0, 8, 16, 32, 64, 96};
  static constexpr std::array<double, 2> kTuring{32, 64};
  static constexpr std::array<double, 8> kAmpere{0, 8, 16, 32, 64, 100, 132, 164};
  switch (architecture) {
    case Architecture::volta: return kVolta;
    case Architecture::turing: return kTuring;
    case Architecture::ampere:
    case Architecture::hopper: return kAmpere;
  }
  return kVolta;
}

/// What the carve-out leaves of L1 while as many CTAs are resident as fit.
double l1_beside(const arch::GpuSpec& gpu, const Program& program) {
  const arch::SmSpec& sm = gpu.sm;
  const kernel::CtaResources cta{program.warps * 32, program.registers_per_thread, Bytes{program.shared_bytes}};
  const int fit = sm::occupancy(cta, sm).ctas_per_sm;
  const int resident = std::max(1, program.ctas_per_sm > 0 ? std::min(program.ctas_per_sm, fit) : fit);
  const double each = program.shared_bytes > 0 ? program.shared_bytes + sm.shared_reserved_per_cta.value : 0;
  const double used = std::min(each * resident, sm.shared_memory.value);
  double carved = sm.shared_memory.value;
  for (const double kib : carve_outs(gpu.architecture)) {
    if (kib * 1024 >= used) {
      carved = std::min(carved, kib * 1024);
      break;
    }
  }
  return std::max(gpu.l1.capacity.value - carved, kLeastL1);
}

bool uses(const Program& program, Op op) {
  return std::any_of(program.code.begin(), program.code.end(), [op](const Instruction& i) { return i.op == op; });
}

void check_instructions(const arch::GpuSpec& gpu, const Program& program) {
  if (gpu.architecture == Architecture::hopper) {
    refuse(gpu,
           "its warp-group instructions and bulk copies are not modelled; expected Volta, Turing or Ampere "
           "(v100-*, t4, a100-*, a30, a10, a40)");
  }
  const bool ampere = gpu.architecture == Architecture::ampere;
  if (!ampere && uses(program, Op::copy_async)) {
    refuse(gpu, fmt::format("{} copies past the registers, which begins with Ampere", program.name));
  }
  if (gpu.architecture == Architecture::volta && uses(program, Op::load_matrix)) {
    refuse(gpu, fmt::format("{} loads matrices from shared memory, which begins with Turing", program.name));
  }
}

/// Multiply-adds of one tensor instruction of a warp. On Volta each of the four quad pairs of a warp has its own 8x8x4.
double macs_per_instruction(const arch::GpuSpec& gpu, const MmaShape& mma) {
  constexpr double kQuadPairs = 4, kQuadPairMacs = 8 * 8 * 4;
  const bool quad_pairs = gpu.architecture == Architecture::volta && mma.macs() <= kQuadPairMacs;
  return mma.macs() * (quad_pairs ? kQuadPairs : 1) / std::max(mma.issues, 1e-9);
}

OpTiming mma_timing(const arch::GpuSpec& gpu, const Program& program) {
  const MmaShape& mma = program.mma;
  const bool used = uses(program, Op::mma);
  const bool there = mma.sparse ? gpu.has_sparse_path(mma.type) : gpu.has_tensor_path(mma.type);
  if (!there) {
    if (used)
      refuse(gpu, fmt::format("{} needs {}{} tensor cores, which it lacks", program.name, mma.sparse ? "sparse " : "",
                              to_string(mma.type)));
    return {Pipe::tensor, 1, 1};
  }
  const double lanes = (mma.sparse ? gpu.sm.tensor_sparse : gpu.sm.tensor)[mma.type] / gpu.sm.sub_partitions;
  const double cycles = std::clamp(macs_per_instruction(gpu, mma) / lanes, kLeastCycles, kMostCycles);
  return {Pipe::tensor, cycles, cycles + gpu.pipeline.mma_latency.value};
}

void set_ops(Machine& m, const arch::GpuSpec& gpu, const Program& program) {
  const arch::PipelineSpec& p = gpu.pipeline;
  const arch::SmSpec& sm = gpu.sm;
  const double parts = sm.sub_partitions;
  const auto set = [&m](Op op, Pipe pipe, double taken, Cycles latency) {
    m.ops[static_cast<std::size_t>(op)] = {pipe, taken, latency.value};
  };
  const double int_lanes = sm.cuda_core[DataType::int32];
  set(Op::ffma, Pipe::fma, interval(sm.fp32_lanes, parts), p.fma_latency);
  set(Op::imad, Pipe::fma, interval(int_lanes, parts), p.imad_latency);
  set(Op::alu, Pipe::alu, interval(int_lanes, parts), p.alu_latency);
  // Two halves per lane and instruction.
  set(Op::hfma2, Pipe::fp16, interval(sm.cuda_core[DataType::fp16] / 2, parts), p.half_latency);
  set(Op::dfma, Pipe::fp64, interval(sm.cuda_core[DataType::fp64], parts), p.fp64_latency);
  set(Op::mufu, Pipe::xu, interval(sm.sfu_lanes, parts), p.mufu_latency);
  set(Op::convert, Pipe::xu, interval(sm.sfu_lanes, parts), p.mufu_latency);
  m.ops[static_cast<std::size_t>(Op::mma)] = mma_timing(gpu, program);
  set(Op::shuffle, Pipe::lsu, 1, p.shuffle_latency);
  set(Op::load_shared, Pipe::lsu, 1, p.shared_latency);
  set(Op::store_shared, Pipe::lsu, 1, p.shared_latency);
  set(Op::load_matrix, Pipe::lsu, 1, p.matrix_load_latency);
  for (const Op op : {Op::load_global, Op::store_global, Op::atomic, Op::copy_async}) {
    set(op, Pipe::lsu, 1, gpu.l1.latency);
  }
  for (const Op op : {Op::commit_group, Op::wait_group, Op::barrier, Op::branch, Op::nop, Op::exit}) {
    set(op, Pipe::control, 1, Cycles{1});
  }
}

/// Bytes of the data stage per cycle. Measured L1 rates lie a little below a whole number of cycles per line (126 of
/// 128 bytes) for the loop around the loads; the stage itself takes whole half cycles.
double data_bytes(const arch::GpuSpec& gpu) {
  const double measured = rate(std::min(gpu.l1.bytes_per_cycle, gpu.sm.shared_bytes_per_cycle));
  const double cycles = std::max(0.5, std::round(2 * kLine / measured) / 2);
  return measured > 2 * kLine ? measured : kLine / cycles;
}

/// Rows of a matrix that are read a few sectors at a time open a row of DRAM each.
void set_rows(Machine& m, const arch::DramSpec& dram) {
  constexpr double kPseudoChannels = 2, kPins = 128;
  if (!dram.technology.starts_with("HBM")) return;
  const double rate = dram.peak_bandwidth.value / std::max(1, dram.channels);
  const detail::RowTiming timing = detail::row_timing(8 * rate / kPins);
  m.dram_sector_pairs = detail::row_share(timing, rate / kPseudoChannels, kLine / 2);
  m.dram_lines = detail::row_share(timing, rate / kPseudoChannels, kLine);
}

void set_memory(Machine& m, const arch::GpuSpec& gpu, Hertz clock) {
  m.l2_bytes_per_cycle = rate(gpu.l2.bytes_per_cycle_per_sm * static_cast<double>(gpu.sm.count));
  m.l2_latency = bounded(gpu.l2.latency);
  m.l2_far_latency = bounded(gpu.l2.far_latency);
  m.l2_capacity = gpu.l2.capacity.value;
  m.l2_partitions = gpu.l2.partitions;
  m.l2_far_share = gpu.l2.partitions > 1 ? kFarShare : 1;
  m.l2_slices = gpu.l2.slices;
  m.l2_ways = gpu.l2.ways;
  const arch::DramSpec& dram = gpu.dram;
  m.dram_bytes_per_cycle = rate(dram.peak_bandwidth.value / clock.value);
  m.dram_latency = std::max(bounded(dram.idle_latency * clock), m.l2_latency);
  m.dram_channels = dram.channels;
  // V100 stores matrices whose rows end inside sectors at 0.43 TB/s, others at 0.79: five sectors written and two read
  // for four. A100 stores both at 1.5 [NEUDATA] products with k below 8.
  m.fills_cut_sectors = gpu.architecture == Architecture::volta;
  set_rows(m, dram);
  // The boards' efficiency is that of streams that read and write; reading alone turns no bus around.
  m.dram_mixed_share = std::max(dram.stream_efficiency, kLeastShare);
  const double reading = std::min(1 - dram.refresh_share, dram.stream_efficiency + dram.turnaround_share);
  m.dram_read_share = std::max(reading, m.dram_mixed_share);
}

}  // namespace

Machine make_machine(const arch::GpuSpec& gpu, Hertz clock, const Program& program) {
  ensure(clock.value > 0, "the clock of a machine is above zero");
  check_size(gpu);
  check_instructions(gpu, program);
  const arch::PipelineSpec& p = gpu.pipeline;
  Machine m;
  m.sms = gpu.sm.count;
  m.partitions = gpu.sm.sub_partitions;
  m.warps_per_partition = std::max(1, gpu.sm.max_warps / gpu.sm.sub_partitions);
  set_ops(m, gpu, program);
  m.register_bank_conflicts = p.register_bank_conflicts;
  m.branch_latency = p.branch_latency.value;
  m.barrier_latency = p.barrier_latency.value;
  m.cta_launch = p.cta_launch.value;
  m.queue_entries = static_cast<int>(p.queue_entries);
  m.port_interval = p.port_interval;
  m.shared_latency = p.shared_latency.value;
  m.l1_latency = bounded(gpu.l1.latency);
  m.tag_lines = kTagLines;
  m.data_bytes = data_bytes(gpu);
  m.l1_bytes = l1_beside(gpu, program);
  m.port_bytes = rate(p.l2_port_bytes_per_cycle);
  m.store_bytes = rate(kStoreShare * p.l2_port_bytes_per_cycle);
  set_memory(m, gpu, clock);
  // As many as keep that rate up over the mean way to L2 and back: half the addresses lie in the far partition.
  m.stores_under_way = m.store_bytes * (m.l2_partitions > 1 ? (m.l2_latency + m.l2_far_latency) / 2 : m.l2_latency);
  m.kernel_start = (p.kernel_start * clock).value;
  return m;
}

}  // namespace voltaic::cycle
