// SPDX-License-Identifier: MIT
// The experts' block of a serving stack: rows sorted by expert, two grouped products with an activation between, rows
// summed back. Eager frameworks run the graph's own operations instead (lower_matrix.cpp, lower_embedding.cpp).
#pragma once

#include <vector>

#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

/// One block on one GPU; `math` of two bytes.
struct ExpertBlock {
  RoutedTokens tokens;
  std::int64_t hidden = 1;
  std::int64_t inner = 1;  ///< Of this GPU's share.
  DataType math = DataType::bf16;
  double weight_bytes = 2;  ///< Per element, scales included.
  std::string stack;
};
std::vector<Launch> expert_launches(const ExpertBlock& block);

/// Nodes of a graph as parts of such a block; true when `node` is one. Gate and up are a node each in the graph and get
/// half of the kernel that computes both.
bool lower_experts(const graph::OpGraph& graph, const graph::Node& node, const Target& target, Lowered& out);

}  // namespace voltaic::kernel
