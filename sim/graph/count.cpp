// SPDX-License-Identifier: MIT
#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

std::int64_t parameter_count(const OpGraph& graph) {
  std::int64_t total = 0;
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.role == TensorRole::parameter) total += tensor.elements();
  }
  return total;
}

OpCount count(const OpGraph&, const Node&) { return {}; }

}  // namespace voltaic::graph
