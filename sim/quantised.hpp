// SPDX-License-Identifier: MIT
// What requests for quantised or sparse weights take for granted, and what became of the weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/simulator.hpp"

namespace voltaic {

/// The precision that an inference engine runs when it is asked for `precision`: where only CUDA cores multiply int8
/// and tensor cores multiply fp16, it finds its fp16 kernels faster.
graph::Precision engine_precision(const arch::GpuSpec& gpu, graph::Precision precision);

/// Sentences for `assumptions`: how weights and activations are stored and converted. `engine`: the GPU of an inference
/// engine; null for other frameworks.
std::vector<std::string> storage_assumptions(graph::Precision precision, bool sparsity,
                                             const arch::GpuSpec* engine = nullptr);

/// True where `node` multiplies weights that are stored 2:4 sparse.
bool has_sparse_weight(const graph::OpGraph& graph, const graph::Node& node);

/// Attribute `dense` of products that an inference engine runs on dense kernels because those are as fast.
inline constexpr std::string_view kDenseIsAsFast = "the dense kernel is as fast";

/// Weights that a priced step multiplies by dense kernels alone are stored dense: takes their mark away and notes the
/// reason on the node.
void store_unused_sparsity_dense(report::Prediction& prediction);

}  // namespace voltaic
