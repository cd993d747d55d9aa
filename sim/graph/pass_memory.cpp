// SPDX-License-Identifier: MIT
// Device memory of a step: what persists, and the peak of what lives only between its first and its last use.
#include <algorithm>
#include <cmath>
#include <string>

#include "arch/units/error.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

constexpr std::int64_t kBlock = 512;  // Granularity of PyTorch's caching allocator [PyTorchAlloc].
constexpr double kLimit = 1e18;       // Beyond any machine, and far enough inside 64 bits for sums.

std::int64_t to_blocks(double bytes) {
  const double blocks = std::ceil(bytes / static_cast<double>(kBlock));
  if (!(blocks * static_cast<double>(kBlock) < kLimit)) {
    throw UnsupportedError("graph: a tensor needs more than 1e18 bytes of memory");
  }
  return static_cast<std::int64_t>(blocks) * kBlock;
}

void add_to(std::int64_t& sum, std::int64_t bytes) {
  sum += bytes;
  if (static_cast<double>(sum) > kLimit) throw UnsupportedError("graph: tensors need more than 1e18 bytes of memory");
}

/// The storage of each tensor: its own, or that of the tensor it is a view of.
std::vector<TensorId> storages(const OpGraph& graph) {
  std::vector<TensorId> storage(graph.tensors().size());
  for (TensorId t = 0; t < storage.size(); ++t) storage[t] = t;
  for (const Node& node : graph.nodes()) {
    if (family(node.op) != OpFamily::view || node.inputs.empty()) continue;
    for (const TensorId t : node.outputs) storage[t] = storage[node.inputs[0]];
  }
  return storage;
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
/// pooling's maxima (8 bytes each), the log-sum-exp of fused attention, mean and deviation of a norm (4 bytes each).
double saved_beside(const OpGraph& graph, const Node& node) {
  const auto tensor = [&](TensorId t) -> const Tensor& { return graph.tensor(t); };
  if (node.inputs.empty() || node.outputs.empty()) return 0;
  switch (node.op) {
    case OpType::cross_entropy:
    case OpType::cross_entropy_backward: return tensor(node.inputs[0]).bytes();
    case OpType::max_pool2d: return 8 * static_cast<double>(tensor(node.outputs[0]).elements());
    case OpType::attention: {
      const Tensor& y = tensor(node.outputs[0]);
      const std::int64_t width = y.shape.empty() ? 1 : std::max<std::int64_t>(y.shape.back(), 1);
      const std::int64_t rows = y.elements() / width;
      return 4 * static_cast<double>(rows);
    }
    case OpType::layer_norm: {
      const Tensor& x = tensor(node.inputs[0]);
      const double columns = node.inputs.size() > 1 ? static_cast<double>(tensor(node.inputs[1]).elements()) : 1;
      return columns > 1 ? 8 * static_cast<double>(x.elements()) / columns : 0;
    }
    case OpType::fused_norm: {
      const auto columns = static_cast<double>(node.attributes.integer("cols", 1));
      const std::string functions = "," + node.attributes.word("functions", "") + ",";
      const bool saves = columns > 1 && functions.find(",layer_norm,") != std::string::npos;
      return saves ? 8 * static_cast<double>(tensor(node.outputs[0]).elements()) / columns : 0;
    }
    case OpType::rnn:
    case OpType::lstm:
    case OpType::gru: return recurrent_reserve(graph, node);
    default: return 0;
  }
}

/// Bytes alive at each node, from intervals, in linear time.
class Timeline {
 public:
  explicit Timeline(std::size_t nodes) : change_(nodes + 1, 0) {}

  void live(std::size_t first, std::size_t last, std::int64_t bytes) {
    change_[first] += bytes;
    change_[last + 1] -= bytes;
    add_to(allocated_, bytes);
  }

  std::int64_t peak() const {
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (const std::int64_t c : change_) most = std::max(most, now += c);
    return most;
  }

 private:
  std::vector<std::int64_t> change_;
  std::int64_t allocated_ = 0;
};

bool persists(TensorRole role) {
  return role == TensorRole::parameter || role == TensorRole::buffer || role == TensorRole::parameter_gradient ||
         role == TensorRole::optimizer_state;
}

std::int64_t peak_activations(const OpGraph& graph) {
  const auto tensors = graph.tensors();
  const auto nodes = graph.nodes();
  if (nodes.empty()) return 0;
  const std::vector<TensorId> storage = storages(graph);
  constexpr std::size_t kNever = SIZE_MAX;
  std::vector<std::size_t> first(tensors.size(), kNever);
  std::vector<std::size_t> last(tensors.size(), 0);
  const auto use = [&](TensorId t, std::size_t when) {
    const TensorId s = storage[t];
    first[s] = std::min(first[s], when);
    last[s] = std::max(last[s], when);
  };
  std::vector<std::size_t> saved_until(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const TensorId t : nodes[n].inputs) use(t, n);
    for (const TensorId t : nodes[n].outputs) use(t, n);
    saved_until[n] = n;
    if (nodes[n].forward_of < n) saved_until[nodes[n].forward_of] = n;
  }
  const std::size_t end = nodes.size() - 1;
  for (const TensorId t : graph.outputs) use(t, end);
  if (graph.loss < tensors.size()) use(graph.loss, end);

  Timeline timeline(nodes.size());
  for (TensorId t = 0; t < tensors.size(); ++t) {
    if (storage[t] != t || first[t] == kNever || persists(tensors[t].role)) continue;
    const bool given = tensors[t].role == TensorRole::input;  // The caller holds it for the whole step.
    timeline.live(given ? 0 : first[t], given ? end : last[t], to_blocks(tensors[t].bytes()));
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const double bytes = saved_beside(graph, nodes[n]);
    if (bytes > 0) timeline.live(n, saved_until[n], to_blocks(bytes));
  }
  return timeline.peak();
}

}  // namespace

MemoryPlan plan_memory(const OpGraph& graph) {
  MemoryPlan plan;
  for (const Tensor& tensor : graph.tensors()) {
    if (!persists(tensor.role)) continue;
    const std::int64_t bytes = to_blocks(tensor.bytes());
    if (tensor.role == TensorRole::parameter) add_to(plan.weights, bytes);
    if (tensor.role == TensorRole::parameter_gradient) add_to(plan.gradients, bytes);
    if (tensor.role == TensorRole::optimizer_state) add_to(plan.optimizer_state, bytes);
    if (tensor.role == TensorRole::buffer)
      add_to(tensor.name.starts_with("kv_cache") ? plan.kv_cache : plan.weights, bytes);
  }
  for (const Node& node : graph.nodes()) {
    if (node.op == OpType::optimizer_step)
      add_to(plan.optimizer_state, to_blocks(node.attributes.number("state_bytes", 0)));
  }
  plan.activations = peak_activations(graph);
  return plan;
}

}  // namespace voltaic::graph
