// SPDX-License-Identifier: MIT
// The optimizer phase as PyTorch's fused multi-tensor kernels run it. A launch takes a list of tensors cut into chunks
// of 65,536 elements and ends at 320 chunks or at the number of tensors whose addresses fit its arguments [PyTorchMTA];
// a long tensor spans launches. One node is one launch.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "arch/units/error.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

constexpr std::int64_t kChunkElements = 65536;
constexpr std::int64_t kChunksPerLaunch = 320;
/// Tensors per launch by how many lists (parameter, gradient, moments) the kernel walks.
constexpr std::array<std::int64_t, 6> kTensorsPerLaunch{0, 110, 64, 48, 36, 30};

constexpr std::array<std::pair<Optimizer, std::string_view>, 5> kNames{{{Optimizer::sgd, "sgd"},
                                                                        {Optimizer::momentum, "momentum"},
                                                                        {Optimizer::adam, "adam"},
                                                                        {Optimizer::adamw, "adamw"},
                                                                        {Optimizer::lamb, "lamb"}}};

/// Elements read and written per parameter element, and the state kept.
struct Accesses {
  std::size_t lists;
  double read;
  double written;
  double state;
};

Accesses accesses(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd: return {2, 2, 1, 0};       // p, g -> p
    case Optimizer::momentum: return {3, 3, 2, 1};  // p, g, m -> p, m
    case Optimizer::adam:
    case Optimizer::adamw:
      return {4, 4, 3, 2};  // p, g, m, v -> p, m, v
    // p, g, m, v -> m, v, u; norms of p and u; p, u -> p.
    case Optimizer::lamb: return {5, 8, 4, 2};
  }
  return {2, 2, 1, 0};
}

struct Trained {
  TensorId parameter;
  TensorId gradient;
};

/// Parameters in order of declaration, each with the gradient that backward left as "NAME.grad".
std::vector<Trained> trained_parameters(const OpGraph& graph) {
  std::unordered_map<std::string_view, TensorId> gradients;
  const auto tensors = graph.tensors();
  for (TensorId t = 0; t < tensors.size(); ++t) {
    if (tensors[t].role == TensorRole::parameter_gradient) gradients.emplace(tensors[t].name, t);
  }
  std::vector<Trained> trained;
  std::string name;
  for (TensorId t = 0; t < tensors.size() && !gradients.empty(); ++t) {
    if (tensors[t].role != TensorRole::parameter) continue;
    name.assign(tensors[t].name).append(".grad");
    if (const auto found = gradients.find(name); found != gradients.end()) trained.push_back({t, found->second});
  }
  return trained;
}

/// What one launch has gathered.
struct Launch {
  std::vector<TensorId> inputs;
  std::int64_t tensors = 0;
  std::int64_t chunks = 0;
  std::int64_t elements = 0;
  double bytes = 0;  ///< Of the parameters it covers, in their own type.
};

class LaunchWriter {
 public:
  LaunchWriter(OpGraph& graph, OpType op, std::string name, const Accesses& a, std::int64_t max_tensors)
      : graph_(graph), op_(op), name_(std::move(name)), accesses_(a), max_tensors_(max_tensors) {}

  void add(const Trained& trained, bool with_parameter) {
    const Tensor& tensor = graph_.tensor(trained.parameter);
    std::int64_t left = tensor.elements();
    while (left > 0) {
      const std::int64_t room = (kChunksPerLaunch - launch_.chunks) * kChunkElements;
      const std::int64_t taken = std::min(left, room);
      launch_.inputs.push_back(with_parameter ? trained.parameter : trained.gradient);
      if (with_parameter) launch_.inputs.push_back(trained.gradient);
      ++launch_.tensors;
      launch_.chunks += (taken + kChunkElements - 1) / kChunkElements;
      launch_.elements += taken;
      launch_.bytes += static_cast<double>(taken) * bytes_per_element(tensor.dtype);
      left -= taken;
      if (launch_.chunks >= kChunksPerLaunch || launch_.tensors >= max_tensors_) flush();
    }
  }

  void flush() {
    if (launch_.tensors == 0) return;
    constexpr std::int64_t kMostLaunches = 1'000'000;  // Of 20 million elements each, far more than any memory holds.
    if (count_ >= kMostLaunches) throw UnsupportedError("graph: an optimizer step of over 1e6 launches is out of range");
    Node node;
    node.id = "optimizer." + name_ + "." + std::to_string(count_++);
    node.op = op_;
    node.phase = Phase::optimizer;
    node.layer = "optimizer";
    node.inputs = std::move(launch_.inputs);
    node.compute = DataType::fp32;
    if (op_ == OpType::optimizer_step) node.attributes.set("optimizer", name_);
    node.attributes.set("elements", launch_.elements);
    node.attributes.set("tensors", launch_.tensors);
    node.attributes.set("read_bytes", accesses_.read * launch_.bytes);
    node.attributes.set("written_bytes", accesses_.written * launch_.bytes);
    if (accesses_.state > 0) node.attributes.set("state_bytes", accesses_.state * launch_.bytes);
    graph_.add_node(std::move(node));
    launch_ = {};
  }

