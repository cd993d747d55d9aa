// SPDX-License-Identifier: MIT
// Shape and type inference: what an operation gives from what it is given.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

struct TensorType {
  Shape shape;
  DataType dtype = DataType::fp32;
};

/// Thrown by rules; callers add file and place. The text reads "expected X, got Y".
struct ShapeError : std::runtime_error {
  explicit ShapeError(const std::string& problem, std::string where = {})
      : std::runtime_error(problem), place(std::move(where)) {}
  std::string place;  ///< Below the node, as a JSON pointer without its first slash: "inputs/1", "attributes/axis"; may
                      ///< be empty.
};

/// Types of the outputs of `op` for these inputs and attributes. Throws ShapeError.
/// Zero-size dimensions are legal; element counts above 2^62 are refused.
std::vector<TensorType> infer(OpType op, const Attributes& attributes, std::span<const TensorType> inputs);

/// Numpy-style broadcast of two shapes; throws ShapeError.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace voltaic::graph
