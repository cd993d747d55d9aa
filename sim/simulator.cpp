// SPDX-License-Identifier: MIT
#include "sim/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include "arch/units/error.hpp"
#include "sim/cost/power.hpp"
#include "sim/fill.hpp"
#include "sim/graph/engine_fusion.hpp"
#include "sim/host_model.hpp"
#include "sim/jobs.hpp"
#include "sim/kernel/fused.hpp"
#include "sim/memory_use.hpp"
#include "sim/node_memo.hpp"
#include "sim/quantised.hpp"

namespace voltaic {
namespace {

/// Roofline, analytic, and the cycle engine by what it samples and how it knows L2.
constexpr std::size_t kEngines = 6;

std::size_t slot_of(cost::EngineKind kind, cycle::SampleOptions sampling) {
  const auto first = static_cast<std::size_t>(kind);
  if (kind != cost::EngineKind::cycle) return first;
  return first + 2 * static_cast<std::size_t>(sampling.sample) + static_cast<std::size_t>(sampling.l2);
}

bool is_engine(const SimulationOptions& o) {
  return o.framework == kernel::Framework::tensorrt;
}

/// Whether any convolution multiplies in 16 bits or less, which tensor cores do with channels last.
bool multiplies_narrow_convolutions(const graph::OpGraph& g) {
  return std::any_of(g.nodes().begin(), g.nodes().end(), [](const graph::Node& node) {
    constexpr int kNarrow = 16;
    return graph::family(node.op) == graph::OpFamily::convolution && info(node.compute).bits <= kNarrow;
  });
}

void lay_out(graph::OpGraph& g, Layout layout) {
  const bool wanted =
      layout == Layout::channels_last || (layout == Layout::automatic && multiplies_narrow_convolutions(g));
  if (wanted) graph::set_channels_last(g);
}

/// From the forward graph in fp32 to the graph that runs. Casts of mixed precision come first, so that they are
/// differentiated too.
void run_passes(graph::OpGraph& g, const SimulationOptions& o, const arch::GpuSpec& gpu,
                std::vector<std::string>& assumptions) {
  const bool engine = is_engine(o);
  graph::assign_precision(g, engine ? engine_precision(gpu, o.precision) : o.precision);
  if (o.sparsity) graph::sparsify_weights(g, sparse_paths(gpu));
  if (o.training) {
    graph::append_backward(g, {.accumulate_gradients = o.accumulation > 1});
    if (o.recompute != graph::Recompute::none && graph::recompute_activations(g, o.recompute) == 0) {
      assumptions.push_back(fmt::format("--recompute {}: {}", to_string(o.recompute),
                                        o.recompute == graph::Recompute::full
                                            ? "no layer repeats by name, so nothing runs again"
                                            : "no attention keeps its scores, so nothing runs again"));
    }
    if (o.include_optimizer) graph::append_optimizer(g, o.optimizer, o.precision, o.per_tensor_optimizer);
  }
  lay_out(g, o.layout);
  if (!o.training && kernel::generates_rows(o.framework)) graph::fold_batch_norms(g);
  if (engine) {
    graph::keep_quantised(g);
    graph::join_linears(g);
    graph::fuse_epilogues(g, gpu.architecture != arch::Architecture::volta);
  }
  if (kernel::generates_kernels(o.framework)) graph::fuse_pointwise(g, kernel::generates_rows(o.framework));
  if (o.input_copy == InputCopy::pageable || o.input_copy == InputCopy::pinned) {
    graph::copy_inputs(g, o.input_copy == InputCopy::pinned);
  }
}

std::uint64_t salt_of(const SimulationOptions& o) {
  return static_cast<std::uint64_t>(slot_of(o.engine, o.sampling)) << 8 | static_cast<std::uint64_t>(o.framework);
}

void check_options(const SimulationOptions& o) {
  constexpr std::int64_t kMostMicroSteps = 4096;
  ensure(o.accumulation >= 1 && o.accumulation <= kMostMicroSteps && (o.training || o.accumulation == 1),
         "micro-steps of a request must lie in 1..4096, and be 1 outside training");
  check_inference_only(o.training, o.precision, o.sparsity);
  ensure(o.samples >= 0 && o.tokens_per_sample >= 0 && o.kv_cache_elements >= 0,
         "sizes of a request must not be negative");
}

}  // namespace

struct Simulator::Impl {
  std::shared_ptr<const arch::ResolvedGpu> gpu;
  cost::EngineKind kind;
  std::unique_ptr<kernel::LibraryChoice> library;
  IntervalModel intervals;
  cost::PowerModel power;
  mutable NodeMemo memo;
  mutable std::mutex mutex;
  mutable std::array<std::unique_ptr<kernel::CostModel>, kEngines> engines;

