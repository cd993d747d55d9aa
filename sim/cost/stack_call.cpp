// SPDX-License-Identifier: MIT
#include "sim/cost/stack_call.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "arch/calibration_document.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

namespace {

constexpr std::array<std::string_view, 5> kTimings{"graph_replay", "kernel_trace", "event_average", "host_clock",
                                                   "sustained"};

/// Laws that know how many copies the operands were rotated among are told of one where they were reused.
void reuse_operands(arch::ResolvedGpu& gpu) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& law : gpu.calibration.keys("gemm_tensor.laws")) {
    const std::string path = "gemm_tensor.laws." + law + ".operand_copies";
    if (gpu.calibration.has(path)) numbers.emplace_back(path, 1);
  }
  gpu.calibration = arch::with_numbers(gpu.calibration, numbers);
}

/// What the laboratory's machine did to the board: its session in the calibration, its operands.
arch::ResolvedGpu measured_on(const arch::ResolvedGpu& board, const CallProtocol& protocol) {
  arch::ResolvedGpu gpu = arch::in_session(arch::in_session(board, protocol.stack), protocol.release);
  const double toggle = protocol.contents == OperandContents::constant ? 0 : 1;
  gpu.operating.toggle = gpu.calibration.number_or("operating.toggle", toggle);
  if (protocol.operands == OperandState::reused) reuse_operands(gpu);
  return gpu;
}

/// Clocks settle under calls back to back; the few replays of a graph and the calls under a tracer end before, and a
/// host that waits for each call leaves gaps.
bool is_lasting(CallTiming timing) {
  return timing == CallTiming::event_average || timing == CallTiming::sustained;
}

/// Sequences of a decoding step; 0 for other calls.
double sequences(std::span<const kernel::Launch> launches) {
  for (const auto& launch : launches) {
    const auto* k = std::get_if<kernel::AttentionKernel>(&launch.detail);
    if (k != nullptr && k->decode) return static_cast<double>(k->batch);
  }
  return 0;
}

/// Batches up to here are prepared by one CTA of 32 warps, one of which works per 31 sequences [AICDATA].
constexpr double kSmallBatch = 992;

}  // namespace

std::string_view to_string(CallTiming timing) {
  return kTimings[static_cast<std::size_t>(timing)];
}

StackCall::StackCall(const arch::ResolvedGpu& board, CallProtocol protocol, const MakeEngine& make)
    : protocol_(std::move(protocol)),
      gpu_(measured_on(board, protocol_)),
      engine_(make ? make(gpu_) : make_engine(EngineKind::analytic, gpu_)),
      library_(make_library(gpu_)) {
  read_section(protocol_.stack);
  read_section(std::string(to_string(protocol_.timing)));
  complete_quantiles();
  if (!gpu_.calibration.has("intervals")) return;
  for (const auto& family : gpu_.calibration.keys("intervals")) {
    half_widths_[family] = gpu_.calibration.number("intervals." + family + ".half_width");
  }
}

StackCall::Numbers StackCall::read(const arch::ParameterTree& tree) {
  Numbers n;
  n.floor_s = tree.number_or("floor_s", 0);
  n.launch_s = tree.number_or("launch_s", 0);
  n.gap_s = tree.number_or("gap_s", 0);
  n.exponent = tree.number_or("exponent", 16);
  n.per_sequence_s = tree.number_or("per_sequence_s", 0);
  n.per_sequence_large_s = tree.number_or("per_sequence_large_s", n.per_sequence_s);
  n.grid_s = tree.number_or("grid_s", 0);
  n.row_s = tree.number_or("row_s", 0);
  n.sweep_s = tree.number_or("sweep_s", 0);
  n.sweep_latency_s = tree.number_or("sweep_latency_s", 0);
  n.sweep_elements = tree.number_or("sweep_elements", 0);
  n.known = tree.has("measured_over_predicted");
  n.quantiles_alone = n.known && tree.keys("").size() == 1;
  // An interval holds its prediction, also where all that was measured lay on one side.
  n.low = std::min(1.0, tree.number_or("measured_over_predicted.low", 1));
  n.high = std::max(1.0, tree.number_or("measured_over_predicted.high", 1));
  return n;
}

