// SPDX-License-Identifier: MIT
// Writes a layer graph as a `voltaic.graph/1` file, the inverse of the reader.
#pragma once

#include <string>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

/// The graph as JSON text, one node a line, dims as integers. read_graph() of it gives the same graph again, except
/// that tensors without a producer that are neither inputs nor parameters come back as buffers.
std::string write_graph(const OpGraph& graph);

}  // namespace voltaic::graph
