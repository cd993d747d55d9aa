// SPDX-License-Identifier: MIT
// Rules over metrics, in words. The thresholds are those of the profiler's own rules [NCU]: a resource used to 60 % is
// well used, one at 80 % leaves little to gain.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/kernel_profile.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

using cycle::Metrics;
using cycle::Pipe;
using cycle::Stall;

constexpr double kWellUsed = 0.6, kNearlyFull = 0.8;

struct Used {
  std::string_view name;
  double share = 0;
};

Used most(std::initializer_list<Used> parts) {
  return *std::max_element(parts.begin(), parts.end(), [](const Used& a, const Used& b) { return a.share < b.share; });
}

/// L1 counts against `l1`: its share of the cycles in question, elapsed or active.
Used busiest_memory(const Metrics& m, double l1) {
  return most({{"DRAM", m.dram_throughput}, {"L2", m.l2_throughput}, {"L1 with shared memory", l1}});
}

std::string pipe_name(std::size_t pipe) {
  switch (static_cast<Pipe>(pipe)) {
    case Pipe::tensor: return "the tensor cores";
    case Pipe::fma: return "the FP32 lanes (FMA)";
    case Pipe::alu: return "the integer lanes (ALU)";
    case Pipe::fp16: return "the FP16 lanes";
    case Pipe::fp64: return "the FP64 lanes";
    case Pipe::xu: return "the special-function lanes (XU)";
    case Pipe::lsu: return "the load/store unit (LSU)";
    case Pipe::control: return "the branch unit (CBU)";
  }
  return {};
}

/// The busiest of issue slots and pipes.
std::string busiest_in_sm(const Metrics& m) {
  const auto top = std::max_element(m.pipes.begin(), m.pipes.end());
  if (m.issue_slots_busy > *top) return "the issue slots";
  return pipe_name(static_cast<std::size_t>(top - m.pipes.begin()));
}

double ctas(const Metrics& m) {
  return static_cast<double>(m.grid[0]) * static_cast<double>(m.grid[1]) * static_cast<double>(m.grid[2]);
}

struct StallWords {
  std::string_view what, remedy;
};
StallWords words(Stall stall) {
  switch (stall) {
    case Stall::long_scoreboard:
      return {"for data from global memory",
              "More loads in flight (more warps, deeper pipelining) or fewer bytes help."};
    case Stall::short_scoreboard:
      return {"for results of shared memory, special functions or shuffles",
              "Fewer bank conflicts, or more independent work between load and use, help."};
    case Stall::barrier:
      return {"at a barrier for other warps of its CTA", "Smaller CTAs, or several of them per SM, overlap the wait."};
    case Stall::lg_throttle:
      return {"for room in the queue of global accesses", "Fewer and wider loads and stores help."};
    case Stall::mio_throttle:
      return {"for room in the queue to shared memory, special functions and shuffles",
              "Fewer and wider shared accesses help."};
    case Stall::math_pipe_throttle:
      return {"for a math pipe that is busy", "The pipe is used as it should; only less work for it helps."};
    case Stall::wait:
      return {"for the fixed latency of its own instruction before",
              "More warps, or more independent instructions in each, help."};
    case Stall::dispatch_stall: return {"for ports of the register file", "It is bound by operand bandwidth."};
    case Stall::no_instruction: return {"for its next instruction to be fetched", "Shorter or straighter code helps."};
    case Stall::branch_resolving: return {"for a branch to be resolved", "Longer loop bodies (unrolling) help."};
    case Stall::drain: return {"for its last stores to leave", "Fewer or wider stores at the end help."};
    case Stall::not_selected:
      return {"while another warp issues", "There are warps enough; fewer of them, with more registers, would do."};
    case Stall::selected: break;
  }
  return {"issuing", ""};
}

std::string speed_of_light(const Metrics& m) {
  const double active = m.elapsed_cycles > 0 ? m.sm_active_cycles / m.elapsed_cycles : 0;
  const Used memory = busiest_memory(m, active * m.l1_throughput);
  const double used = std::max(m.sm_throughput, m.memory_throughput);
  if (used >= kWellUsed) {
    const bool math = m.sm_throughput >= m.memory_throughput;
    const std::string what = math ? busiest_in_sm(m) : std::string(memory.name);
    const char* how = used >= kNearlyFull ? "Bound by" : "Mostly bound by";
    return fmt::format("{} {}: {} Throughput is {} of peak, {} Throughput {}.", how, what,
                       math ? "Compute (SM)" : "Memory", format_percent(used), math ? "Memory" : "Compute (SM)",
                       format_percent(math ? m.memory_throughput : m.sm_throughput));
  }
  if (active < kWellUsed) {
    return fmt::format("Bound by {}: SMs hold a CTA for {} of the cycles (SM Active Cycles), whatever they do then.",
                       ctas(m) < static_cast<double>(m.sms) ? "too few CTAs" : "the start and the end of the kernel",
                       format_percent(active));
  }
  return fmt::format(
      "Bound by latency: neither Compute (SM) Throughput ({}) nor Memory Throughput ({}) comes near its peak; warps "
      "wait "
      "more than they work. See {}.",
      format_percent(m.sm_throughput), format_percent(m.memory_throughput),
      cycle::to_string(cycle::Section::warp_state));
}

