// SPDX-License-Identifier: MIT
// Networks over the nodes of a graph.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> graph_models() {
  return {};
}

}  // namespace voltaic::workloads
