// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/emit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "arch/units/error.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr double kSector = 32, kLine = 128;
constexpr double kMost = 65535;        // of 16-bit counts
constexpr double kMostEntries = 4096;  // of one run of instructions
constexpr int kMostStall = 255;

std::uint16_t small(double v) {
  return static_cast<std::uint16_t>(std::clamp(v, 1.0, kMost));
}

}  // namespace

Access global_access(std::uint16_t tensor, double runs, double run_bytes) {
  Access a;
  a.tensor = tensor;
  a.sectors = small(runs * std::ceil(run_bytes / kSector));
  a.lines = small(runs * std::ceil(run_bytes / kLine));
  a.bytes = small(runs * run_bytes);
  // The data stage returns 128 bytes of any lines in a pass, sectors whole.
  a.wavefronts = a.ideal_wavefronts = small(std::ceil(a.sectors * kSector / kLine));
  return a;
}

Access shared_access(double bytes, double conflict) {
  Access a;
  a.bytes = small(bytes);
  a.ideal_wavefronts = small(std::ceil(bytes / kLine));
  a.wavefronts = small(std::ceil(a.ideal_wavefronts * conflict));
  return a;
}

Emitter::Emitter(std::string name, const arch::GpuSpec& gpu) : pipe_(gpu.pipeline) {
  program.name = std::move(name);
}

std::uint16_t Emitter::tensor(Tensor tensor) {
  program.tensors.push_back(std::move(tensor));
  return static_cast<std::uint16_t>(program.tensors.size() - 1);
}

std::uint16_t Emitter::access(const Access& access) {
  program.accesses.push_back(access);
  return static_cast<std::uint16_t>(program.accesses.size() - 1);
}

Emitter& Emitter::wait(std::uint8_t mask) {
  waits_ = static_cast<std::uint8_t>(waits_ | mask);
  return *this;
}

void Emitter::only_warps(int below) {
  warps_ = static_cast<std::uint16_t>(std::clamp(below, 0, 0xffff));
}

int Emitter::latency(Op op) const {
  double cycles = 1;
  switch (op) {
    case Op::ffma: cycles = pipe_.fma_latency.value; break;
    case Op::hfma2: cycles = pipe_.half_latency.value; break;
    case Op::dfma: cycles = pipe_.fp64_latency.value; break;
    case Op::imad: cycles = pipe_.imad_latency.value; break;
    case Op::alu: cycles = pipe_.alu_latency.value; break;
    case Op::mma: cycles = pipe_.mma_latency.value; break;
    default: break;
  }
  return static_cast<int>(std::clamp(std::ceil(cycles), 1.0, static_cast<double>(kMostStall)));
}

/// All but the last stall one cycle: they do not depend on each other.
void Emitter::put(Instruction in, double count, int last_stall) {
  double left = std::ceil(count - 1e-9);
  if (!(left >= 1)) return;
  if (left > kMost * kMostEntries) {
    throw UnsupportedError("kernel " + program.name + ": expected fewer than 2^28 instructions in a row");
  }
  in.warps = warps_;
  in.waits = std::exchange(waits_, std::uint8_t{0});
  in.stall = 1;
  const double tail = last_stall > 1 ? 1 : 0;
  for (; left > tail; left -= in.repeat, in.waits = 0) {
    in.repeat = static_cast<std::uint16_t>(std::min(left - tail, kMost));
    program.code.push_back(in);
  }
  if (tail == 0) return;
  in.repeat = 1;
  in.stall = static_cast<std::uint8_t>(std::clamp(last_stall, 1, kMostStall));
  program.code.push_back(in);
}

void Emitter::math(Op op, double count, Next next) {
  put(Instruction{op}, count, next == Next::dependent ? latency(op) : 1);
}

void Emitter::stalled(Op op, double count, double stall) {
  put(Instruction{op}, count, static_cast<int>(std::clamp(std::ceil(stall), 1.0, static_cast<double>(kMostStall))));
}

void Emitter::variable(Op op, double count, int scoreboard) {
  Instruction in{op};
  in.sets = static_cast<std::uint8_t>(scoreboard);
  put(in, count, 1);
}

void Emitter::mma(double count, Next next) {
  math(Op::mma, count, next);
}

void Emitter::memory(Op op, std::uint16_t access, double count, int scoreboard) {
  Instruction in{op};
  in.sets = static_cast<std::uint8_t>(scoreboard);
  in.argument = access;
  put(in, count, 1);
}

void Emitter::commit_group() {
  put(Instruction{Op::commit_group}, 1, 1);
}

void Emitter::wait_group(int most) {
  Instruction in{Op::wait_group};
  in.argument = static_cast<std::uint16_t>(std::max(most, 0));
  put(in, 1, 1);
}

void Emitter::barrier(int id) {
  Instruction in{Op::barrier};
  in.argument = static_cast<std::uint16_t>(id);
  put(in, 1, 1);
}

std::uint16_t Emitter::open_loop(double trips, double trips_per_x) {
  Loop loop;
  loop.begin = static_cast<std::uint32_t>(program.code.size());
  loop.trips = static_cast<std::int64_t>(std::clamp(std::ceil(trips - 1e-9), 1.0, 1e15));
  loop.trips_per_x = trips_per_x;
  program.loops.push_back(loop);
  open_.push_back(static_cast<std::uint16_t>(program.loops.size() - 1));
  return open_.back();
}

void Emitter::close_loop() {
  ensure(!open_.empty(), "a loop that was opened");
  Instruction in{Op::branch};
  in.argument = open_.back();
  open_.pop_back();
  math(Op::alu, 2, Next::dependent);  // counter and predicate
  put(in, 1, 1);
}

void Emitter::rising_trips(double first, double per_x) {
  ensure(!open_.empty(), "a loop that was opened");
  Loop& loop = program.loops[open_.back()];
  const double whole = std::clamp(std::ceil(first - 1e-9), 1.0, 1e15);
  loop.trips = static_cast<std::int64_t>(whole);
  loop.trips_per_x = per_x;
  loop.trips_ahead = std::min(0.0, first - whole);
}

void Emitter::mean_trips(double mean, double ctas_in_x) {
  ensure(!open_.empty(), "a loop that was opened");
  Loop& loop = program.loops[open_.back()];
  const double whole = std::clamp(std::floor(mean + 1e-9), 1.0, 1e15);
  const double fraction = std::clamp(mean - whole, 0.0, 1.0);
  loop.trips = static_cast<std::int64_t>(whole);
  if (fraction < 1e-6 || !(ctas_in_x > 1)) return;
  // The last CTAs, a `fraction` of all, have one more.
  loop.trips_per_x = 1 / ctas_in_x;
  loop.trips_ahead = fraction - 1;
}

Program Emitter::finish() {
  ensure(open_.empty(), "loops that are closed");
  all_warps();
  put(Instruction{Op::exit}, 1, 1);
  return std::move(program);
}

}  // namespace voltaic::cycle::detail