std::string compute(const Metrics& m) {
  return fmt::format("{} {}, at {} of active cycles (SM Busy).",
                     m.sm_busy >= kNearlyFull ? "Inside the SM the pace is set by"
                                              : "Nothing inside the SM is full; what is used most:",
                     busiest_in_sm(m), format_percent(m.sm_busy));
}

std::string memory(const Metrics& m) {
  const Used most_used = busiest_memory(m, m.l1_throughput);
  if (most_used.share <= 0) return "The kernel touches no memory.";
  std::string out =
      fmt::format("The most used memory is {}, at {} of its peak", most_used.name, format_percent(most_used.share));
  out += m.l2_read_sectors + m.l2_write_sectors > 0
             ? fmt::format("; L2 serves {} of the sectors asked of it (L2 Hit Rate).", format_percent(m.l2_hit_rate))
             : ".";
  const double conflicts = m.shared_wavefronts > 0 ? m.bank_conflicts / m.shared_wavefronts : 0;
  if (conflicts >= 0.1) {
    out += fmt::format(" Bank conflicts are {} of the shared memory wavefronts: another layout would save them.",
                       format_percent(conflicts));
  }
  return out;
}

std::string scheduler(const Metrics& m) {
  if (m.issued_warps >= kNearlyFull) {
    return fmt::format(
        "Schedulers issue in {} of the cycles: they are what is scarce, fewer instructions are what helps.",
        format_percent(m.one_or_more_eligible));
  }
  return fmt::format(
      "A scheduler could issue every cycle and issues every {:.1f} cycles: of its {:.2f} warps, {:.2f} are "
      "ready in a cycle on average, and in {} of the cycles none is (No Eligible).",
      1 / m.issued_warps, m.active_warps, m.eligible_warps, format_percent(m.no_eligible));
}

std::string warp_state(const Metrics& m) {
  const auto top = std::max_element(m.stalls.begin() + 1, m.stalls.end());  // The first one, selected, is no stall.
  const auto stall = static_cast<Stall>(top - m.stalls.begin());
  const StallWords w = words(stall);
  return fmt::format(
      "Of {:.1f} cycles from one instruction of a warp to the next, it spends {:.1f} ({}) waiting {} (Stall {}). {}",
      m.warp_cycles_per_instruction, m.stall_cycles(stall), format_percent(*top), w.what, cycle::label(stall),
      w.remedy);
}

std::string launch(const Metrics& m) {
  const double n = ctas(m);
  if (n < static_cast<double>(m.sms)) {
    return fmt::format("{:.0f} {} for {} SMs: {} of them have nothing to do.", n, n == 1 ? "CTA" : "CTAs", m.sms,
                       format_percent(1 - n / static_cast<double>(m.sms)));
  }
  const double waves = m.waves_per_sm;
  const double full = std::floor(waves + 1e-9), last = waves - full;
  if (waves <= 1 || last < 1e-6) return {};
  if (last / std::ceil(waves) > 0.9 || waves > 10) return {};
  return fmt::format("{:.2f} waves: the last one fills {} of the GPU's places and takes about as long as a full one.",
                     waves, format_percent(last));
}

std::string occupancy(const Metrics& m) {
  constexpr double kWarp = 32;
  const std::pair<std::optional<int>, std::string_view> limits[] = {{m.limit_registers, "registers"},
                                                                    {m.limit_shared, "shared memory"},
                                                                    {m.limit_warps, "warps"},
                                                                    {m.limit_ctas, "the number of CTAs"}};
  const auto* least = std::min_element(std::begin(limits), std::end(limits), [](const auto& a, const auto& b) {
    return a.first.value_or(INT32_MAX) < b.first.value_or(INT32_MAX);
  });
  std::string out;
  const double resident = kWarp * m.theoretical_warps / std::max(1, m.threads_per_cta);
  if (least->first && resident < *least->first - 0.5) {
    out =
        fmt::format("Theoretical Occupancy is {}: the library's kernel holds {:.0f} CTAs per SM, fewer than would fit.",
                    format_percent(m.theoretical_occupancy), resident);
  } else if (least->first && m.theoretical_occupancy < 1) {
    out = fmt::format("Theoretical Occupancy is {}, limited by {} ({} CTAs per SM).",
                      format_percent(m.theoretical_occupancy), least->second, *least->first);
  }
  if (m.achieved_occupancy < 0.8 * m.theoretical_occupancy) {
    out += fmt::format("{}Achieved Occupancy ({}) is well below what would fit ({}): too few CTAs, or a long tail.",
                       out.empty() ? "" : " ", format_percent(m.achieved_occupancy),
                       format_percent(m.theoretical_occupancy));
  }
  return out;
}

}  // namespace

std::string finding(const Metrics& m, cycle::Section section) {
  if (m.instructions <= 0 || m.elapsed_cycles <= 0) return {};
  switch (section) {
    case cycle::Section::speed_of_light: return speed_of_light(m);
    case cycle::Section::compute: return compute(m);
    case cycle::Section::memory: return memory(m);
    case cycle::Section::scheduler: return m.issued_warps > 0 ? scheduler(m) : std::string();
    case cycle::Section::warp_state: return warp_state(m);
    case cycle::Section::launch: return launch(m);
    case cycle::Section::occupancy: return occupancy(m);
  }
  return {};
}

}  // namespace voltaic::report
