// SPDX-License-Identifier: MIT
// Device memory of a step: what persists, and the peak of what lives only between its first and its last use.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "arch/units/error.hpp"
#include "sim/graph/memory_plan.hpp"

namespace voltaic::graph {
namespace {

// The caching allocator of the common framework [PyTorchAlloc]: sizes in whole blocks; large ones get a segment of
// their own in steps of 2 MiB, of which a rest above 1 MiB serves others.
constexpr double kBlock = 512;
constexpr double kOwnSegment = 10.0 * 1024 * 1024;
constexpr double kSegmentStep = 2.0 * 1024 * 1024;
constexpr double kSmallestRest = 1.0 * 1024 * 1024;
constexpr double kLimit = 1e18;  // Beyond any machine, and far enough inside 64 bits for sums.

std::int64_t whole(double bytes) {
  if (!(bytes < kLimit)) throw UnsupportedError("graph: a tensor needs more than 1e18 bytes of memory");
  return static_cast<std::int64_t>(std::ceil(bytes));
}

std::int64_t in_steps(double bytes, double step) {
  return whole(std::ceil(bytes / step) * step);
}

void add_to(std::int64_t& sum, std::int64_t bytes) {
  sum += bytes;
  if (static_cast<double>(sum) > kLimit) throw UnsupportedError("graph: tensors need more than 1e18 bytes of memory");
}

/// What a tensor that stays takes from the device beyond its bytes.
std::int64_t lost_for_good(double bytes) {
  const std::int64_t blocks = in_steps(bytes, kBlock);
  const std::int64_t segments = in_steps(bytes, kSegmentStep);
  const bool rest_is_lost = bytes >= kOwnSegment && static_cast<double>(segments - blocks) <= kSmallestRest;
  return (rest_is_lost ? segments : blocks) - whole(bytes);
}

bool is_training_state(TensorRole role) {
  return role == TensorRole::parameter || role == TensorRole::buffer || role == TensorRole::optimizer_state;
}

double rows_of(const Tensor& y) {
  const std::int64_t width = y.shape.empty() ? 1 : std::max<std::int64_t>(y.shape.back(), 1);
  const std::int64_t rows = y.elements() / width;
  return static_cast<double>(rows);
}

/// The reserve space of a recurrent layer: activated gates of every step, an LSTM's cell states (a GRU's hidden part of
/// the candidate), and the outputs of inner layers. Without a backward pass it is the workspace of the call.
double recurrent_reserve(const OpGraph& graph, const Node& node) {
  const Tensor& x = graph.tensor(node.inputs[0]);
  if (x.shape.size() != 3) return 0;
  const double values = node.op == OpType::lstm ? 5 : node.op == OpType::gru ? 4 : 1;
  const auto hidden = static_cast<double>(node.attributes.integer("hidden", 0));
  const auto layers = static_cast<double>(node.attributes.integer("layers", 1));
  const double directions = node.attributes.flag("bidirectional") ? 2 : 1;
  const double rows = static_cast<double>(x.shape[0]) * static_cast<double>(x.shape[1]) * directions;
  return rows * hidden * (layers * values + layers - 1) * bytes_per_element(graph.tensor(node.outputs[0]).dtype);
}

/// Bytes that a kernel saves for its backward beside its outputs: log-probabilities of a loss, the places of a
/// pooling's maxima (8 bytes each), the log-sum-exp of fused attention, mean and deviation of a norm (4 bytes each),
/// gates of recurrent cells, states of a CTC loss.
double saved_beside(const OpGraph& graph, const Node& node) {
  const auto tensor = [&](TensorId t) -> const Tensor& { return graph.tensor(t); };
  if (node.inputs.empty() || node.outputs.empty()) return 0;
  const Tensor& x = tensor(node.inputs[0]);
  const Tensor& y = tensor(node.outputs[0]);
  switch (node.op) {
    case OpType::cross_entropy:
    case OpType::cross_entropy_backward: return x.bytes();
    case OpType::max_pool1d:
    case OpType::max_pool2d:
    case OpType::max_pool3d: return 8 * static_cast<double>(y.elements());
    case OpType::ctc_loss: {  // What is known of each state (labels and the blanks between them) at each step.
      const Tensor& labels = tensor(node.inputs[1]);
      if (x.shape.size() != 3 || labels.shape.size() != 2) return 0;
      const double states = 2 * static_cast<double>(labels.shape[1]) + 1;
      return static_cast<double>(x.shape[0]) * static_cast<double>(x.shape[1]) * states * bytes_per_element(x.dtype);
    }
    case OpType::attention: return 4 * rows_of(y);
    case OpType::rnn:
    case OpType::lstm:
    case OpType::gru: return recurrent_reserve(graph, node);
    case OpType::layer_norm: {
      const double columns = node.inputs.size() > 1 ? static_cast<double>(tensor(node.inputs[1]).elements()) : 1;
      return columns > 1 ? 8 * static_cast<double>(x.elements()) / columns : 0;
    }
    case OpType::fused_norm: {
      const auto columns = static_cast<double>(node.attributes.integer("cols", 1));
      const std::string functions = "," + node.attributes.word("functions", "") + ",";
      const bool saves = columns > 1 && functions.find(",layer_norm,") != std::string::npos;
      return saves ? 8 * static_cast<double>(y.elements()) / columns : 0;
    }
    default: return 0;
  }
}

/// Scratch that a kernel's algorithm implies whatever the machine: fused attention sums the gradient of its queries in
/// fp32 and keeps one scalar per row [FA2].
double implied_scratch(const OpGraph& graph, const Node& node) {
  if (node.op != OpType::attention_backward || node.outputs.empty()) return 0;
  const Tensor& dq = graph.tensor(node.outputs[0]);
  return 4 * (static_cast<double>(dq.elements()) + rows_of(dq));
}

/// The 16-bit copy of a weight that autocast makes once and keeps until the forward pass ends [PyTorchAMP].
bool is_cached_cast(const OpGraph& graph, const Node& node) {
  if (node.op != OpType::cast || node.phase != Phase::forward || node.inputs.empty() || node.outputs.empty()) {
    return false;
  }
  const Tensor& from = graph.tensor(node.inputs[0]);
  return from.role == TensorRole::parameter && from.stored_bytes() > graph.tensor(node.outputs[0]).stored_bytes();
}

/// Convolution networks write activations over the norm's or the convolution's result, and residual sums over one
/// operand, as the common model libraries build them.
bool asks_to_write_over(const OpGraph& graph, const Node& node) {
  switch (node.op) {
    case OpType::relu:
    case OpType::relu6:
    case OpType::hardswish:
    case OpType::silu:
    case OpType::add: break;
    default: return false;
  }
  const NodeId producer = graph.tensor(node.inputs[0]).producer;
  if (producer == kNoNode) return false;
  const OpType made_by = graph.node(producer).op;
  const bool after_sum = made_by == OpType::add && node.op != OpType::add;
  return after_sum || made_by == OpType::batch_norm || family(made_by) == OpFamily::convolution;
}

/// When each storage is first and last used.
class Lifetimes {
 public:
  static constexpr std::size_t kNever = SIZE_MAX;

