// SPDX-License-Identifier: MIT
// Reductions, scans and selections.
#include <algorithm>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::OpType;

/// Radix selection reads each row once per two bits of its key [ATEN]; all but the first find it in cache.
Launch selection(const graph::Tensor& x, std::int64_t rows, std::int64_t cols, double written) {
  const double bits = info(x.dtype).bits;
  const vector::Pass pass{static_cast<double>(x.elements()), x.bytes(), written, 1, bytes_per_element(x.dtype)};
  Launch launch = vector::rowwise("gatherTopK", VectorKind::softmax_block, rows, cols,
                                  static_cast<int>(std::clamp<std::int64_t>((cols + 31) / 32 * 32, 32, 1024)), pass);
  launch.family = "reduction";
  std::get<VectorKernel>(launch.detail).reread_bytes = bits / 2 * x.bytes();
  return launch;
}

}  // namespace

Lowered lower_reduction(const graph::OpGraph& graph, const graph::Node& node, const Target&) {
  Lowered out;
  out.host = HostClass::pointwise;
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const double element = bytes_per_element(x.dtype);
  const double read = vector::stored_bytes(graph, node.inputs.front());
  double written = 0;
  for (const auto id : node.outputs) written += graph.tensor(id).bytes();
  const std::int64_t results = graph.tensor(node.outputs.front()).elements();
  if (node.op == OpType::cumsum || node.op == OpType::topk) {
    const std::int64_t cols =
        x.shape.empty() ? 1
                        : x.shape[vector::axis_of(node.op == OpType::topk ? -1 : node.attributes.integer("axis", -1),
                                                  x.shape.size())];
    const std::int64_t rows = cols > 0 ? x.elements() / cols : 0;
    if (node.op == OpType::topk) {
      vector::push(out.launches, selection(x, rows, cols, written));
    } else {
      const vector::Pass pass{static_cast<double>(x.elements()), read, written, 1, element};
      vector::push(out.launches,
                   vector::rowwise("tensor_kernel_scan_innermost_dim", VectorKind::reduction, rows, cols, 512, pass));
    }
    return out;
  }
  const std::int64_t cols = results > 0 ? x.elements() / results : 0;
  vector::push(out.launches, vector::reduce(results, cols, read, written, element));
  return out;
}

}  // namespace voltaic::kernel
