// SPDX-License-Identifier: MIT
#include "sim/cycle/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "arch/units/error.hpp"
#include "sim/cycle/detail/sm_core.hpp"

namespace voltaic::cycle {
namespace {

void check(const Program& program, const Machine& machine, const RunOptions& o) {
  check(program);
  ensure(
      o.sms >= 1 && o.active_sms >= static_cast<double>(o.sms) && o.ctas >= 1 && o.cta_stride >= 1 && o.first_cta >= 0,
      "a run needs SMs, CTAs, and a share of L2 and DRAM of at most 1");
  const std::int64_t most = static_cast<std::int64_t>(machine.partitions) * machine.warps_per_partition;
  if (o.ctas_per_sm < 1 || static_cast<std::int64_t>(o.ctas_per_sm) * program.warps > most) {
    throw ConfigError("kernel " + program.name, "",
                      fmt::format("expected at least one and at most {} resident warps per SM, got {} CTAs of {} warps",
                                  most, o.ctas_per_sm, program.warps));
  }
}

class Simulation {
 public:
  Simulation(const Program& program, const Machine& machine, const RunOptions& options)
      : program_(program),
        machine_(machine),
        options_(options),
        decoded_(program, machine),
        memory_(program, machine, options),
        queue_(program, options),
        wheel_(static_cast<std::size_t>(options.sms) * static_cast<std::size_t>(machine.partitions)) {
    for (std::int64_t i = 0; i < options.sms; ++i) {
      const auto first = static_cast<std::uint32_t>(i * machine.partitions);
      sms_.push_back(std::make_unique<detail::SmCore>(program, decoded_, machine, options_, memory_, queue_, wheel_,
                                                      first, run_.counters));
    }
    if (options.trace_to > options.trace_from) sms_[0]->record(options.trace_from, options.trace_to);
  }

  Run run() {
    fill();
    const auto partitions = static_cast<std::uint32_t>(machine_.partitions);
    std::uint32_t member = 0;
    std::int64_t issued = 0;
    while (wheel_.pop(member)) {
      issued += sms_[member / partitions]->issue(static_cast<int>(member % partitions), wheel_.now());
      if (options_.most_instructions > 0 && issued > options_.most_instructions) too_long();
    }
    for (const auto& sm : sms_) {
      if (const std::string names = sm->waiting(); !names.empty()) {
        throw ConfigError("kernel " + program_.name, "", "deadlock: " + names);
      }
    }
    finish();
    return std::move(run_);
  }

 private:
  /// CTAs go round the SMs until no SM takes another one.
  void fill() {
    for (bool taken = true; taken;) {
      taken = false;
      for (const auto& sm : sms_) taken = sm->launch(0) || taken;
    }
  }

  [[noreturn]] void too_long() const {
    throw UnsupportedError(fmt::format("kernel {}: expected at most {} warp instructions to simulate, got more",
                                       program_.name, options_.most_instructions));
  }

  void finish() {
    Counters& c = run_.counters;
    c.sms = static_cast<double>(options_.sms);
    double end = 0;
    for (const auto& sm : sms_) sm->settle();
    for (const auto& sm : sms_) end = std::max({end, static_cast<double>(sm->finished()), sm->last_access()});
    c.cycles = std::ceil(end);
    c.issue_cycles = c.instructions();
    c.pipe_busy[static_cast<std::size_t>(Pipe::lsu)] = c.lsu_data_busy;
    for (const double x : c.warp_cycles) c.resident_warp_cycles += x;
    c.eligible_warp_cycles = c.warp_cycles[static_cast<std::size_t>(Stall::selected)] +
                             c.warp_cycles[static_cast<std::size_t>(Stall::not_selected)];
    run_.trace = std::move(sms_[0]->trace());
  }

  const Program& program_;
  const Machine& machine_;
  const RunOptions& options_;
  const detail::Decoded decoded_;
  detail::MemorySystem memory_;
  detail::CtaQueue queue_;
  detail::EventWheel wheel_;
  std::vector<std::unique_ptr<detail::SmCore>> sms_;
  Run run_;
};

}  // namespace

Run simulate(const Program& program, const Machine& machine, const RunOptions& options) {
  check(program, machine, options);
  return Simulation(program, machine, options).run();
}

}  // namespace voltaic::cycle
