// SPDX-License-Identifier: MIT
// What inference engines do to a graph before they choose kernels, beside fusing pointwise chains (passes.hpp).
#pragma once

#include <cstdint>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

/// Scales of activations are known when an engine is built, so a tensor that a one-byte product reads is written in
/// that type by whoever makes it, and everything else reads it so: its quantising `cast` goes away. Dense layers that
/// multiply in one byte write it too where only norms, pointwise operations, attention and such products read them.
/// Comes after assign_precision(). Returns how many nodes disappeared.
std::int64_t keep_quantised(OpGraph& graph);

/// Dense layers of one layer of the network that multiply the same tensor alike (query, key and value; gate and up)
/// become one product over weights laid side by side, whose results are views (`split`). Weights must be parameters
/// that nothing else reads. Returns how many products disappeared.
std::int64_t join_linears(OpGraph& graph);

/// An activation that alone reads a dense layer or a convolution runs in the product's epilogue: attribute `epilogue`
/// of it. `gelu`: whether epilogues compute that too, which engines have from Turing on. A residual that is added to a
/// convolution first joins as its last input (attribute `residual`). Returns how many nodes disappeared.
std::int64_t fuse_epilogues(OpGraph& graph, bool gelu = true);

}  // namespace voltaic::graph