  Impl(std::shared_ptr<const arch::ResolvedGpu> resolved, cost::EngineKind engine_kind)
      : gpu(std::move(resolved)), kind(engine_kind), library(cost::make_library(*gpu)), intervals(*gpu), power(*gpu) {}

  /// Made when first asked for.
  const kernel::CostModel& engine(cost::EngineKind wanted, cycle::SampleOptions sampling = {}) const {
    const std::lock_guard lock(mutex);
    auto& slot = engines[slot_of(wanted, sampling)];
    if (!slot) slot = make_engine(wanted, *gpu, sampling);
    return *slot;
  }

  std::shared_ptr<const PricedNode> price(const graph::OpGraph& g, const graph::Node& node,
                                          const kernel::Target& target, const kernel::CostModel& model) const;
  std::shared_ptr<const PricedNode> price_best(const graph::OpGraph& g, const graph::Node& node,
                                               const kernel::Target& target, const kernel::CostModel& model) const;
  void check_cost(const kernel::Launch& launch, const kernel::KernelCost& cost) const;
  std::shared_ptr<const PricedNode> find_or_price(const graph::OpGraph& g, const graph::Node& node, const NodeKey& key,
                                                  const SimulationOptions& options) const;
  void price_all(report::Prediction& p, const SimulationOptions& options,
                 std::vector<std::shared_ptr<const PricedNode>>& priced) const;
  std::vector<std::int64_t> scratch(const graph::OpGraph& g, const SimulationOptions& options) const;
};

/// A changed machine or calibration can leave what a law was made for; then there is no answer, rather than a senseless
/// one.
void Simulator::Impl::check_cost(const kernel::Launch& launch, const kernel::KernelCost& cost) const {
  const auto sound = [](double x) { return std::isfinite(x) && x >= 0; };
  const bool legs = std::all_of(cost.legs.begin(), cost.legs.end(), [&](Seconds leg) { return sound(leg.value); });
  if (sound(cost.time.value) && sound(cost.roofline.value) && legs) return;
  ensure(gpu->modified, "a kernel has a time that is negative or not a number");
  throw ConfigError(gpu->spec.name, "",
                    fmt::format("expected values with which every kernel has a time, got none for {}", launch.name));
}

std::shared_ptr<const PricedNode> Simulator::Impl::price(const graph::OpGraph& g, const graph::Node& node,
                                                         const kernel::Target& target,
                                                         const kernel::CostModel& model) const {
  kernel::Lowered lowered = kernel::lower(g, node, target);
  auto out = std::make_shared<PricedNode>();
  out->host = lowered.host;
  out->host_calls = lowered.host_calls;
  out->launches = static_cast<double>(lowered.launches.size());
  out->row.unmodelled_reason = std::move(lowered.unmodelled_reason);
  out->row.unmodelled_bytes = lowered.unmodelled_bytes.value;
  out->row.kernels.reserve(lowered.launches.size());
  for (kernel::Launch& launch : lowered.launches) {
    const kernel::KernelCost cost = model.cost(launch);
    check_cost(launch, cost);
    out->row.gpu_time += cost.time;
    out->row.energy += cost.energy;
    out->row.kernels.push_back({std::move(launch), cost});
  }
  const graph::OpCount work = graph::count(g, node);
  out->mac = work.mac;
  out->other_flop = work.other_flop;
  return out;
}

/// An inference engine times the sparse and the dense kernel and keeps dense weights where those are as fast. Others
/// run what they are told to.
std::shared_ptr<const PricedNode> Simulator::Impl::price_best(const graph::OpGraph& g, const graph::Node& node,
                                                              const kernel::Target& target,
                                                              const kernel::CostModel& model) const {
  auto told = price(g, node, target, model);
  if (target.framework != kernel::Framework::tensorrt || !has_sparse_weight(g, node)) return told;
  kernel::Target dense = target;
  dense.sparse_weights = false;
  auto other = price(g, node, dense, model);
  return other->row.gpu_time <= told->row.gpu_time ? other : told;
}

std::shared_ptr<const PricedNode> Simulator::Impl::find_or_price(const graph::OpGraph& g, const graph::Node& node,
                                                                 const NodeKey& key, const SimulationOptions& o) const {
  if (auto known = memo.find(key)) return known;
  auto made = price_best(g, node, {gpu->spec, *library, o.framework}, engine(o.engine, o.sampling));
  memo.insert(key, made);
  return made;
}

/// Fills `nodes` and `distinct`: each distinct node is lowered once per prediction at most, and once per simulator
/// usually. The cycle engine takes milliseconds for each, so several run at a time.
void Simulator::Impl::price_all(report::Prediction& p, const SimulationOptions& o,
                                std::vector<std::shared_ptr<const PricedNode>>& priced) const {
  const std::uint64_t salt = salt_of(o);
  std::unordered_map<NodeKey, std::uint32_t, NodeKeyHash> local;
  std::vector<std::pair<std::uint32_t, const NodeKey*>> fresh;  // the first node of each kind
  NodeKey key;
  const std::vector<std::uint64_t> views = view_signatures(p.graph);
  const std::span<const graph::Node> nodes = p.graph.nodes();
  p.nodes.reserve(nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (!o.include_loss && graph::family(nodes[i].op) == graph::OpFamily::loss) continue;
    key.assign(p.graph, nodes[i], views, salt);
    const auto [found, is_new] = local.try_emplace(key, static_cast<std::uint32_t>(fresh.size()));
    if (is_new) fresh.emplace_back(i, &found->first);
    const bool once = nodes[i].phase == graph::Phase::optimizer;
    p.nodes.push_back({i, found->second, once ? 1.0 : static_cast<double>(o.accumulation)});
  }
  priced.resize(fresh.size());
  const auto one = [&](std::size_t i) {
    priced[i] = find_or_price(p.graph, nodes[fresh[i].first], *fresh[i].second, o);
  };
  if (o.engine == cost::EngineKind::cycle) {
    for_all(fresh.size(), one);
  } else {
    for (std::size_t i = 0; i < fresh.size(); ++i) one(i);
  }
  for (const auto& node : priced) p.distinct.push_back(node->row);
}

/// Bytes that kernels ask for while they run, by node. Only convolutions do, so only they are lowered.
std::vector<std::int64_t> Simulator::Impl::scratch(const graph::OpGraph& g, const SimulationOptions& o) const {
  const auto is_convolution = [](const graph::Node& n) { return graph::family(n.op) == graph::OpFamily::convolution; };
  const std::span<const graph::Node> nodes = g.nodes();
  std::vector<std::int64_t> bytes(nodes.size(), 0);
  if (std::none_of(nodes.begin(), nodes.end(), is_convolution)) return bytes;
  // The library chooses kernels, and with them their scratch, whichever engine prices them.
  SimulationOptions quick = o;
  if (o.engine == cost::EngineKind::cycle) quick.engine = cost::EngineKind::analytic;
  const std::vector<std::uint64_t> views = view_signatures(g);
  NodeKey key;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!is_convolution(nodes[i])) continue;
    key.assign(g, nodes[i], views, salt_of(quick));
    const std::shared_ptr<const PricedNode> node = find_or_price(g, nodes[i], key, quick);
    bytes[i] = scratch_of(node->row);
  }
  return bytes;
}

