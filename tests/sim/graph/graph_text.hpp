// SPDX-License-Identifier: MIT
// Graph files as the reader's tests write them.
#pragma once

#include <string>

#include "sim/graph/reader.hpp"

namespace voltaic::graph::testing {

/// The example of the README's format section.
inline const std::string kMlp = R"({ "schema": "voltaic.graph/1", "name": "tiny-mlp", "dims": {"batch": 32},
  "inputs":     [{"name": "x", "shape": ["batch", 784], "dtype": "fp32"}],
  "parameters": [{"name": "w1", "shape": [784, 4096]}, {"name": "b1", "shape": [4096]}],
  "nodes":      [{"id": "fc1", "op": "linear", "inputs": ["x", "w1", "b1"], "outputs": ["h"], "attributes": {}},
                 {"id": "act", "op": "relu", "inputs": ["h"], "outputs": ["y"]}],
  "outputs":    ["y"], "loss": null })";

/// A file with these nodes over x[batch, 8], w[8, 8] and ids[batch] of int64, with dims batch = 4 and seq = 3.
inline std::string with_nodes(const std::string& nodes, const std::string& tail = "") {
  return R"({"schema": "voltaic.graph/1", "dims": {"batch": 4, "seq": 3},
    "inputs": [{"name": "x", "shape": ["batch", 8]}, {"name": "ids", "shape": ["batch"], "dtype": "int64"}],
    "parameters": [{"name": "w", "shape": [8, 8]}],
    "nodes": [)" +
         nodes + "]" + tail + "}";
}

/// The refusal of `text`, or "accepted".
inline std::string refusal(const std::string& text, const DimValues& dims = {}) {
  try {
    read_graph(text, "net.json", dims);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace voltaic::graph::testing