void StackCall::read_section(const std::string& name) {
  const std::string path = "protocols." + arch::calibration_key(name);
  if (name.empty() || !gpu_.calibration.has(path)) return;
  auto& section = sections_.emplace_back();
  const arch::ParameterTree tree = gpu_.calibration.at(path);
  for (const auto& call : tree.keys("")) section.emplace(call, read(tree.at(call)));
}

const StackCall::Numbers* StackCall::find(std::string_view call, bool with_times) const {
  for (const std::string_view name : {call, std::string_view("default")}) {
    for (const auto& section : sections_) {
      const auto found = section.find(name);
      if (found != section.end() && !(with_times && found->second.quantiles_alone)) return &found->second;
    }
  }
  return nullptr;
}

void StackCall::complete_quantiles() {
  for (auto& section : sections_) {
    for (auto& [call, own] : section) {
      if (!own.quantiles_alone) continue;
      const Numbers* times = find(call, true);
      Numbers whole = times != nullptr ? *times : Numbers{};
      whole.quantiles_alone = whole.known = true;
      whole.low = own.low;
      whole.high = own.high;
      own = whole;
    }
  }
}

const StackCall::Numbers& StackCall::numbers(std::string_view call) const {
  static const Numbers kNone;
  const Numbers* found = find(call, false);
  return found != nullptr ? *found : kNone;
}

double StackCall::half_width(std::string_view family) const {
  auto found = half_widths_.find(family);
  if (found == half_widths_.end()) found = half_widths_.find("unknown");
  return found == half_widths_.end() ? 0.5 : found->second;
}

kernel::KernelCost StackCall::price(const kernel::Launch& launch) const {
  return is_lasting(protocol_.timing) ? engine_->cost(launch) : engine_->isolated(launch);
}

Watts StackCall::lasting_power(std::span<const kernel::Launch> launches) const {
  Seconds time;
  Joules energy;
  for (const kernel::Launch& launch : launches) {
    const kernel::KernelCost cost = engine_->cost(launch);
    time += cost.time;
    energy += cost.energy;
  }
  return time > Seconds{0} ? energy / time : Watts{0};
}

double StackCall::scaling_time(const Numbers& n, std::span<const kernel::Launch> launches) const {
  if (!(n.sweep_elements > 0) || launches.empty()) return 0;
  const auto* gemm = std::get_if<kernel::GemmKernel>(&launches.front().detail);
  if (gemm == nullptr) return 0;
  const double sms = static_cast<double>(std::max<std::int64_t>(gpu_.spec.sm.count, 1));
  const double per_sm = static_cast<double>(gemm->problem.m) * static_cast<double>(gemm->problem.batch) / sms;
  const double sweeps = std::ceil(static_cast<double>(gemm->problem.k) / n.sweep_elements);
  constexpr double kCtasPerSm = 2;  // of 1024 threads
  return n.row_s * per_sm + std::max(n.sweep_latency_s, n.sweep_s * per_sm / kCtasPerSm) * sweeps;
}

StackCall::Timing StackCall::time(std::span<const kernel::Launch> launches, std::string_view call) const {
  Timing out;
  std::string_view family;  // of the longest kernel
  for (const kernel::Launch& launch : launches) {
    const kernel::KernelCost cost = price(launch);
    out.kernel += cost.time;
    if (family.empty() || cost.time > out.main.time) {
      out.main = cost;
      family = launch.family;
    }
  }
  const Numbers& n = numbers(call);
  const double batch = sequences(launches);
  const double gaps = n.gap_s * static_cast<double>(launches.empty() ? 0 : launches.size() - 1);
  const double prepared = batch * (batch > kSmallBatch ? n.per_sequence_large_s : n.per_sequence_s);
  const double base = n.launch_s + gaps + out.kernel.value + prepared + scaling_time(n, launches);
  out.floor = Seconds{n.floor_s};
  out.time = Seconds{n.floor_s > 0 ? smooth_max2(n.floor_s, base, n.exponent) : base};
  const double h = n.known || launches.empty() ? 0 : half_width(family);
  const double half_grid = n.grid_s / 2;
  out.low = Seconds{std::max(0.0, std::max(0.0, n.low - h) * out.time.value - half_grid)};
  out.high = Seconds{(n.high + h) * out.time.value + half_grid};
  return out;
}

}  // namespace voltaic::cost
