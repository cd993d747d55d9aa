// SPDX-License-Identifier: MIT
#include "sim/graph/detail/weights.hpp"

#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace detail {

Use use_of_weights(const Node& node, std::size_t input) {
  return family(node.op) == OpFamily::matrix && input == 1 ? Use::multiplied : Use::kept;
}

std::vector<bool> multiplied_weights(const OpGraph& graph, Use (*use)(const Node& node, std::size_t input)) {
  std::vector<bool> multiplied(graph.tensors().size(), false);
  std::vector<bool> kept(graph.tensors().size(), false);
  const auto nodes = graph.nodes();
  for (std::size_t n = nodes.size(); n-- > 0;) {  // backwards: a view's uses are known before its source is met
    const Node& node = nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId in = node.inputs[i];
      if (family(node.op) == OpFamily::view) {
        for (const TensorId out : node.outputs) {
          multiplied[in] = multiplied[in] || multiplied[out];
          kept[in] = kept[in] || kept[out] || !multiplied[out];
        }
      } else {
        const Use how = use(node, i);
        multiplied[in] = multiplied[in] || how == Use::multiplied;
        kept[in] = kept[in] || how == Use::kept;
      }
    }
  }
  std::vector<bool> weights(graph.tensors().size(), false);
  for (TensorId t = 0; t < graph.tensors().size(); ++t) {
    weights[t] = graph.tensor(t).role == TensorRole::parameter && multiplied[t] && !kept[t];
  }
  for (const Node& node : nodes) {
    if (family(node.op) != OpFamily::view || node.inputs.empty() || !weights[node.inputs[0]]) continue;
    for (const TensorId out : node.outputs) weights[out] = true;
  }
  return weights;
}

void store_weights_as(OpGraph& graph, DataType type, const std::vector<bool>& weights) {
  for (TensorId t = 0; t < weights.size(); ++t) {
    if (weights[t] && is_floating(graph.tensor(t).dtype)) graph.tensor(t).dtype = type;
  }
}

std::int64_t inner_size(const OpGraph& graph, const Node& node) {
  const Shape& a = graph.tensor(node.inputs.at(0)).shape;
  const bool transposed = node.op == OpType::matmul && node.attributes.flag("transpose_a");
  if (a.size() < (transposed ? 2U : 1U)) return 1;
  return a[a.size() - (transposed ? 2 : 1)];
}

}  // namespace detail

std::optional<TensorId> weight_of(const OpGraph& graph, const Node& node) {
  if (family(node.op) != OpFamily::matrix || node.inputs.size() < 2) return std::nullopt;
  TensorId t = node.inputs[1];
  while (graph.tensor(t).producer != kNoNode) {
    const Node& maker = graph.node(graph.tensor(t).producer);
    if (family(maker.op) != OpFamily::view || maker.inputs.empty()) return std::nullopt;
    t = maker.inputs[0];
  }
  return graph.tensor(t).role == TensorRole::parameter ? std::optional(t) : std::nullopt;
}

}  // namespace voltaic::graph
