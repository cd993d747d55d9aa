// SPDX-License-Identifier: MIT
// What a compiler's generated kernel does: the functions of a fused node, the rows it reduces, the bytes it moves.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

/// Frameworks that generate kernels of their own.
bool generates_kernels(Framework framework);
/// Whether it also generates norms and softmax, with the chains around them: XLA leaves reductions to kernels of their
/// own [XLA].
bool generates_rows(Framework framework);

/// A node as one generated kernel; plain softmax and norm nodes are kernels of one function.
struct FusedKernel {
  std::vector<std::string_view> functions;  ///< In program order, as static names.
  std::vector<std::string_view> pointwise;  ///< Those beside the reduction.
  graph::OpType reduction{};                ///< Of a row kernel.
  std::int64_t rows = 0, cols = 1;          ///< Of a row kernel.
  vector::Pass pass;                        ///< Each operand once; at most one element of it per result.
  double row_bytes = 0;                     ///< Full-size operands that the reduction reads.

  /// Rows of up to 1024 columns stay in the registers of their CTA; longer ones are read again for each pass.
  bool held() const { return cols <= 1024; }
};
FusedKernel fused_pointwise_kernel(const graph::OpGraph& graph, const graph::Node& node);
FusedKernel row_kernel(const graph::OpGraph& graph, const graph::Node& node, graph::OpType reduction,
                       std::int64_t cols);
/// Of a `fused_softmax` or `fused_norm` node.
FusedKernel fused_row_kernel(const graph::OpGraph& graph, const graph::Node& node);

/// Names `launch` as the compiler would and gives it the arithmetic of all functions.
void finish_generated(Launch& launch, const FusedKernel& kernel, const graph::OpGraph& graph, const graph::Node& node,
                      const Target& target);

}  // namespace voltaic::kernel
