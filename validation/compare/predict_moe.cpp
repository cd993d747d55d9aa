// SPDX-License-Identifier: MIT
// The experts' block of one GPU: rows gathered by expert, two grouped products with a gate between, rows summed back.
#include <algorithm>
#include <cmath>

#include "sim/graph/op_graph.hpp"
#include "validation/compare/predict_stack.hpp"

namespace voltaic::validation {
namespace {

using graph::OpType;
using graph::TensorId;

/// What routing leaves on the busiest GPU of a group that shares the experts.
struct Routed {
  double rows = 0;     ///< Pairs of token and expert.
  double reached = 0;  ///< Experts with any row.
};

/// Balanced routing fills distinct experts first. A power law gives expert i the share i^-a of the pairs; the busiest
/// GPU has the most popular one and an even sample of the rest.
Routed route(const MoeCall& c) {
  const double gpus = static_cast<double>(c.expert_parallel);
  const double pairs = static_cast<double>(c.tokens) * static_cast<double>(c.top_k);
  const double local = static_cast<double>(c.experts) / gpus;
  if (!(c.skew > 0)) return {pairs / gpus, std::min(local, std::max(1.0, pairs / gpus))};
  constexpr std::int64_t kMostShares = 1 << 16;
  const std::int64_t experts = std::min(c.experts, kMostShares);
  double sum = 0;
  for (std::int64_t i = 1; i <= experts; ++i) sum += std::pow(static_cast<double>(i), -c.skew);
  Routed out;
  const std::int64_t stride = std::max<std::int64_t>(1, std::min(c.expert_parallel, experts));
  for (std::int64_t i = 1; i <= experts; i += stride) {
    // No token takes an expert twice.
    const double share = std::min(1.0, static_cast<double>(c.top_k) * std::pow(static_cast<double>(i), -c.skew) / sum);
    out.rows += share * static_cast<double>(c.tokens);
    out.reached += 1 - std::pow(1 - share, static_cast<double>(c.tokens));
  }
  out.reached = std::clamp(out.reached, 1.0, local);
  return out;
}

class Block {
 public:
  Block(const MoeCall& call, const kernel::Target& target) : call_(call), target_(target) {}

  std::vector<kernel::Launch> lower() {
    const MoeCall& c = call_;
    const Routed routed = route(c);
    const auto experts = std::max<std::int64_t>(1, std::llround(routed.reached));
    const auto slots = std::max<std::int64_t>(1, std::llround(std::ceil(routed.rows / static_cast<double>(experts))));
    const std::int64_t inner = std::max<std::int64_t>(1, c.inner / c.tensor_parallel);
    const TensorId x = tensor({c.tokens, c.hidden}, c.math);
    const TensorId index = tensor({c.tokens, c.top_k}, DataType::int64);
    const TensorId weight = tensor({c.tokens, c.top_k}, c.math);
    const TensorId sent = add(OpType::moe_dispatch, {x, index}, {experts, slots, c.hidden});
    const TensorId gate = add(OpType::grouped_linear, {sent, parameter({experts, inner, c.hidden})}, {experts, slots, inner});
    const TensorId up = add(OpType::grouped_linear, {sent, parameter({experts, inner, c.hidden})}, {experts, slots, inner});
    const TensorId gated = add(OpType::silu_mul, {gate, up}, {experts, slots, inner});
    const TensorId down =
        add(OpType::grouped_linear, {gated, parameter({experts, c.hidden, inner})}, {experts, slots, c.hidden});
    add(OpType::moe_combine, {down, index, weight}, {c.tokens, c.hidden});
    std::vector<kernel::Launch> out;
    for (graph::NodeId id = 0; id < graph_.nodes().size(); ++id) {
      auto lowered = kernel::lower(graph_, graph_.node(id), target_);
      out.insert(out.end(), lowered.launches.begin(), lowered.launches.end());
    }
    return out;
  }

 private:
  TensorId tensor(graph::Shape shape, DataType type) {
    graph::Tensor t;
    t.name = "t" + std::to_string(tensors_++);
    t.shape = std::move(shape);
    t.dtype = type;
    return graph_.add_tensor(t);
  }
  TensorId parameter(graph::Shape shape) { return tensor(std::move(shape), call_.weights); }
  TensorId add(OpType op, std::vector<TensorId> inputs, graph::Shape shape) {
    graph::Node node;
    node.id = "n" + std::to_string(tensors_);
    node.op = op;
    node.compute = call_.math;
    node.inputs = std::move(inputs);
    node.outputs = {tensor(std::move(shape), call_.math)};
    graph_.add_node(node);
    return node.outputs.front();
  }

  const MoeCall& call_;
  const kernel::Target& target_;
  graph::OpGraph graph_;
  int tensors_ = 0;
};

}  // namespace

std::vector<kernel::Launch> lower_moe(const MoeCall& call, const kernel::Target& target) {
  return Block(call, target).lower();
}

}  // namespace voltaic::validation
