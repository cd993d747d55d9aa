// SPDX-License-Identifier: MIT
// Which parameters are weights of products alone, so that they may be stored as the product wants them.
#pragma once

#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph::detail {

/// What one input of a node asks of the tensor's storage.
enum class Use : std::uint8_t {
  multiplied,   ///< The operand of a product.
  indifferent,  ///< Reads any type.
  kept,         ///< Needs the tensor as it is.
};

/// Dense layers read their second operand as weights; all else needs its tensors as they are.
Use use_of_weights(const Node& node, std::size_t input);

/// By tensor: true for parameters that products multiply and nothing needs as they are, and for views of such.
std::vector<bool> multiplied_weights(const OpGraph& graph, Use (*use)(const Node& node, std::size_t input));
void store_weights_as(OpGraph& graph, DataType type, const std::vector<bool>& weights);

/// Rows of the right operand of a product: k.
std::int64_t inner_size(const OpGraph& graph, const Node& node);

}  // namespace voltaic::graph::detail
