// SPDX-License-Identifier: MIT
#include "sim/cycle/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "sim/cycle/footprint.hpp"

namespace voltaic::cycle {
namespace {

struct Setting {
  Program& program;
  arch::GpuSpec& gpu;
  Machine& machine;
};

void faster_pipe(Machine& m, Pipe pipe) {
  for (OpTiming& op : m.ops) {
    if (op.pipe == pipe) op.interval /= 2;
  }
}

/// Twice the schedulers, each with half of the pipes, queues and warps of one.
void wider_issue(Setting s) {
  s.machine.partitions *= 2;
  s.machine.warps_per_partition = std::max(1, s.machine.warps_per_partition / 2);
  for (OpTiming& op : s.machine.ops) {
    if (op.pipe != Pipe::control && op.pipe != Pipe::lsu) op.interval *= 2;
  }
  s.machine.port_interval *= 2;
  s.machine.queue_entries = std::max(1, s.machine.queue_entries / 2);
}

/// The library would use what a larger SM holds.
void more_registers(Setting s) {
  s.gpu.sm.registers *= 2;
  s.program.ctas_per_sm = 0;
}
void more_shared_memory(Setting s) {
  s.gpu.sm.shared_memory = 2 * s.gpu.sm.shared_memory;
  s.program.ctas_per_sm = 0;
}

void larger_l2(Setting s) {
  s.gpu.l2.capacity = 2 * s.gpu.l2.capacity;
  s.machine.l2_capacity *= 2;
  set_l2_hits(s.program, s.gpu);
}

struct WhatIf {
  std::string_view path, change;
  void (*apply)(Setting);
};
constexpr std::array kWhatIfs{
    WhatIf{"sm.tensor.rate", "*2", [](Setting s) { faster_pipe(s.machine, Pipe::tensor); }},
    WhatIf{"sm.fp32.lanes", "*2", [](Setting s) { faster_pipe(s.machine, Pipe::fma); }},
    WhatIf{"sm.integer.lanes", "*2", [](Setting s) { faster_pipe(s.machine, Pipe::alu); }},
    WhatIf{"sm.special.lanes", "*2", [](Setting s) { faster_pipe(s.machine, Pipe::xu); }},
    WhatIf{"sm.issue_width", "*2", wider_issue},
    WhatIf{"sm.registers", "*2", more_registers},
    WhatIf{"sm.shared.capacity", "*2", more_shared_memory},
    WhatIf{"sm.shared.bandwidth", "*2", [](Setting s) { s.machine.data_bytes *= 2; }},
    WhatIf{"l2.bandwidth", "*2",
           [](Setting s) {
             s.machine.l2_bytes_per_cycle *= 2;
             s.machine.port_bytes *= 2;
           }},
    WhatIf{"l2.latency", "*0.5",
           [](Setting s) {
             s.machine.l2_latency /= 2;
             s.machine.l2_far_latency /= 2;
           }},
    WhatIf{"l2.capacity", "*2", larger_l2},
    WhatIf{"dram.bandwidth", "*2", [](Setting s) { s.machine.dram_bytes_per_cycle *= 2; }},
    WhatIf{"dram.latency", "*0.5", [](Setting s) { s.machine.dram_latency /= 2; }},
    WhatIf{"kernel.start", "*0.5", [](Setting s) { s.machine.kernel_start /= 2; }},
};

double cycles_of(const Profile::Part& part, const Counters& counters, double start) {
  return part.times * counters.cycles + part.starts * start;
}

double changed_cycles(const Profile& profile, const arch::GpuSpec& gpu, const WhatIf& what, SampleOptions options) {
  double cycles = 0;
  for (const Profile::Part& part : profile.parts) {
    Program program = part.program;
    Machine machine = part.machine;
    arch::GpuSpec changed = gpu;
    what.apply({program, changed, machine});
    cycles += cycles_of(part, run_kernel(program, changed, machine, options).counters, machine.kernel_start);
  }
  return cycles;
}

}  // namespace

std::vector<Change> what_if(const Profile& profile, const arch::GpuSpec& gpu, SampleOptions options) {
  std::vector<Change> out;
  double now = 0;
  for (const auto& part : profile.parts) now += cycles_of(part, part.sampled.counters, part.machine.kernel_start);
  if (!(now > 0)) return out;
  for (const WhatIf& what : kWhatIfs) {
    out.push_back(
        {std::string(what.path), std::string(what.change), changed_cycles(profile, gpu, what, options) / now});
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.time_ratio < b.time_ratio; });
  return out;
}

std::vector<WarpSpan> warp_window(const Profile::Part& part, std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kMostInstructions = 50'000'000;
  const Program& program = part.program;
  const std::int64_t queue = (program.ctas() + part.machine.sms - 1) / part.machine.sms;
  RunOptions o;
  o.active_sms = static_cast<double>(program.ctas()) / static_cast<double>(queue);
  o.cta_stride = part.machine.sms;
  o.ctas_per_sm = part.sampled.ctas_per_sm;
  o.trace_from = from;
  o.trace_to = to;
  o.most_instructions = kMostInstructions;
  for (o.ctas = std::min<std::int64_t>(queue, o.ctas_per_sm);; o.ctas = std::min(queue, 2 * o.ctas)) {
    Run run = simulate(program, part.machine, o);
    if (o.ctas == queue || run.counters.cycles >= static_cast<double>(to)) return std::move(run.trace);
  }
}

}  // namespace voltaic::cycle
