// SPDX-License-Identifier: MIT
// Passes that insert or merge nodes move a graph into a new one, node by node; tensors keep their ids.
#pragma once

#include <utility>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph::detail {

/// Name, outputs, loss and (moved) tensors of `old`, producers cleared; the nodes of `old` stay for the caller to move.
inline OpGraph without_nodes(OpGraph& old) {
  OpGraph fresh;
  fresh.name = old.name;
  fresh.outputs = old.outputs;
  fresh.loss = old.loss;
  for (TensorId t = 0; t < old.tensors().size(); ++t) {
    Tensor tensor = std::move(old.tensor(t));
    tensor.producer = kNoNode;
    fresh.add_tensor(std::move(tensor));
  }
  return fresh;
}

}  // namespace voltaic::graph::detail
