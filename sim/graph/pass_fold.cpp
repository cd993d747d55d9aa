// SPDX-License-Identifier: MIT
// Batch norms with known statistics are a scale and a shift per channel, which the convolution before them takes in.
#include <algorithm>
#include <utility>

#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

bool is_forward_convolution(OpType op) {
  return family(op) == OpFamily::convolution && op != OpType::conv_dgrad && op != OpType::conv_wgrad;
}

bool is_result(const OpGraph& graph, TensorId t) {
  return t == graph.loss || std::find(graph.outputs.begin(), graph.outputs.end(), t) != graph.outputs.end();
}

/// Through casts, which mixed precision puts between a parameter and its reader.
TensorId stored(const OpGraph& graph, TensorId t) {
  while (graph.tensor(t).producer != kNoNode && graph.node(graph.tensor(t).producer).op == OpType::cast) {
    t = graph.node(graph.tensor(t).producer).inputs.at(0);
  }
  return t;
}

}  // namespace

std::int64_t fold_batch_norms(OpGraph& graph) {
  constexpr std::size_t kBias = 2;
  const auto readers = graph.consumers();
  std::vector<bool> dropped(graph.nodes().size(), false);
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const Node& norm = graph.node(n);
    if (norm.op != OpType::batch_norm || norm.attributes.flag("training") || norm.inputs.size() <= kBias) continue;
    const TensorId between = norm.inputs.front();
    const NodeId maker = graph.tensor(between).producer;
    if (maker == kNoNode || readers[between].size() != 1 || is_result(graph, between)) continue;
    Node& conv = graph.node(maker);
    if (!is_forward_convolution(conv.op) || conv.phase != norm.phase || conv.outputs.size() != 1) continue;
    if (conv.inputs.size() == kBias) conv.inputs.push_back(norm.inputs[kBias]);
    // Scale, mean and variance are nowhere in a compiled network.
    for (std::size_t i = 1; i < norm.inputs.size(); ++i) {
      const TensorId t = stored(graph, norm.inputs[i]);
      if (i != kBias && readers[t].size() == 1) graph.tensor(t).shape = {0};
    }
    conv.outputs[0] = norm.outputs[0];
    conv.extra_host_calls += norm.extra_host_calls;
    dropped[n] = true;
  }
  return detail::drop_nodes(graph, dropped, [](Node&) {});
}

}  // namespace voltaic::graph
