// SPDX-License-Identifier: MIT
#include "sim/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/fill.hpp"
#include "sim/memory_use.hpp"

namespace voltaic {
namespace {

using report::Prediction;

constexpr std::int64_t kOneByOne = 33;  // up to so many steps, each is priced
constexpr std::int64_t kPieces = 8;     // and beyond, these are halved

class Halving {
 public:
  Halving(std::int64_t first, std::int64_t last, const std::function<double(std::int64_t)>& time)
      : first_(first), last_(last), time_(time) {}

  std::vector<std::int64_t> contexts() {
    if (last_ - first_ < kOneByOne) {
      for (std::int64_t c = first_; c <= last_; ++c) at(c);
    } else {
      halve_all();
    }
    std::vector<std::int64_t> out;
    for (const auto& [context, time] : times_) out.push_back(context);
    return out;
  }

 private:
  double at(std::int64_t context) {
    const auto [found, fresh] = times_.try_emplace(context, 0);
    if (fresh) found->second = time_(context);
    return found->second;
  }

  void halve_all() {
    std::vector<std::int64_t> grid;
    for (std::int64_t i = 0; i <= kPieces; ++i) grid.push_back(first_ + (last_ - first_) * i / kPieces);
    double area = 0;
    for (const std::int64_t c : grid) area += at(c);
    area *= static_cast<double>(last_ - first_) / static_cast<double>(grid.size());
    for (std::size_t i = 1; i < grid.size(); ++i) halve(grid[i - 1], grid[i], kStepTolerance / kPieces * area);
  }

  /// `spare`: an area under which a deviation is left alone.
  void halve(std::int64_t a, std::int64_t b, double spare) {
    if (b - a < 2) return;
    const std::int64_t m = a + (b - a) / 2;
    const double part = static_cast<double>(m - a) / static_cast<double>(b - a);
    const double off = std::abs(at(m) - ((1 - part) * at(a) + part * at(b)));
    if (off <= kStepTolerance * at(m) || off * static_cast<double>(b - a) <= spare) return;
    halve(a, m, spare / 2);
    halve(m, b, spare / 2);
  }

  std::int64_t first_, last_;
  const std::function<double(std::int64_t)>& time_;
  std::map<std::int64_t, double> times_;
};

}  // namespace

std::vector<PricedStep> price_steps(std::int64_t first, std::int64_t last,
                                    const std::function<double(std::int64_t)>& time) {
  if (last < first) return {};
  const std::vector<std::int64_t> contexts = Halving(first, last, time).contexts();
  std::vector<PricedStep> steps;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    steps.push_back({contexts[i], i == 0 ? 1.0 : 0.0});
    if (i == 0) continue;
    // Steps a+1..b on the line from a to b: sum of t_a (1 - i/n) + t_b i/n for i = 1..n.
    const auto n = static_cast<double>(contexts[i] - contexts[i - 1]);
    steps[i - 1].weight += (n - 1) / 2;
    steps[i].weight += (n + 1) / 2;
  }
  return steps;
}

namespace {

/// Sums over the passes of a completion.
class Sums {
 public:
  void add(const Prediction& p, double weight) {
    const double t = weight * p.total.value;
    total += t;
    kernels += t * p.share_kernels;
    communication += t * p.share_communication_exposed;
    host += t * p.share_host_exposed;
    for (std::size_t b = 0; b < bound.size(); ++b) bound[b] += t * p.bound[b];
    mac += weight * p.mac;
    other_flop += weight * p.other_flop;
    low += weight * p.interval.low.value;
    high += weight * p.interval.high.value;
    extrapolated = extrapolated || p.interval.evidence == "extrapolated";
    figure(energy, p.energy_j, weight);
    figure(cost, p.cost_usd, weight);
    figure(co2, p.co2_g, weight);
  }

  double total = 0, kernels = 0, communication = 0, host = 0, mac = 0, other_flop = 0, low = 0, high = 0;
  std::array<double, report::kStepBounds> bound{};
  report::Optional energy{0.0, ""}, cost{0.0, ""}, co2{0.0, ""};
  bool extrapolated = false;