  Lifetimes(const OpGraph& graph, bool reuse_operands) : graph_(graph) {
    const std::size_t count = graph.tensors().size();
    storage_.resize(count);
    for (TensorId t = 0; t < count; ++t) storage_[t] = t;
    for (const Node& node : graph.nodes()) {
      if (family(node.op) != OpFamily::view || node.inputs.empty()) continue;
      for (const TensorId t : node.outputs) storage_[t] = storage_[node.inputs[0]];
    }
    first_.assign(count, kNever);
    last_.assign(count, 0);
    note_uses();
    for (NodeId n = 0; n < graph.nodes().size(); ++n) write_over(n, reuse_operands);
  }

  std::size_t first(TensorId t) const { return first_[t]; }
  std::size_t last(TensorId t) const { return last_[t]; }
  bool owns(TensorId t) const { return storage_[t] == t; }

 private:
  TensorId root(TensorId t) const {
    while (storage_[t] != t) t = storage_[t];
    return t;
  }

  void use(TensorId t, std::size_t when) {
    const TensorId s = storage_[t];
    first_[s] = std::min(first_[s], when);
    last_[s] = std::max(last_[s], when);
  }

  void note_uses() {
    const auto nodes = graph_.nodes();
    std::size_t forward_end = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (const TensorId t : nodes[n].inputs) use(t, n);
      for (const TensorId t : nodes[n].outputs) use(t, n);
      if (nodes[n].phase == Phase::forward) forward_end = n;
    }
    for (const Node& node : nodes) {
      if (is_cached_cast(graph_, node)) use(node.outputs[0], forward_end);
    }
    const std::size_t end = nodes.empty() ? 0 : nodes.size() - 1;
    for (const TensorId t : graph_.outputs) use(t, end);
    if (graph_.loss < graph_.tensors().size()) use(graph_.loss, end);
  }