namespace {

/// The program as the host meets it: micro-steps one after another, then the optimizer. `durations` holds the kernels
/// of each distinct node; the program points into it.
runtime::Timeline play_all(const report::Prediction& p, const HostModel& host,
                           const std::vector<std::vector<Seconds>>& durations, std::int64_t micro_steps = 1) {
  std::vector<runtime::Dispatch> program;
  const auto add = [&](bool optimizer) {
    for (const auto& row : p.nodes) {
      const graph::Node& node = p.graph.node(row.node);
      if ((node.phase == graph::Phase::optimizer) != optimizer) continue;
      const Seconds time = p.distinct[row.distinct].host_time + node.extra_host_calls * host.view;
      program.push_back({row.node, node.phase, time, durations[row.distinct], 0});
    }
  };
  program.reserve(p.nodes.size() * static_cast<std::size_t>(micro_steps));
  for (std::int64_t i = 0; i < micro_steps; ++i) add(false);
  add(true);
  return runtime::play(program, host.launch);
}

/// What the input side needs for a step: delivery by the pipeline, and copies that overlap with the step before.
Seconds input_time(const graph::OpGraph& g, const SimulationOptions& o, const kernel::CostModel& model) {
  Seconds time;
  if (o.input_rate > 0) time = Seconds{o.samples / o.input_rate};
  if (o.input_copy != InputCopy::overlapped) return time;
  Seconds copies;
  for (const graph::Tensor& tensor : g.tensors()) {
    if (tensor.role != graph::TensorRole::input || !(tensor.bytes() > 0)) continue;
    kernel::Launch launch;
    launch.name = "Memcpy HtoD";
    launch.library = "driver";
    launch.family = "transfer";
    launch.work.written = Bytes{tensor.bytes()};
    launch.detail = kernel::TransferKernel{Bytes{tensor.bytes()}, true, true};
    copies += static_cast<double>(o.accumulation) * model.cost(launch).time;
  }
  return std::max(time, copies);
}

}  // namespace

