// SPDX-License-Identifier: MIT
// Pooling and resizing: windows overlap in cache, so each byte comes from memory once.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpType;

bool is_maximum(OpType op) {
  return op == OpType::max_pool1d || op == OpType::max_pool2d || op == OpType::max_pool3d;
}

/// Of the forward operation.
int dims_of(OpType op) {
  if (op == OpType::max_pool1d || op == OpType::avg_pool1d) return 1;
  return op == OpType::max_pool3d || op == OpType::avg_pool3d ? 3 : 2;
}

/// Elements of a window, held where a tensor could still have as many.
std::int64_t window_of(const Node& node, int dims) {
  std::vector<std::int64_t> kernel = node.attributes.integers("kernel");
  if (kernel.size() == 1) kernel.resize(static_cast<std::size_t>(dims), kernel.front());
  double window = 1;
  for (const auto side : kernel) window *= static_cast<double>(std::max<std::int64_t>(side, 1));
  return static_cast<std::int64_t>(std::min(window, 0x1p62));
}

/// One thread per element of the result, which visits `window` elements.
Launch windowed(std::string name, const vector::Pass& pass, std::int64_t window) {
  Launch launch = vector::elementwise("", pass, VectorKind::pooling);
  launch.name = std::move(name);
  launch.cta.threads = 256;
  launch.grid[0] *= 2;
  std::get<VectorKernel>(launch.detail).cols = window;
  launch.work.other_flop = pass.elements;
  return launch;
}

/// The gradient of a maximum reads positions, not the input. In three dims it adds to zeroes.
void pool_backward(const graph::OpGraph& graph, const Node& node, vector::Pass pass, Lowered& out) {
  const graph::Tensor& dy = graph.tensor(node.inputs.front());
  const OpType of = graph::parse_op(node.attributes.word("of", "max_pool2d")).value_or(OpType::max_pool2d);
  const bool maximum = is_maximum(of);
  const bool volume = dims_of(of) == 3;
  pass.read = dy.bytes() + (maximum ? 8 * static_cast<double>(dy.elements()) : 0);
  constexpr std::int64_t kWindowsPerElement = 4;
  if (volume) vector::push(out.launches, vector::fill(pass.written, pass.element_bytes));
  vector::push(
      out.launches,
      windowed(maximum ? (volume ? "max_pool3d_with_indices_backward_single_out_frame" : "max_pool_backward_nchw")
                       : (volume ? "avg_pool3d_single_backward_out_frame" : "avg_pool2d_backward_out_cuda_frame"),
               pass, kWindowsPerElement));
}

}  // namespace

Lowered lower_pooling(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::pointwise;
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  vector::Pass pass = vector::pass_of(graph, node);
  const double y_elements = pass.elements;
  const bool indices = target.framework != Framework::tensorrt;
  switch (node.op) {
    case OpType::global_avg_pool2d: {
      const auto results = static_cast<std::int64_t>(y_elements);
      vector::push(out.launches, vector::reduce(results, results > 0 ? x.elements() / results : 0, pass.read,
                                                pass.written, pass.element_bytes));
      break;
    }
    case OpType::max_pool1d:  // One row of an image [ATEN].
    case OpType::max_pool2d:
    case OpType::max_pool3d:
      // The position of each maximum is kept as a 64-bit integer [ATEN].
      if (indices) pass.written += 8 * y_elements;
      vector::push(out.launches, windowed(node.op == OpType::max_pool3d ? "max_pool3d_with_indices_single_out_frame"
                                                                        : "max_pool_forward_nchw",
                                          pass, window_of(node, dims_of(node.op))));
      break;
    case OpType::avg_pool1d:
    case OpType::avg_pool2d:
    case OpType::avg_pool3d:
      vector::push(out.launches, windowed(node.op == OpType::avg_pool3d ? "avg_pool3d_cuda_update_output"
                                                                        : "avg_pool2d_out_cuda_frame",
                                          pass, window_of(node, dims_of(node.op))));
      break;
    case OpType::pool_backward: pool_backward(graph, node, pass, out); break;
    case OpType::resize_backward:
      pass.read = x.bytes();
      if (node.attributes.word("mode", "nearest") != "nearest") {  // Added to by several results: cleared first.
        vector::push(out.launches, vector::fill(pass.written, pass.element_bytes));
      }
      vector::push(out.launches, windowed("upsample_backward_out_frame", pass, 4));
      break;
    default: vector::push(out.launches, windowed("upsample_out_frame", pass, 4)); break;
  }
  return out;
}

}  // namespace voltaic::kernel