  /// Gives the result of node `n` the storage of an operand that dies there and has its size.
  void write_over(NodeId n, bool reuse_operands) {
    const Node& node = graph_.node(n);
    if (node.inputs.empty() || node.outputs.size() != 1) return;
    const bool any_operand = reuse_operands && family(node.op) == OpFamily::pointwise;
    if (!any_operand && !asks_to_write_over(graph_, node)) return;
    const TensorId result = root(node.outputs[0]);
    if (result != node.outputs[0]) return;
    const std::size_t operands = any_operand ? node.inputs.size() : 1;
    for (std::size_t i = 0; i < operands; ++i) {
      const TensorId operand = root(node.inputs[i]);
      const Tensor& from = graph_.tensor(operand);
      const bool transient = from.role == TensorRole::activation || from.role == TensorRole::gradient;
      if (!transient || last_[operand] != n || from.bytes() != graph_.tensor(result).bytes()) continue;
      if (graph_.tensor(result).role != TensorRole::activation && graph_.tensor(result).role != TensorRole::gradient) {
        return;
      }
      storage_[result] = operand;
      last_[operand] = last_[result];
      return;
    }
  }

  const OpGraph& graph_;
  std::vector<TensorId> storage_;  ///< Of each tensor: its own, or that of the tensor it is a view of.
  std::vector<std::size_t> first_, last_;
};

enum class Kind : std::uint8_t { activation, gradient, scratch };
constexpr std::size_t kKinds = 3;

/// Bytes alive at each node, from intervals, in linear time.
class Timeline {
 public:
  explicit Timeline(std::size_t nodes) : blocks_(nodes + 1, 0) {
    for (auto& bytes : bytes_) bytes.assign(nodes + 1, 0);
  }

  void live(Kind kind, std::size_t first, std::size_t last, double size) {
    const std::int64_t bytes = whole(size);
    const std::int64_t blocks = in_steps(size, kBlock);
    auto& change = bytes_[static_cast<std::size_t>(kind)];
    change[first] += bytes;
    change[last + 1] -= bytes;
    blocks_[first] += blocks;
    blocks_[last + 1] -= blocks;
    add_to(allocated_, blocks);
  }

  struct Peak {
    std::size_t node = 0;
    std::int64_t blocks = 0;
    std::array<std::int64_t, kKinds> bytes{};
  };

  /// The first node at which most blocks are taken.
  Peak peak() const {
    Peak now;
    Peak most;
    for (std::size_t n = 0; n + 1 < blocks_.size(); ++n) {
      now.node = n;
      now.blocks += blocks_[n];
      for (std::size_t k = 0; k < kKinds; ++k) now.bytes[k] += bytes_[k][n];
      if (now.blocks > most.blocks) most = now;
    }
    return most;
  }

 private:
  std::vector<std::int64_t> blocks_;
  std::array<std::vector<std::int64_t>, kKinds> bytes_;
  std::int64_t allocated_ = 0;
};

/// Inputs that only copies to the device read lie in host memory.
std::vector<bool> on_host(const OpGraph& graph) {
  std::vector<bool> copied(graph.tensors().size(), false);
  std::vector<bool> read(graph.tensors().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const TensorId t : node.inputs) {
      (node.op == OpType::host_to_device ? copied : read)[t] = true;
    }
  }
  for (TensorId t = 0; t < copied.size(); ++t) {
    copied[t] = copied[t] && !read[t] && graph.tensor(t).role == TensorRole::input;
  }
  return copied;
}