Simulator::Simulator(std::shared_ptr<const arch::ResolvedGpu> gpu, cost::EngineKind engine)
    : impl_(std::make_unique<Impl>(std::move(gpu), engine)) {}
Simulator::~Simulator() = default;

const arch::ResolvedGpu& Simulator::gpu() const {
  return *impl_->gpu;
}
const kernel::LibraryChoice& Simulator::library() const {
  return *impl_->library;
}
kernel::KernelCost Simulator::cost(const kernel::Launch& launch) const {
  return impl_->engine(impl_->kind).cost(launch);
}
const cycle::CycleEngine& Simulator::cycle_engine(cycle::SampleOptions sampling) const {
  return static_cast<const CycleOverAnalytic&>(impl_->engine(cost::EngineKind::cycle, sampling)).cycle();
}

/// From a quarter of the board's limit, which is about the lowest that boards take, in steps of 5 W.
std::vector<report::CapPoint> Simulator::power_caps(const report::Prediction& p,
                                                    const SimulationOptions& options) const {
  constexpr double kStep = 5;
  const arch::PowerSpec& board = impl_->gpu->spec.power;
  const HostModel host = host_model(impl_->gpu->calibration, options.framework).scaled(options.host_scale);
  std::vector<double> count(p.distinct.size(), 0);
  for (const auto& row : p.nodes) count[row.distinct] += row.repeats;
  std::vector<report::CapPoint> out;
  std::vector<std::vector<Seconds>> durations(p.distinct.size());
  arch::ResolvedGpu gpu = *impl_->gpu;
  const double least = std::ceil(std::max(board.limit.value / 4, board.idle.value + kStep) / kStep) * kStep;
  const auto steps = static_cast<int>(std::min(1000.0, std::ceil(std::max(0.0, board.limit.value - least) / kStep)));
  for (int i = 0; i <= steps; ++i) {
    const Watts cap = i == steps ? board.limit : Watts{least + kStep * i};
    gpu.operating.power_cap = cap;
    const cost::PowerModel power(gpu);
    Joules energy;
    for (std::size_t d = 0; d < p.distinct.size(); ++d) {
      durations[d].clear();
      for (const auto& k : p.distinct[d].kernels) {
        kernel::KernelCost cost = k.cost;
        power.apply(k.launch, cost);
        durations[d].push_back(cost.time);
        energy += count[d] * cost.energy;
      }
    }
    const runtime::Timeline timeline = play_all(p, host, durations, options.accumulation);
    const Seconds total = std::max(timeline.total.seconds(), p.input_limit);
    energy += power.gap() * std::max(Seconds{0}, total - timeline.gpu_busy.seconds());
    // A limit that memory traffic exceeds at the lowest clock is none that the board can hold.
    constexpr double kRounding = 1e-6;
    if (i < steps && energy.value > cap.value * total.value * (1 + kRounding)) continue;
    out.push_back({cap, total, energy});
  }
  return out;
}

