// SPDX-License-Identifier: MIT
// Differentiates a workload and says which parameters got a gradient.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/graph/passes.hpp"
#include "workloads/builder.hpp"

namespace voltaic::workloads::test {

/// Names of trained parameters that backward leaves without a gradient, but for tables that the backward kernel of
/// their lookup updates in place.
inline std::vector<std::string> untrained(Workload workload) {
  std::set<std::string> trained;
  for (const auto& node : workload.graph.nodes()) {
    if (!node.attributes.flag("fused_update")) continue;
    trained.insert(workload.graph.tensor(node.inputs[1]).name + ".grad");
  }
  graph::append_backward(workload.graph);
  std::vector<std::string> missing;
  for (const auto& tensor : workload.graph.tensors()) {
    if (tensor.role == graph::TensorRole::parameter_gradient) trained.insert(tensor.name);
  }
  for (const auto& tensor : workload.graph.tensors()) {
    const bool parameter = tensor.role == graph::TensorRole::parameter && tensor.trainable;
    if (parameter && !trained.contains(tensor.name + ".grad")) missing.push_back(tensor.name);
  }
  return missing;
}

}  // namespace voltaic::workloads::test