 private:
  OpGraph& graph_;
  OpType op_;
  std::string name_;
  Accesses accesses_;
  std::int64_t max_tensors_;
  std::int64_t count_ = 0;
  Launch launch_;
};

/// A plain loop over parameters: each line of the rule is a kernel of its own over one tensor. Lists read and written
/// by each, in order; the state is charged to the first [PyTorchOptim].
struct PlainStep {
  double read, written;
};
constexpr PlainStep kPlainSgd[] = {{2, 1}};                       // p -= lr g
constexpr PlainStep kPlainMomentum[] = {{1, 1}, {2, 1}, {2, 1}};  // m *= b; m += g; p -= lr m
/// p *= 1 - lr decay; m *= b1; m += g; v *= b2; v += g g; d = sqrt(v); d /= correction; d += epsilon; p -= lr m / d
constexpr PlainStep kPlainAdamw[] = {{1, 1}, {1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}, {1, 1}, {1, 1}, {3, 1}};
/// Moments and d as there; u = m / d; u += decay p; |p|; |u|; p -= lr ratio u
constexpr PlainStep kPlainLamb[] = {{1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}, {1, 1},
                                    {1, 1}, {2, 1}, {2, 1}, {1, 0}, {1, 0}, {2, 1}};

std::span<const PlainStep> plain_steps(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd: return kPlainSgd;
    case Optimizer::momentum: return kPlainMomentum;
    case Optimizer::adam: return std::span(kPlainAdamw).subspan(1);
    case Optimizer::adamw: return kPlainAdamw;
    case Optimizer::lamb: return kPlainLamb;
  }
  return kPlainSgd;
}

void append_plain(OpGraph& graph, const std::vector<Trained>& trained, Optimizer optimizer) {
  const std::string name(to_string(optimizer));
  const std::span<const PlainStep> steps = plain_steps(optimizer);
  std::int64_t count = 0;
  for (const Trained& t : trained) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Tensor& parameter = graph.tensor(t.parameter);
      const double bytes = parameter.bytes();
      Node node;
      node.id = "optimizer." + name + "." + std::to_string(count++);
      node.op = OpType::optimizer_step;
      node.phase = Phase::optimizer;
      node.layer = "optimizer";
      node.inputs = {t.parameter, t.gradient};
      node.compute = DataType::fp32;
      node.attributes.set("optimizer", std::string("plain"));
      node.attributes.set("elements", parameter.elements());
      node.attributes.set("tensors", std::int64_t{1});
      node.attributes.set("read_bytes", steps[i].read * bytes);
      node.attributes.set("written_bytes", steps[i].written * bytes);
      if (i == 0) node.attributes.set("state_bytes", accesses(optimizer).state * bytes);
      graph.add_node(std::move(node));
    }
  }
}

void append_launches(OpGraph& graph, const std::vector<Trained>& trained, OpType op, const std::string& name,
                     const Accesses& a) {
  LaunchWriter writer(graph, op, name, a, kTensorsPerLaunch[a.lists]);
  for (const Trained& t : trained) writer.add(t, op == OpType::optimizer_step);
  writer.flush();
}

}  // namespace

std::string_view to_string(Optimizer optimizer) {
  return kNames[static_cast<std::size_t>(optimizer)].second;
}

std::optional<Optimizer> parse_optimizer(std::string_view name) {
  for (const auto& [optimizer, known] : kNames) {
    if (known == name) return optimizer;
  }
  return std::nullopt;
}

double optimizer_state_bytes(Optimizer optimizer, Precision precision) {
  double element = 4;
  if (precision == Precision::fp64) element = 8;
  if (precision == Precision::fp16 || precision == Precision::bf16) element = 2;
  return accesses(optimizer).state * element;
}

void append_optimizer(OpGraph& graph, Optimizer optimizer, Precision precision, bool per_tensor) {
  const std::vector<Trained> trained = trained_parameters(graph);
  // fp16 gradients were computed from a scaled loss: one pass checks for infinities and divides the scale out.
  if (precision == Precision::mixed_fp16) append_launches(graph, trained, OpType::grad_scale, "unscale", {1, 1, 1, 0});
  if (per_tensor) return append_plain(graph, trained, optimizer);
  append_launches(graph, trained, OpType::optimizer_step, std::string(to_string(optimizer)), accesses(optimizer));
}

}  // namespace voltaic::graph
