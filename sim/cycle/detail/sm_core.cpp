// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/sm_core.hpp"

#include <fmt/format.h>

#include <cmath>

namespace voltaic::cycle::detail {
namespace {

std::int64_t up(double cycles) {
  return static_cast<std::int64_t>(std::ceil(cycles - 1e-9));
}

Stall throttle_of(Op op, Pipe gate) {
  if (is_global(op)) return Stall::lg_throttle;
  if (gate == Pipe::lsu || gate == Pipe::xu) return Stall::mio_throttle;
  return Stall::math_pipe_throttle;
}

bool reads_three_operands(Op op) {
  return op == Op::ffma || op == Op::hfma2 || op == Op::dfma || op == Op::imad;
}

}  // namespace

Decoded::Decoded(const Program& program, const Machine& machine) {
  steps.reserve(program.code.size());
  for (const Instruction& in : program.code) {
    const OpTiming& timing = machine.ops[static_cast<std::size_t>(in.op)];
    Step s;
    s.op = in.op;
    s.gate = is_memory(in.op) || in.op == Op::shuffle ? Pipe::lsu : timing.pipe;
    s.throttle = throttle_of(in.op, s.gate);
    s.waits = in.waits;
    s.sets = in.sets;
    s.repeat = in.repeat;
    s.argument = in.argument;
    s.warps = in.warps;
    s.stall = in.stall < 1 ? 1 : in.stall;
    s.interval = timing.interval;
    s.latency = timing.latency;
    s.local = s.gate != Pipe::lsu && in.op != Op::barrier && in.op != Op::exit;
    s.conflicts = reads_three_operands(in.op) ? machine.register_bank_conflicts : 0;
    steps.push_back(s);
  }
}

SmCore::SmCore(const Program& program, const Decoded& decoded, const Machine& machine, const RunOptions& options,
               MemorySystem& behind, CtaQueue& queue, EventWheel& wheel, std::uint32_t first_member, Counters& counters)
    : program_(program),
      decoded_(decoded),
      machine_(machine),
      options_(options),
      queue_(queue),
      wheel_(wheel),
      counters_(counters),
      memory_(program, machine, behind),
      partitions_(static_cast<std::size_t>(machine.partitions)),
      turns_(static_cast<std::size_t>(machine.partitions)),
      warps_(static_cast<std::size_t>(options.ctas_per_sm) * static_cast<std::size_t>(program.warps)),
      pending_(warps_.size()),
      ctas_(static_cast<std::size_t>(options.ctas_per_sm)),
      first_member_(first_member),
      addresses_(behind.needs_addresses()) {}

void SmCore::reschedule(int partition) {
  const auto p = static_cast<std::size_t>(partition);
  wheel_.schedule(first_member_ + static_cast<std::uint32_t>(partition),
                  partitions_[p].decide(std::max(wheel_.now(), turns_[p].from)));
}

bool SmCore::launch(std::int64_t at) {
  if (!queue_.open(taken_ctas_)) return false;
  for (std::size_t slot = 0; slot < ctas_.size(); ++slot) {
    Cta& cta = ctas_[slot];
    if (cta.live) continue;
    cta = Cta{};
    cta.live = true;
    cta.warps_left = static_cast<std::uint16_t>(program_.warps);
    cta.at = queue_.next();
    for (std::size_t i = 0; i < program_.loops.size(); ++i) cta.trips[i] = trips_of(program_.loops[i], i, cta.at[0]);
    cta.on.assign(partitions_.size(), 0);
    ++live_ctas_;
    ++taken_ctas_;
    if (started_ < 0) started_ = at;
    counters_.ctas += 1;
    place_warps(slot, at + up(machine_.cta_launch));
    return true;
  }
  return false;
}

std::int64_t SmCore::trips_of(const Loop& loop, std::size_t index, std::int64_t x) const {
  if (index < options_.trips.size() && options_.trips[index] > 0) return options_.trips[index];
  return loop.trips_at(x);
}

/// Warps go to sub-partitions in turn, from the one with the fewest on.
void SmCore::place_warps(std::size_t slot, std::int64_t at) {
  std::size_t part = 0;
  for (std::size_t i = 1; i < partitions_.size(); ++i) {
    if (partitions_[i].size() < partitions_[part].size()) part = i;
  }
  for (int i = 0; i < program_.warps; ++i, part = (part + 1) % partitions_.size()) {
    Warp& warp = warps_of(slot)[i];
    warp = Warp{};
    pending(warp) = Pending{};
    warp.live = true;
    warp.slot = static_cast<std::uint16_t>(slot);
    warp.index = static_cast<std::uint16_t>(i);
    warp.partition = static_cast<std::uint8_t>(part);
    if (ctas_[slot].on[part]++ == 0) ++turns_[part].ctas;
    warp.last = at - 1;
    warp.fixed_until = warp.ready = at;
    skip_other_warps(warp);
    warp.repeats = decoded_.steps[warp.step].repeat;
    const auto number = static_cast<std::uint32_t>(id(warp));
    partitions_[part].add(number);
    partitions_[part].set(number, at, decoded_.steps[warp.step].gate);
  }
  for (int p = 0; p < machine_.partitions; ++p) reschedule(p);
}

void SmCore::span(const Warp& warp, std::int64_t from, std::int64_t to, Stall state, Op op) {
  from = std::max(from, trace_from_);
  to = std::min(to, trace_to_);
  if (from >= to) return;
  const auto lane = static_cast<std::uint16_t>(warp.partition + machine_.partitions * warp.slot);
  trace_.push_back({from, to, static_cast<std::uint16_t>(lane * 32 + warp.index), state, op});
}

/// Books the warp's cycles since its last issue: fixed latency, then scoreboards or barrier, then, once it was ready,
/// cycles in which others issued and cycles in which its pipe took nobody, then the issue itself.
void SmCore::book(const SubPartition& part, const Warp& warp, const Decoded::Step& step, std::int64_t at) {
  const std::int64_t begin = warp.last + 1;
  const std::int64_t fixed = std::clamp(warp.fixed_until, begin, at);
  const std::int64_t ready = std::clamp(warp.ready, fixed, at);
  const std::int64_t others = at > ready ? part.turns_of_others(ready, at, step.gate, step.interval) : 0;
  const std::int64_t open = at - others;
  const auto add = [&](Stall state, std::int64_t cycles) {
    booked_.warp_cycles[static_cast<std::size_t>(state)] += cycles;
  };
  add(warp.fixed, fixed - begin);
  add(warp.variable, ready - fixed);
  add(step.throttle, open - ready);
  add(Stall::not_selected, others);
  add(Stall::selected, 1);
  if (trace_to_ <= 0 || at < trace_from_ || begin >= trace_to_) return;
  span(warp, begin, fixed, warp.fixed, step.op);
  span(warp, fixed, ready, warp.variable, step.op);
  span(warp, ready, open, step.throttle, step.op);
  span(warp, open, at, Stall::not_selected, step.op);
  span(warp, at, at + 1, Stall::selected, step.op);
}

std::uint64_t SmCore::address(const Warp& warp, const Access& a) const {
  const Cta& cta = ctas_[warp.slot];
  std::int64_t at = a.base + a.per_warp * warp.index;
  for (std::size_t i = 0; i < 3; ++i) at += a.per_cta[i] * cta.at[i];
  for (std::size_t i = 0; i < program_.loops.size(); ++i) at += a.per_trip[i] * pending_[id(warp)].trip[i];
  // Tensors lie far apart.
  return static_cast<std::uint64_t>(at) + (static_cast<std::uint64_t>(a.tensor) << 44);
}

void SmCore::result(Warp& warp, const Decoded::Step& step, double done, bool slow) {
  if (step.sets == kNoScoreboard) return;
  auto& board = pending(warp).scoreboards[step.sets];
  const std::int64_t clear = up(done);
  if (clear < board) return;  // An earlier instruction holds it longer.
  board = clear;
  const auto bit = static_cast<std::uint8_t>(1U << step.sets);
  warp.slow = static_cast<std::uint8_t>(slow ? warp.slow | bit : warp.slow & ~bit);
}

void SmCore::memory(Warp& warp, const Decoded::Step& step, std::int64_t at, SubPartition& part) {
  const auto now = static_cast<double>(at);
  const int partition = warp.partition;
  MemoryUnit::Times times;
  if (is_global(step.op)) {
    const Access& access = program_.accesses[step.argument];
    times = memory_.global(partition, now, step.op, step.argument, addresses_ ? address(warp, access) : 0, counters_);
    if (step.op == Op::copy_async) {
      pending(warp).open_group = std::max(pending(warp).open_group, times.done);
    } else if (step.op == Op::store_global) {
      pending(warp).stores_left = std::max(pending(warp).stores_left, times.leaves);
      times.done = times.leaves;  // Its scoreboard guards the source registers.
    }
  } else {
    double wavefronts = 1;
    if (step.op != Op::shuffle) {
      const Access& access = program_.accesses[step.argument];
      wavefronts = access.wavefronts;
      counters_.shared_wavefronts += wavefronts;
      counters_.shared_ideal_wavefronts += access.ideal_wavefronts;
    }
    times = memory_.shared(partition, now, wavefronts, step.latency, counters_);
    if (step.op == Op::store_shared) times.done = times.leaves;
  }
  result(warp, step, times.done, is_global(step.op));
  part.set_gate(Pipe::lsu, up(memory_.gate(partition)));
}

void SmCore::execute(Warp& warp, const Decoded::Step& step, std::int64_t at, SubPartition& part) {
  if (step.gate == Pipe::lsu) return memory(warp, step, at, part);
  switch (step.op) {
    case Op::commit_group: {
      Pending& p = pending(warp);
      p.groups[p.closed_groups++ % kGroups] = p.open_group;
      p.open_group = 0;
      return;
    }
    case Op::barrier:
    case Op::branch:
    case Op::wait_group:
    case Op::nop:
    case Op::exit: return;
    default:
      part.occupy(step.gate, at, step.interval + step.conflicts);
      counters_.pipe_busy[static_cast<std::size_t>(step.gate)] += step.interval;
      result(warp, step, static_cast<double>(at) + step.latency, false);
  }
}

/// Instructions that only other warps execute take no issue slot. The last step, exit, is everybody's.
void SmCore::skip_other_warps(Warp& warp) {
  while (warp.index >= decoded_.steps[warp.step].warps && decoded_.steps[warp.step].op != Op::exit) ++warp.step;
}

void SmCore::step_on(Warp& warp, const Decoded::Step& step, std::int64_t at) {
  warp.fixed = Stall::wait;
  warp.fixed_until = at + step.stall;
  if (--warp.repeats > 0) return;
  ++warp.step;
  if (step.op == Op::branch) {
    auto& trip = pending(warp).trip[step.argument];
    if (++trip < ctas_[warp.slot].trips[step.argument]) {
      warp.step = program_.loops[step.argument].begin;
      warp.fixed = Stall::branch_resolving;
      warp.fixed_until += up(machine_.branch_latency);
    } else {
      trip = 0;
    }
  }
  skip_other_warps(warp);
  warp.repeats = decoded_.steps[warp.step].repeat;
}

/// All groups but the newest `most` must be there.
void SmCore::take_groups(Warp& warp, std::uint32_t most) {
  const Pending& p = pending(warp);
  double done = 0;
  const std::uint32_t oldest = p.closed_groups > kGroups ? p.closed_groups - kGroups : 0;
  for (std::uint32_t g = oldest; g + most < p.closed_groups; ++g) done = std::max(done, p.groups[g % kGroups]);
  if (up(done) > warp.ready) {
    warp.ready = up(done);
    warp.variable = Stall::long_scoreboard;
  }
}

/// When the next instruction's operands are there. Its first issue waits, repeats do not.
void SmCore::prepare(Warp& warp, const Decoded::Step& done, std::int64_t at) {
  const Decoded::Step& next = decoded_.steps[warp.step];
  warp.ready = warp.fixed_until;
  for (unsigned mask = next.waits, i = 0; mask != 0; mask >>= 1, ++i) {
    const std::int64_t clear = pending(warp).scoreboards[i];
    if ((mask & 1U) == 0 || clear <= warp.ready) continue;
    warp.ready = clear;
    warp.variable = (warp.slow >> i & 1U) != 0 ? Stall::long_scoreboard : Stall::short_scoreboard;
  }
  if (next.op == Op::wait_group) take_groups(warp, next.argument);
  if (next.op == Op::exit && up(pending(warp).stores_left) > warp.ready) {
    warp.ready = up(pending(warp).stores_left);
    warp.variable = Stall::drain;
  }
  if (done.op == Op::barrier) arrive(warp, done.argument, at);
}

/// The last warp to arrive lets all go on; until then the others have no time.
void SmCore::arrive(Warp& warp, int barrier, std::int64_t at) {
  Cta& cta = ctas_[warp.slot];
  warp.barrier = static_cast<std::int8_t>(barrier);
  warp.variable = Stall::barrier;
  auto& arrived = cta.arrived[static_cast<std::size_t>(barrier)];
  pending(warp).after_barrier = warp.ready;
  if (++arrived < program_.warps) {
    warp.ready = SubPartition::kNever;
    ++turns_[warp.partition].at_barriers;
    return;
  }
  arrived = 0;
  const std::int64_t open = at + std::max<std::int64_t>(1, up(machine_.barrier_latency));
  for (int i = 0; i < program_.warps; ++i) {
    Warp& other = warps_of(warp.slot)[i];
    if (other.barrier != barrier) continue;
    other.barrier = -1;
    other.ready = std::max(open, pending(other).after_barrier);
    if (&other == &warp) continue;
    --turns_[other.partition].at_barriers;
    partitions_[other.partition].set(static_cast<std::uint32_t>(id(other)), other.ready,
                                     decoded_.steps[other.step].gate);
  }
  for (int p = 0; p < machine_.partitions; ++p) {
    if (p != warp.partition) reschedule(p);
  }
}

void SmCore::leave(Warp& warp, std::int64_t at) {
  warp.live = false;
  partitions_[warp.partition].remove(static_cast<std::uint32_t>(id(warp)));
  finished_ = std::max(finished_, at + 1);
  Cta& cta = ctas_[warp.slot];
  if (--cta.on[warp.partition] == 0) --turns_[warp.partition].ctas;
  if (--cta.warps_left > 0) return;
  cta.live = false;
  --live_ctas_;
  if (launch(at + 1)) return;
  for (const Cta& other : ctas_) {
    if (other.live) return;
  }
  counters_.partition_cycles += static_cast<double>(machine_.partitions) * static_cast<double>(at + 1 - started_);
}

void SmCore::issue_one(SubPartition& part, std::int64_t at) {
  Warp& warp = warps_[part.take()];
  const Decoded::Step& step = decoded_.steps[warp.step];
  book(part, warp, step, at);
  part.note_issue(at, step.gate);
  ++booked_.issued[static_cast<std::size_t>(step.op)];
  execute(warp, step, at, part);
  warp.last = at;
  if (step.op == Op::exit) return leave(warp, at);
  step_on(warp, step, at);
  prepare(warp, step, at);
  part.set_picked(warp.ready, decoded_.steps[warp.step].gate);
}

/// What the picked warp does concerns its sub-partition alone, and no other one can give this one a warp: none of its
/// warps waits at a barrier, and each resident CTA still has a warp here, so that no CTA ends and makes room.
bool SmCore::on_its_own(const SubPartition& part, const Turn& turn) const {
  if (turn.at_barriers > 0 || (turn.ctas < live_ctas_ && !queue_.empty())) return false;
  return decoded_.steps[warps_[part.picked()].step].local;
}

std::int64_t SmCore::issue(int partition, std::int64_t at) {
  const auto p = static_cast<std::size_t>(partition);
  SubPartition& part = partitions_[p];
  Turn& turn = turns_[p];
  for (std::int64_t issued = 1;; ++issued) {
    turn.from = at + 1;
    issue_one(part, at);
    at = part.decide(turn.from);
    if (at != SubPartition::kNever && on_its_own(part, turn)) continue;
    wheel_.schedule(first_member_ + static_cast<std::uint32_t>(partition), at);
    return issued;
  }
}

void SmCore::settle() {
  for (std::size_t i = 0; i < kStalls; ++i) counters_.warp_cycles[i] += static_cast<double>(booked_.warp_cycles[i]);
  for (std::size_t i = 0; i < kOps; ++i) counters_.issued[i] += static_cast<double>(booked_.issued[i]);
  booked_ = {};
}

std::string SmCore::waiting() const {
  std::string out;
  int named = 0;
  for (const Warp& warp : warps_) {
    constexpr int kMostNamed = 4;
    if (!warp.live) continue;
    if (++named > kMostNamed) continue;
    const auto& at = ctas_[warp.slot].at;
    if (!out.empty()) out += ", ";
    out += fmt::format("warp {} of CTA ({}, {}, {}) waits at barrier {}", warp.index, at[0], at[1], at[2],
                       static_cast<int>(warp.barrier));
  }
  return named == 0 ? out : fmt::format("{} warps that never go on: {}{}", named, out, named > 4 ? ", ..." : "");
}

}  // namespace voltaic::cycle::detail
