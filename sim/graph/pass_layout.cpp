// SPDX-License-Identifier: MIT
// Where tensors lie: channels last for convolutions, inputs in host memory until they are copied.
#include <string>
#include <utility>

#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {

void set_channels_last(OpGraph& graph) {
  constexpr std::size_t kTwoSpatialDims = 4;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    Node& node = graph.node(n);
    if (family(node.op) != OpFamily::convolution || node.inputs.empty()) continue;
    if (graph.tensor(node.inputs.front()).shape.size() < kTwoSpatialDims) continue;
    node.attributes.set("channels_last", std::int64_t{1});
  }
}

void copy_inputs(OpGraph& graph, bool pinned) {
  if (graph.nodes().empty()) return;
  const std::size_t given = graph.tensors().size();
  std::vector<TensorId> on_device(given, UINT32_MAX);
  std::vector<Node> copies;
  for (TensorId t = 0; t < given; ++t) {
    if (graph.tensor(t).role != TensorRole::input) continue;
    Tensor copy = graph.tensor(t);
    copy.role = TensorRole::activation;
    copy.name += ".device";
    Node node;
    node.id = copy.name;
    node.op = OpType::host_to_device;
    node.layer = "input";
    node.inputs = {t};
    node.attributes.set("pinned", std::int64_t{pinned ? 1 : 0});
    on_device[t] = graph.add_tensor(std::move(copy));
    node.outputs = {on_device[t]};
    copies.push_back(std::move(node));
  }
  const auto rewire = [&](Node& node) {
    for (TensorId& t : node.inputs) {
      if (t < given && on_device[t] != UINT32_MAX) t = on_device[t];
    }
  };
  const auto insert = [&](NodeId at, OpGraph& fresh) {
    if (at != 0) return;
    for (Node& node : copies) fresh.add_node(std::move(node));
  };
  detail::drop_nodes(graph, std::vector<bool>(graph.nodes().size(), false), rewire, insert);
}

}  // namespace voltaic::graph