report::Prediction Simulator::predict(graph::OpGraph forward, const SimulationOptions& asked) const {
  check_options(asked);
  SimulationOptions options = asked;
  if (is_engine(asked)) options.precision = engine_precision(impl_->gpu->spec, asked.precision);
  report::Prediction p;
  if (std::string warning = check_precision(impl_->gpu->spec, options.precision); !warning.empty()) {
    p.warnings.push_back(std::move(warning));
  }
  if (options.sparsity) {
    std::string warning = check_sparsity(impl_->gpu->spec, options.precision);
    if (!warning.empty()) p.warnings.push_back(std::move(warning));
  }
  p.graph = std::move(forward);
  std::vector<std::string> pass_notes;
  run_passes(p.graph, options, impl_->gpu->spec, pass_notes);
  std::vector<std::shared_ptr<const PricedNode>> priced;
  impl_->price_all(p, options, priced);
  if (options.sparsity) store_unused_sparsity_dense(p);
  p.assumptions =
      storage_assumptions(asked.precision, options.sparsity, is_engine(options) ? &impl_->gpu->spec : nullptr);
  const HostModel host = host_model(impl_->gpu->calibration, options.framework).scaled(options.host_scale);
  std::vector<std::vector<Seconds>> durations(p.distinct.size());
  for (std::size_t d = 0; d < p.distinct.size(); ++d) {
    for (const auto& k : p.distinct[d].kernels) durations[d].push_back(k.cost.time);
    p.distinct[d].host_time = host.time(priced[d]->host, priced[d]->host_calls, priced[d]->launches);
  }
  p.timeline = play_all(p, host, durations, options.accumulation);
  p.input_limit = input_time(p.graph, options, impl_->engine(options.engine, options.sampling));
  p.assumptions.insert(p.assumptions.end(), pass_notes.begin(), pass_notes.end());
  fill(p, {*impl_->gpu, options, impl_->intervals, priced, impl_->power.gap()});
  if (!p.fits()) p.warnings.push_back(misfit(p.memory));
  return p;
}

report::MemoryUse Simulator::memory(graph::OpGraph forward, const SimulationOptions& options) const {
  check_options(options);
  check_precision(impl_->gpu->spec, options.precision);
  if (options.sparsity) return predict(std::move(forward), options).memory;  // Times decide what is stored sparse.
  std::vector<std::string> notes;
  run_passes(forward, options, impl_->gpu->spec, notes);
  return memory_use(forward, *impl_->gpu, options, impl_->scratch(forward, options));
}

}  // namespace voltaic