 private:
  /// Known where it is known of every pass.
  static void figure(report::Optional& sum, const report::Optional& part, double weight) {
    if (!sum.value) return;
    if (part.value) {
      *sum.value += weight * *part.value;
    } else {
      sum = {std::nullopt, part.reason};
    }
  }
};

/// Sums over decode steps, layer by layer.
void add_layers(std::vector<report::LayerRow>& sums, const Prediction& p, double weight) {
  if (sums.empty()) {
    sums = p.layers;
    for (auto& layer : sums) {
      layer.time = {};
      layer.energy = {};
      layer.flop = layer.mac = layer.other_flop = 0;
    }
  }
  for (std::size_t i = 0; i < sums.size() && i < p.layers.size(); ++i) {
    sums[i].time += weight * p.layers[i].time;
    sums[i].energy += weight * p.layers[i].energy;
    sums[i].mac += weight * p.layers[i].mac;
    sums[i].other_flop += weight * p.layers[i].other_flop;
    sums[i].flop = 2 * sums[i].mac;
  }
}

/// Appends `part` to the graph, nodes, kernels and trace of `p`; its layers are `prefix` + their own name.
void append(Prediction& p, Prediction part, const std::string& prefix, double repeats) {
  const auto tensors = static_cast<graph::TensorId>(p.graph.tensors().size());
  const auto nodes = static_cast<graph::NodeId>(p.graph.nodes().size());
  const auto distinct = static_cast<std::uint32_t>(p.distinct.size());
  for (const graph::Tensor& t : part.graph.tensors()) {
    graph::Tensor copy = t;
    copy.producer = graph::kNoNode;  // set by its node
    p.graph.add_tensor(std::move(copy));
  }
  for (const graph::Node& n : part.graph.nodes()) {
    graph::Node copy = n;
    copy.id = prefix + copy.id;
    if (!copy.layer.empty()) copy.layer = prefix + copy.layer;
    for (auto& id : copy.inputs) id += tensors;
    for (auto& id : copy.outputs) id += tensors;
    if (copy.forward_of != graph::kNoNode) copy.forward_of += nodes;
    p.graph.add_node(std::move(copy));
  }
  for (const auto& row : part.nodes) p.nodes.push_back({row.node + nodes, row.distinct + distinct, repeats});
  std::move(part.distinct.begin(), part.distinct.end(), std::back_inserter(p.distinct));
  for (auto& layer : part.layers) {
    layer.id = prefix + layer.id;
    for (auto& id : layer.nodes) id += nodes;
    layer.repeats = repeats;
    p.layers.push_back(std::move(layer));
  }
  const engine::SimTime start = p.timeline.total;
  for (const auto& s : part.timeline.host) p.timeline.host.push_back({s.node + nodes, s.start + start, s.end + start});
  for (const auto& s : part.timeline.kernels) {
    p.timeline.kernels.push_back({s.node + nodes, s.kernel, s.stream, s.start + start, s.end + start});
  }
  p.timeline.total = start + part.timeline.total;
}

template <class T>
void add_new(std::vector<T>& list, const std::vector<T>& more) {
  for (const T& x : more) {
    if (std::find(list.begin(), list.end(), x) == list.end()) list.push_back(x);
  }
}

void add_unmodelled(Prediction& p, const Prediction& step, std::int64_t steps) {
  for (const auto& u : step.unmodelled) {
    const auto same = std::find_if(p.unmodelled.begin(), p.unmodelled.end(),
                                   [&](const auto& x) { return x.op == u.op && x.reason == u.reason; });
    auto& row =
        same != p.unmodelled.end() ? *same : p.unmodelled.emplace_back(report::Unmodelled{u.op, 0, u.reason, 0});
    row.count += steps * u.count;
    row.bytes += static_cast<double>(steps) * u.bytes;
  }
}

void fill_figures(Prediction& p, const Sums& s) {
  p.forward = p.total = Seconds{s.total};
  p.backward = p.optimizer = Seconds{0};
  for (int attempt = 0; attempt < 64 && p.total.value > 0; ++attempt) {
    p.samples_per_s = exact_rate(p.global_batch, p.total.value);
    if (p.samples_per_s * p.total.value == p.global_batch) break;
    p.forward.value = std::nextafter(p.forward.value, std::numeric_limits<double>::max());
    p.total = p.forward;
  }
  const double whole = p.total.value > 0 ? p.total.value : 1;
  p.share_kernels = s.kernels / whole;
  p.share_communication_exposed = s.communication / whole;
  p.share_host_exposed = s.host / whole;
  p.share_idle = std::max(0.0, 1 - p.share_kernels - p.share_communication_exposed - p.share_host_exposed);
  double bounds = 0;
  for (std::size_t b = 0; b < s.bound.size(); ++b) {
    p.bound[b] = s.bound[b] / whole;
    if (b != kernel::kBounds) bounds += p.bound[b];
  }
  p.bound[kernel::kBounds] = std::max(0.0, 1 - bounds);
  p.mac = s.mac;
  p.flop = 2 * s.mac;
  p.other_flop = s.other_flop;
  p.model_flop_utilization = p.peak.value > 0 ? p.flop / (whole * p.peak.value) : 0;
  p.interval.low = Seconds{s.low};
  p.interval.high = Seconds{s.high};
  if (s.extrapolated) p.interval.evidence = "extrapolated";
  p.energy_j = s.energy;
  p.cost_usd = s.cost;
  p.co2_g = s.co2;
  if (s.energy.value && p.total.value > 0) p.average_power_w.value = *s.energy.value / p.total.value;
}

}  // namespace

