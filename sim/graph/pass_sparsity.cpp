// SPDX-License-Identifier: MIT
// 2:4 sparsity: which weights the sparse tensor cores can multiply, and why the others stay dense.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/graph/detail/weights.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

/// Rules of the sparse library: 32 bytes of k at a time, and outputs in eights [cuSPARSELt].
constexpr std::int64_t kBitsOfK = 256;
constexpr std::int64_t kOutputs = 8;

bool made_by_cast(const OpGraph& graph, TensorId t) {
  while (graph.tensor(t).producer != kNoNode) {
    const Node& maker = graph.node(graph.tensor(t).producer);
    if (maker.op == OpType::cast) return graph.tensor(maker.inputs.at(0)).role == TensorRole::parameter;
    if (family(maker.op) != OpFamily::view || maker.inputs.empty()) return false;
    t = maker.inputs[0];
  }
  return false;
}

std::string shape_reason(const OpGraph& graph, const Node& node) {
  const std::int64_t k = detail::inner_size(graph, node);
  const std::int64_t n = graph.tensor(node.outputs.at(0)).shape.back();
  const std::int64_t step = kBitsOfK / info(node.compute).bits;
  if (k % step != 0) return fmt::format("unsupported shape: k = {} is no multiple of {}", k, step);
  if (n % kOutputs != 0) return fmt::format("unsupported shape: n = {} is no multiple of {}", n, kOutputs);
  return {};
}

/// Why `node` multiplies dense weights; empty where it need not.
std::string dense_reason(const OpGraph& graph, const Node& node, const std::vector<bool>& weights,
                         const SparsePaths& paths) {
  if (family(node.op) == OpFamily::convolution) return "convolutions have no 2:4 kernel here: they stay dense";
  const auto weight = weight_of(graph, node);
  if (!weight) {
    if (made_by_cast(graph, node.inputs.at(1))) return "its weights are cast in every step, from a type that is stored";
    return "not a product with weights: both operands are activations";
  }
  if (!paths[static_cast<std::size_t>(node.compute)]) {
    return fmt::format("nothing multiplies {} with sparse weights", to_string(node.compute));
  }
  if (!weights[node.inputs[1]]) return "an embedding or another operation reads the same weights";
  if (graph.tensor(*weight).shape.size() != 2) return "products grouped by expert have no 2:4 kernel";
  return shape_reason(graph, node);
}

}  // namespace

void sparsify_weights(OpGraph& graph, const SparsePaths& paths) {
  const std::vector<bool> weights = detail::multiplied_weights(graph, detail::use_of_weights);
  std::vector<NodeId> candidates;
  std::vector<bool> needed_dense(graph.tensors().size(), false);
  const auto stay_dense = [&](Node& node, std::string reason) {
    if (const auto weight = weight_of(graph, node)) needed_dense[*weight] = true;
    node.attributes.set("dense", std::move(reason));
  };
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    Node& node = graph.node(n);
    const OpFamily f = family(node.op);
    const bool product = f == OpFamily::matrix || f == OpFamily::convolution;
    if (!product || node.inputs.size() < 2 || node.outputs.empty()) continue;
    std::string reason = dense_reason(graph, node, weights, paths);
    if (reason.empty()) {
      candidates.push_back(n);
    } else {
      stay_dense(node, std::move(reason));
    }
  }
  for (const NodeId n : candidates) {
    Node& node = graph.node(n);
    const TensorId weight = *weight_of(graph, node);
    if (needed_dense[weight]) {
      node.attributes.set("dense", "another product needs the same weights dense");
      continue;
    }
    graph.tensor(weight).sparse = true;
    graph.tensor(node.inputs[1]).sparse = true;  // Where that is a view of it.
  }
}

}  // namespace voltaic::graph