void place_tensors(const OpGraph& graph, const Lifetimes& lives, Timeline& timeline) {
  const auto tensors = graph.tensors();
  const std::vector<bool> host = on_host(graph);
  const std::size_t end = graph.nodes().size() - 1;
  for (TensorId t = 0; t < tensors.size(); ++t) {
    const Tensor& tensor = tensors[t];
    if (tensor.role == TensorRole::parameter_gradient) {
      // It stays until the step ends; one without a producer was there before (accumulation).
      const bool before = tensor.producer == kNoNode;
      timeline.live(Kind::gradient, before ? 0 : tensor.producer, end, tensor.bytes());
      continue;
    }
    if (!lives.owns(t) || lives.first(t) == Lifetimes::kNever || host[t] || is_training_state(tensor.role)) continue;
    const bool given = tensor.role == TensorRole::input;  // The caller holds it for the whole step.
    timeline.live(Kind::activation, given ? 0 : lives.first(t), given ? end : lives.last(t), tensor.bytes());
  }
}

void place_scratch(const OpGraph& graph, std::span<const std::int64_t> scratch, Timeline& timeline) {
  const auto nodes = graph.nodes();
  std::vector<std::size_t> saved_until(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    saved_until[n] = n;
    if (nodes[n].forward_of < n) saved_until[nodes[n].forward_of] = n;
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const double saved = saved_beside(graph, nodes[n]);
    if (saved > 0) timeline.live(Kind::activation, n, saved_until[n], saved);
    const double own = implied_scratch(graph, nodes[n]) + (n < scratch.size() ? static_cast<double>(scratch[n]) : 0);
    if (own > 0) timeline.live(Kind::scratch, n, n, own);
  }
}

void add_transient(const OpGraph& graph, const MemoryOptions& options, MemoryPlan& plan) {
  if (graph.nodes().empty()) return;
  const Lifetimes lives(graph, options.reuse_operands);
  Timeline timeline(graph.nodes().size());
  place_tensors(graph, lives, timeline);
  place_scratch(graph, options.scratch, timeline);
  const Timeline::Peak peak = timeline.peak();
  const std::int64_t live =
      peak.bytes[static_cast<std::size_t>(Kind::activation)] + peak.bytes[static_cast<std::size_t>(Kind::gradient)];
  plan.workspace = peak.bytes[static_cast<std::size_t>(Kind::scratch)];
  plan.activations = std::max<std::int64_t>(0, live - plan.gradients);
  plan.allocator += peak.blocks - live - plan.workspace;
  plan.peak = static_cast<NodeId>(peak.node);
}

void add_persistent(const OpGraph& graph, MemoryPlan& plan) {
  for (const Tensor& tensor : graph.tensors()) {
    const std::int64_t bytes = whole(tensor.bytes());
    if (tensor.role == TensorRole::parameter_gradient) add_to(plan.gradients, bytes);
    if (!is_training_state(tensor.role)) continue;
    add_to(plan.allocator, lost_for_good(tensor.bytes()));
    if (tensor.role == TensorRole::parameter) add_to(plan.weights, bytes);
    if (tensor.role == TensorRole::optimizer_state) add_to(plan.optimizer_state, bytes);
    if (tensor.role == TensorRole::buffer)
      add_to(tensor.name.starts_with("kv_cache") ? plan.kv_cache : plan.weights, bytes);
  }
  for (const Node& node : graph.nodes()) {
    if (node.op == OpType::optimizer_step)
      add_to(plan.optimizer_state, whole(node.attributes.number("state_bytes", 0)));
  }
}

}  // namespace

MemoryPlan plan_memory(const OpGraph& graph, const MemoryOptions& options) {
  MemoryPlan plan;
  add_persistent(graph, plan);
  add_transient(graph, options, plan);
  return plan;
}

}  // namespace voltaic::graph
