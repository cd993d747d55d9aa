// SPDX-License-Identifier: MIT
#include <unordered_map>

#include "sim/report/study_rows.hpp"

namespace voltaic::report {

WorkloadView view_workload(const graph::OpGraph& graph) {
  WorkloadView view;
  view.name = graph.name;
  view.parameters = graph::parameter_count(graph);
  view.parameters_active_per_token = view.parameters;
  std::unordered_map<std::string_view, std::size_t> index;
  std::vector<bool> counted(graph.tensors().size(), false);
  for (const graph::Node& node : graph.nodes()) {
    const std::string_view name = node.layer.empty() ? node.id : node.layer;
    const auto [at, fresh] = index.try_emplace(name, view.layers.size());
    if (fresh) {
      view.layers.emplace_back();
      view.layers.back().id = name;
      view.layers.back().op = graph::to_string(node.op);
    }
    WorkloadLayer& layer = view.layers[at->second];
    if (layer.op != graph::to_string(node.op)) layer.op = "block";
    if (!node.outputs.empty()) layer.output_shape = graph::to_string(graph.tensor(node.outputs.front()).shape);
    for (const graph::TensorId id : node.inputs) {
      const graph::Tensor& t = graph.tensor(id);
      if (t.role != graph::TensorRole::parameter || counted[id]) continue;
      counted[id] = true;  // a parameter that two layers share belongs to the first
      layer.parameters += t.elements();
    }
    const graph::OpCount work = graph::count(graph, node);
    layer.mac += work.mac;
    view.mac += work.mac;
    layer.flop = 2 * layer.mac;
  }
  view.flop = 2 * view.mac;
  return view;
}

}  // namespace voltaic::report
