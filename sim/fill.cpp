// SPDX-License-Identifier: MIT
#include "sim/fill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/memory_use.hpp"

namespace voltaic {
namespace {

using Priced = std::span<const std::shared_ptr<const PricedNode>>;

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::vector<double> instances(const report::Prediction& p) {
  std::vector<double> n(p.distinct.size(), 0);
  for (const auto& row : p.nodes) n[row.distinct] += row.repeats;
  return n;
}

/// Forward and backward of micro-steps take turns: both together are split as their kernels are.
void split_micro_steps(report::Prediction& p) {
  double kernels[2] = {0, 0};
  for (const auto& row : p.nodes) {
    const graph::Phase phase = p.graph.node(row.node).phase;
    if (phase != graph::Phase::optimizer)
      kernels[phase == graph::Phase::backward ? 1 : 0] += p.distinct[row.distinct].gpu_time.value;
  }
  const Seconds both = p.forward + p.backward;
  p.backward = share(kernels[1], kernels[0] + kernels[1]) * both;
  p.forward = both - p.backward;
}

/// Phases end one after another: a phase without work ends with the one before it.
void fill_times(report::Prediction& p, const SimulationOptions& options) {
  const auto& t = p.timeline;
  const engine::SimTime forward = options.training ? t.phase_end[0] : t.total;
  const engine::SimTime backward = std::max(forward, options.training ? t.phase_end[1] : forward);
  p.forward = forward.seconds();
  p.backward = (backward - forward).seconds();
  p.optimizer = (std::max(t.total, backward) - backward).seconds();
  if (options.accumulation > 1) split_micro_steps(p);
  p.input_wait = std::max(Seconds{0}, p.input_limit - t.total.seconds());
  p.forward += p.input_wait;
  p.total = p.forward + p.backward + p.optimizer;
}

/// samples_per_s * total gives the batch exactly. Where no double does it, total moves by one unit in its last place
/// (1e-16 of it).
void fill_throughput(report::Prediction& p, const SimulationOptions& options) {
  p.global_batch = options.samples;
  for (int attempt = 0; attempt < 64 && p.total.value > 0; ++attempt) {
    p.samples_per_s = exact_rate(options.samples, p.total.value);
    if (p.samples_per_s * p.total.value == options.samples) break;
    p.forward.value = std::nextafter(p.forward.value, std::numeric_limits<double>::max());
    p.total = p.forward + p.backward + p.optimizer;
  }
  if (options.tokens_per_sample > 0) p.tokens_per_s = p.samples_per_s * options.tokens_per_sample;
}

void fill_shares(report::Prediction& p) {
  const double total = (p.timeline.total.seconds() + p.input_wait).value;
  p.share_kernels = share(p.timeline.gpu_busy.seconds().value, total);
  p.share_host_exposed = share((p.timeline.waiting_for_host.seconds() + p.input_wait).value, total);
  p.share_idle = std::max(0.0, 1 - p.share_kernels - p.share_host_exposed);
}

/// Kernel time by what bounds each kernel, scaled to the share in which any kernel runs; the rest is launch.
void fill_bounds(report::Prediction& p, const std::vector<double>& count) {
  std::array<double, kernel::kBounds> time{};
  double sum = 0;
  for (std::size_t d = 0; d < p.distinct.size(); ++d) {
    for (const auto& k : p.distinct[d].kernels) {
      const double t = count[d] * k.cost.time.value;
      time[static_cast<std::size_t>(k.cost.bound())] += t;
      sum += t;
    }
  }
  double kernels = 0;
  for (std::size_t b = 0; b < kernel::kBounds; ++b) {
    p.bound[b] = share(time[b], sum) * p.share_kernels;
    kernels += p.bound[b];
  }
  p.bound[kernel::kBounds] = std::max(0.0, 1 - kernels);
}

struct Peak {
  FlopsPerSecond rate;
  std::string name;
};

Peak peak_of(const arch::GpuSpec& gpu, graph::Precision precision, bool sparsity) {
  const DataType t = multiply_type(precision);
  if (sparsity && gpu.has_sparse_path(t)) return {gpu.sparse_peak(t), fmt::format("{} tensor 2:4", to_string(t))};
  if (gpu.has_tensor_path(t)) return {gpu.tensor_peak(t), fmt::format("{} tensor", to_string(t))};
  return {gpu.cuda_core_peak(t), std::string(to_string(t))};
}

void fill_work(report::Prediction& p, const FillInput& in, const std::vector<double>& count) {
  for (std::size_t d = 0; d < p.distinct.size(); ++d) {
    p.mac += count[d] * in.priced[d]->mac;
    p.other_flop += count[d] * in.priced[d]->other_flop;
  }
  p.flop = 2 * p.mac;
  Peak peak = peak_of(in.gpu.spec, in.options.precision, in.options.sparsity);
  p.peak = peak.rate;
  p.peak_name = std::move(peak.name);
  p.model_flop_utilization = share(p.flop, p.total.value * p.peak.value);
  if (p.model_flop_utilization > 1) {
    p.assumptions.push_back(
        "model_flop_utilization above 1: Winograd and FFT convolutions multiply less than the direct form, whose FLOP "
        "are counted");
  }
}

void fill_memory(report::Prediction& p, const FillInput& in) {
  std::vector<std::int64_t> scratch(p.graph.nodes().size(), 0);
  for (const auto& row : p.nodes) scratch[row.node] = scratch_of(p.distinct[row.distinct]);
  p.memory = memory_use(p.graph, in.gpu, in.options, scratch);
  p.assumptions.push_back(
      fmt::format("memory includes {} MiB of CUDA context and kernels, assumed", p.memory.context >> 20));
}

/// The cycle engine is fitted to nothing, so what fits reach does not hold for it: a tenth of drawn rows lie further
/// off than this (validation/README.md).
void widen_unfitted(report::Prediction& p) {
  constexpr double kHalfWidth = 0.35;
  const Seconds half = kHalfWidth * p.share_kernels * p.total;
  p.interval.low = std::min(p.interval.low, p.total - half);
  p.interval.high = std::max(p.interval.high, p.total + half);
  p.interval.evidence = "extrapolated";
}

/// Kernels at their own power, gaps at that of an idle GPU whose clocks stay up.
void fill_energy(report::Prediction& p, const FillInput& in, const std::vector<double>& count) {
  Joules kernels;
  for (std::size_t d = 0; d < p.distinct.size(); ++d) kernels += count[d] * p.distinct[d].energy;
  const Seconds gaps = std::max(0.0, 1 - p.share_kernels) * p.total;
  const Joules energy = kernels + in.gap * gaps;
  p.energy_j.value = energy.value;
  if (p.total.value > 0) {
    p.average_power_w.value = (energy / p.total).value;
    const Watts cap = in.gpu.operating.power_cap.value_or(in.gpu.spec.power.limit);
    constexpr double kRounding = 1e-6;
    if (*p.average_power_w.value > cap.value * (1 + kRounding)) {
      p.warnings.push_back(
          fmt::format("the board cannot hold {:.0f} W: at its lowest clock the step still takes {:.0f} W", cap.value,
                      *p.average_power_w.value));
    }
  } else {
    p.average_power_w.reason = "nothing runs";
  }
}

void fill_cost(report::Prediction& p, const FillInput& in) {
  p.co2_g.reason = "needs the carbon intensity of the grid";
  if (const auto price = in.gpu.spec.price.usd_per_hour) {
    p.cost_usd.value = *price * p.total.value / 3600;
  } else {
    p.cost_usd.reason = fmt::format("no price is known for {}", in.gpu.spec.name);
  }
}

void fill_unmodelled(report::Prediction& p, const std::vector<double>& count) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> index;
  std::vector<bool> seen(p.distinct.size(), false);
  for (const auto& row : p.nodes) {
    const auto& d = p.distinct[row.distinct];
    if (d.unmodelled_reason.empty() || seen[row.distinct]) continue;
    seen[row.distinct] = true;
    const std::string_view op = graph::to_string(p.graph.node(row.node).op);
    const auto [at, fresh] = index.try_emplace({op, d.unmodelled_reason}, p.unmodelled.size());
    if (fresh) p.unmodelled.push_back({std::string(op), 0, d.unmodelled_reason, 0});
    auto& u = p.unmodelled[at->second];
    u.count += static_cast<std::int64_t>(count[row.distinct]);
    u.bytes += count[row.distinct] * d.unmodelled_bytes;
  }
  if (!p.unmodelled.empty()) p.warnings.push_back("some operations have no time in this answer: see unmodelled");
}

void fill_interval(report::Prediction& p, const FillInput& in, const std::vector<double>& count) {
  std::vector<FamilyTime> families;
  for (std::size_t d = 0; d < p.distinct.size(); ++d) {
    for (const auto& k : p.distinct[d].kernels) {
      families.push_back({k.launch.family, k.launch.math, count[d] * k.cost.time, k.cost.time});
    }
  }
  const Seconds host = (1 - p.share_kernels) * p.total;
  p.interval = in.intervals.combine(families, host, p.total, p.assumptions);
  if (in.options.engine == cost::EngineKind::cycle) widen_unfitted(p);
}

}  // namespace

double exact_rate(double count, double total) {
  if (!(total > 0)) return 0;
  const double rate = count / total;
  if (!std::isfinite(rate)) return 0;
  double up = rate, down = rate;
  for (int i = 0; i < 3; ++i) {
    if (up * total == count) return up;
    if (down * total == count) return down;
    up = std::nextafter(up, std::numeric_limits<double>::max());
    down = std::nextafter(down, 0.0);
  }
  return rate;
}

void fill(report::Prediction& p, const FillInput& in) {
  const std::vector<double> count = instances(p);
  p.workload = p.graph.name;
  p.gpu = in.gpu.spec.name;
  p.calibration_id = in.gpu.calibration_id;
  p.assumptions.insert(p.assumptions.end(), in.gpu.notes.begin(), in.gpu.notes.end());
  fill_times(p, in.options);
  fill_throughput(p, in.options);
  fill_shares(p);
  fill_bounds(p, count);
  fill_work(p, in, count);
  fill_memory(p, in);
  fill_energy(p, in, count);
  fill_cost(p, in);
  fill_unmodelled(p, count);
  fill_interval(p, in, count);
  p.layers = layer_rows(p, in.priced);
}

}  // namespace voltaic
