// SPDX-License-Identifier: MIT
#include "sim/cycle/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "arch/units/error.hpp"
#include "sim/cycle/detail/launch_key.hpp"
#include "sim/cycle/footprint.hpp"
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {
namespace {

using kernel::Bound;
using kernel::KernelCost;

constexpr double kSector = 32;
constexpr double kWavefront = 128;

/// Busy cycles of each resource of the GPU; of those that SMs have, the mean over the SMs that work.
std::array<double, kernel::kBounds> busy_cycles(const Counters& c, const Machine& machine) {
  std::array<double, kernel::kBounds> busy{};
  const auto leg = [&busy](Bound b) -> double& { return busy[static_cast<std::size_t>(b)]; };
  const auto pipe = [&](Pipe p) { return c.pipe_busy[static_cast<std::size_t>(p)] / machine.partitions / c.sms; };
  leg(Bound::tensor) = pipe(Pipe::tensor);
  leg(Bound::fma) = std::max({pipe(Pipe::fma), pipe(Pipe::alu), pipe(Pipe::fp16), pipe(Pipe::fp64), pipe(Pipe::xu)});
  leg(Bound::dram) = c.dram_busy;
  leg(Bound::l2) = c.l2_busy;
  leg(Bound::shared) = c.lsu_data_busy / c.sms;
  leg(Bound::issue) = c.issue_cycles / machine.partitions / c.sms;
  return busy;
}

/// Sums over parts; SMs are the mean over time.
void add(Counters& sum, Counters part, double times) {
  const double before = sum.cycles * sum.sms, here = times * part.cycles * part.sms;
  sum.combine(part, [times](double& mine, double other) { mine += times * other; });
  sum.sms = sum.cycles > 0 ? (before + here) / sum.cycles : part.sms;
}

/// Legs and traffic; what no resource accounts for is latency.
void fill(KernelCost& cost, const std::vector<Profile::Part>& parts, const Counters& all, double cycles, Hertz clock) {
  std::array<double, kernel::kBounds> busy{};
  for (const auto& part : parts) {
    const auto of_part = busy_cycles(part.sampled.counters, part.machine);
    for (std::size_t b = 0; b < busy.size(); ++b) busy[b] += part.times * of_part[b];
  }
  for (std::size_t b = 0; b < busy.size(); ++b) cost.legs[b] = Cycles{std::min(busy[b], cycles)} / clock;
  const double most = *std::max_element(busy.begin(), busy.end());
  cost.leg(Bound::latency) = Cycles{std::max(0.0, cycles - most)} / clock;
  cost.dram_traffic = Bytes{all.dram_read_bytes + all.dram_write_bytes};
  cost.l2_traffic = Bytes{kSector * (all.l2_read_sectors + all.l2_write_sectors)};
  cost.shared_traffic = Bytes{kWavefront * all.shared_wavefronts};
}

/// The part that takes longest says how full the SMs were.
void fill_residency(KernelCost& cost, const std::vector<Profile::Part>& parts, const arch::SmSpec& sm) {
  const auto longest = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.times * a.sampled.counters.cycles < b.times * b.sampled.counters.cycles;
  });
  cost.ctas_per_sm = longest->sampled.ctas_per_sm;
  const double slots = static_cast<double>(cost.ctas_per_sm) * static_cast<double>(longest->machine.sms);
  cost.waves = static_cast<double>(longest->program.ctas()) / slots;
  if (sm.max_warps > 0) cost.occupancy = static_cast<double>(cost.ctas_per_sm * longest->program.warps) / sm.max_warps;
}

/// How the time moves with the clock: the start does not, DRAM does not, all else does.
kernel::TimeParts time_parts(const KernelCost& cost, Seconds fixed) {
  const double t = std::max(0.0, cost.time.value - fixed.value);
  const double memory = std::min(t, cost.leg(Bound::dram).value);
  const double rest = t * t * t * t - memory * memory * memory * memory;
  return {fixed, Seconds{memory}, Seconds{std::sqrt(std::sqrt(std::max(0.0, rest)))}};
}

void refuse_unknown(const arch::GpuSpec& gpu) {
  const bool known = gpu.architecture != arch::Architecture::hopper && gpu.pipeline.fma_latency.value > 0;
  if (known) return;
  throw UnsupportedError(fmt::format(
      "--engine cycle models the SMs of Volta, Turing and Ampere, got {} ({}); --engine analytic has a model of it",
      gpu.name, to_string(gpu.architecture)));
}

}  // namespace

struct CycleEngine::Memo {
  struct Entry {
    std::once_flag once;
    Profile profile;
  };
  static constexpr std::size_t kMost = 4096;

  std::shared_ptr<Entry> entry(const std::string& key) {
    const std::lock_guard lock(mutex);
    if (const auto found = entries.find(key); found != entries.end()) return found->second;
    auto made = std::make_shared<Entry>();
    if (entries.size() < kMost) entries.emplace(key, made);
    return made;
  }

  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries;
};

CycleEngine::CycleEngine(const arch::GpuSpec& gpu, const kernel::CostModel& reference, SampleOptions options)
    : gpu_(gpu), reference_(reference), options_(options), memo_(std::make_unique<Memo>()) {
  refuse_unknown(gpu);
}
CycleEngine::~CycleEngine() = default;

Profile CycleEngine::run(const kernel::Launch& launch, const KernelCost& reference) const {
  Profile out;
  out.cost = reference;
  out.clock = reference.clock;
  double cycles = 0, starts = 0;
  for (Part& part : generate(launch, gpu_)) {
    Profile::Part done;
    set_l2_hits(part.program, gpu_);
    done.machine = make_machine(gpu_, out.clock, part.program);
    done.sampled = run_kernel(part.program, gpu_, done.machine, options_);
    done.program = std::move(part.program);
    done.times = part.times;
    done.starts = part.starts;
    cycles += done.times * done.sampled.counters.cycles;
    starts += done.starts;
    add(out.counters, done.sampled.counters, done.times);
    out.parts.push_back(std::move(done));
  }
  if (out.parts.empty()) return out;
  KernelCost& cost = out.cost;
  const Seconds fixed = std::max(1.0, starts) * (Cycles{out.parts.front().machine.kernel_start} / out.clock);
  cost.legs = {};
  fill(cost, out.parts, out.counters, cycles, out.clock);
  cost.time = std::max(fixed + Cycles{cycles} / out.clock, reference.roofline);
  cost.leg(Bound::latency) = std::min(cost.leg(Bound::latency) + fixed, cost.time);
  cost.parts = time_parts(cost, fixed);
  fill_residency(cost, out.parts, gpu_.sm);
  cost.energy = reference.time.value > 0 ? (cost.time / reference.time) * reference.energy : Joules{0};
  return out;
}

std::shared_ptr<const Profile> CycleEngine::remembered(const kernel::Launch& launch, bool isolated) const {
  const auto entry = memo_->entry((isolated ? "i" : "s") + detail::launch_key(launch));
  std::call_once(entry->once, [&] {
    entry->profile = run(launch, isolated ? reference_.isolated(launch) : reference_.cost(launch));
  });
  return {entry, &entry->profile};
}

KernelCost CycleEngine::cost(const kernel::Launch& launch) const {
  return remembered(launch, false)->cost;
}
KernelCost CycleEngine::isolated(const kernel::Launch& launch) const {
  return remembered(launch, true)->cost;
}

}  // namespace voltaic::cycle