Prediction complete(Prediction prefill, const Completion& completion, const StepFunction& step) {
  Prediction p = std::move(prefill);
  Prediction first_pass;
  std::swap(first_pass.graph, p.graph);
  std::swap(first_pass.nodes, p.nodes);
  std::swap(first_pass.distinct, p.distinct);
  std::swap(first_pass.layers, p.layers);
  std::swap(first_pass.timeline, p.timeline);
  p.graph.name = first_pass.graph.name;

  report::Generation g;
  g.prompt_tokens = completion.prompt_tokens;
  g.generated_tokens = completion.generated_tokens;
  g.time_to_first_token = p.total;
  Sums sums;
  sums.add(p, 1);
  append(p, std::move(first_pass), "prefill/", 1);

  const std::int64_t steps = completion.generated_tokens - 1;
  if (steps > 0) {
    const std::int64_t last = completion.first_context + steps - 1;
    const std::int64_t middle = completion.first_context + (steps - 1) / 2;
    std::map<std::int64_t, Prediction> priced;
    const auto time = [&](std::int64_t context) {
      Prediction at = step(context);
      const double t = at.total.value;
      at.graph = {};
      at.timeline = {};
      at.nodes.clear();
      at.distinct.clear();
      priced.emplace(context, std::move(at));
      return t;
    };
    std::vector<report::LayerRow> layers;
    const std::vector<PricedStep> weighted = price_steps(completion.first_context, last, time);
    for (const PricedStep& s : weighted) {
      sums.add(priced.at(s.context), s.weight);
      add_layers(layers, priced.at(s.context), s.weight);
    }
    const Prediction& end = priced.at(last);
    g.first = priced.at(completion.first_context).total;
    g.last = end.total;
    g.mean = Seconds{(sums.total - g.time_to_first_token.value) / static_cast<double>(steps)};
    if (g.mean.value > 0) g.decode_tokens_per_s = p.global_batch / g.mean.value;
    p.memory = memory_of_both(p.memory, end.memory);
    add_new(p.assumptions, end.assumptions);
    add_new(p.warnings, end.warnings);
    add_unmodelled(p, end, steps);
    if (static_cast<std::int64_t>(weighted.size()) < steps) {
      p.assumptions.push_back(fmt::format("{} of {} decode steps priced, the others on straight lines between them",
                                          weighted.size(), steps));
    }
    Prediction example = step(middle);
    for (std::size_t i = 0; i < layers.size() && i < example.layers.size(); ++i) {
      layers[i].nodes = std::move(example.layers[i].nodes);
    }
    example.layers = std::move(layers);
    append(p, std::move(example), "decode/", static_cast<double>(steps));
  }
  fill_figures(p, sums);
  if (p.total.value > 0) {
    g.output_tokens_per_s = p.global_batch * static_cast<double>(completion.generated_tokens) / p.total.value;
    p.tokens_per_s = g.output_tokens_per_s;
  }
  p.generation = g;
  // What steps alone said of their memory stands corrected.
  std::erase_if(p.warnings, [](const std::string& w) { return w.find("does not fit in device memory") != w.npos; });
  if (!p.fits()) p.warnings.push_back(misfit(p.memory));
  return p;
}

}  // namespace voltaic
