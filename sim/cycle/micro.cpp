// SPDX-License-Identifier: MIT
#include "sim/cycle/micro.hpp"

#include <algorithm>

#include "sim/cycle/simulate.hpp"

namespace voltaic::cycle::micro {
namespace {

constexpr std::uint8_t kFirst = 1;  ///< Scoreboard 0 as a mask.

Program named(const char* name, int warps) {
  Program p;
  p.name = name;
  p.warps = warps;
  return p;
}

void finish(Program& p) {
  p.code.push_back({.op = Op::exit, .waits = kFirst});
}

Access shared_access(int degree) {
  Access a;
  a.wavefronts = static_cast<std::uint16_t>(degree);
  return a;
}

/// 32 lanes with `bytes` each, one after the other.
Access global_access(std::uint16_t tensor, int bytes) {
  Access a;
  a.tensor = tensor;
  a.bytes = static_cast<std::uint16_t>(32 * bytes);
  a.sectors = static_cast<std::uint16_t>(a.bytes / 32);
  a.lines = static_cast<std::uint16_t>(std::max(1, a.bytes / 128));
  a.wavefronts = a.lines;
  a.ideal_wavefronts = a.lines;
  return a;
}

/// Index, bounds and addresses, as every kernel of this kind begins: special registers, multiply-adds, a compare.
void begin(Program& p) {
  constexpr std::uint8_t kSpecialRegister = 20, kFixed = 5;
  p.code.push_back({.op = Op::alu, .stall = kSpecialRegister});
  for (const Op op : {Op::imad, Op::alu, Op::imad, Op::imad}) p.code.push_back({.op = op, .stall = kFixed});
}

}  // namespace

Program dependent(Op op, int count, const MmaShape& shape) {
  Program p = named("dependent", 1);
  p.mma = shape;
  if (is_memory(op)) p.accesses.push_back(shared_access(1));
  for (int i = 0; i < count; ++i) p.code.push_back({.op = op, .waits = kFirst, .sets = 0});
  finish(p);
  return p;
}

Program independent(Op op, int count, int warps, const MmaShape& shape) {
  Program p = named("independent", warps);
  p.mma = shape;
  p.code.push_back({.op = op, .sets = 0, .repeat = static_cast<std::uint16_t>(count)});
  finish(p);
  return p;
}

Program shared_loads(int degree, int count, int warps) {
  Program p = independent(Op::load_shared, count, warps);
  p.name = "shared loads";
  p.accesses.push_back(shared_access(degree));
  return p;
}

Program pointer_chase(Bytes footprint, int steps, const arch::GpuSpec& gpu) {
  Program p = named("pointer chase", 1);
  Tensor list{.name = "list", .unique_bytes = footprint.value, .wave_bytes = footprint.value, .cold = false};
  list.l2_hit = footprint <= gpu.l2.capacity ? 1 : 0;
  p.tensors.push_back(list);
  Access a;
  a.sectors = a.lines = 1;
  a.bytes = 8;
  a.l1_hit = footprint <= gpu.l1.capacity ? 1 : 0;
  p.accesses.push_back(a);
  for (int i = 0; i < steps; ++i) p.code.push_back({.op = Op::load_global, .waits = kFirst, .sets = 0});
  finish(p);
  return p;
}

Program read_again(Bytes per_sm, Bytes footprint, int trips, const arch::GpuSpec& gpu) {
  Program p = named("read again", 32);
  Tensor data{.name = "data", .unique_bytes = footprint.value, .wave_bytes = footprint.value, .cold = false};
  data.l2_hit = footprint <= gpu.l2.capacity ? 1 : 0;
  p.tensors.push_back(data);
  Access a = global_access(0, 8);
  a.l1_hit = per_sm <= gpu.l1.capacity ? 1 : 0;
  p.accesses.push_back(a);
  begin(p);
  p.loops.push_back({.begin = static_cast<std::uint32_t>(p.code.size()), .trips = trips});
  constexpr std::uint16_t kUnderWay = 8;
  p.code.push_back({.op = Op::load_global, .sets = 0, .repeat = kUnderWay});
  p.code.push_back({.op = Op::dfma, .waits = kFirst, .repeat = kUnderWay});
  p.code.push_back({.op = Op::branch});
  finish(p);
  return p;
}

Program stream(int reads, int writes, int warps, std::int64_t ctas) {
  constexpr double kFar = 1e12;  // bytes that no L2 holds
  Program p = named("stream", warps);
  p.grid = {ctas, 1, 1};
  begin(p);
  for (int i = 0; i < reads + writes; ++i) {
    Tensor t{.name = "t", .unique_bytes = kFar, .wave_bytes = kFar};
    t.written = i >= reads;
    p.tensors.push_back(t);
    Access a = global_access(static_cast<std::uint16_t>(i), 8);
    a.per_warp = a.bytes;
    a.per_cta[0] = std::int64_t{a.bytes} * warps;
    p.accesses.push_back(a);
  }
  for (int i = 0; i < reads; ++i) {
    p.code.push_back({.op = Op::load_global, .sets = 0, .argument = static_cast<std::uint16_t>(i)});
  }
  p.code.push_back(
      {.op = Op::dfma, .stall = 8, .waits = kFirst, .repeat = static_cast<std::uint16_t>(std::max(1, reads))});
  for (int i = reads; i < reads + writes; ++i) {
    p.code.push_back({.op = Op::store_global, .argument = static_cast<std::uint16_t>(i)});
  }
  finish(p);
  return p;
}

double cycles(const Program& program, const Machine& machine, int ctas_per_sm) {
  RunOptions options;
  options.active_sms = static_cast<double>(machine.sms);
  options.ctas = std::max<std::int64_t>(ctas_per_sm, program.ctas() / machine.sms);
  options.cta_stride = machine.sms;
  options.ctas_per_sm = ctas_per_sm;
  return simulate(program, machine, options).counters.cycles;
}

}  // namespace voltaic::cycle::micro
