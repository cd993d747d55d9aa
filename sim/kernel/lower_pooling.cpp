// SPDX-License-Identifier: MIT
// Pooling and resizing: windows overlap in cache, so each byte comes from memory once.
#include <algorithm>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpType;

std::int64_t window_of(const Node& node) {
  const auto kernel = node.attributes.integers("kernel");
  if (kernel.empty()) {
    const std::int64_t side = std::max<std::int64_t>(node.attributes.integer("kernel", 1), 1);
    return side * side;
  }
  std::int64_t window = 1;
  for (const auto side : kernel) window *= std::max<std::int64_t>(side, 1);
  return kernel.size() == 1 ? window * window : window;
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
    case OpType::max_pool2d:
      // The position of each maximum is kept as a 64-bit integer [ATEN].
      if (indices) pass.written += 8 * y_elements;
      vector::push(out.launches, windowed("max_pool_forward_nchw", pass, window_of(node)));
      break;
    case OpType::avg_pool2d:
      vector::push(out.launches, windowed("avg_pool2d_out_cuda_frame", pass, window_of(node)));
      break;
    case OpType::pool_backward: {
      const bool maximum = node.attributes.word("of", "max_pool2d") == "max_pool2d";
      // The gradient of a maximum reads positions, not the input.
      if (maximum)
        pass.read = x.bytes() + 8 * static_cast<double>(x.elements());
      else
        pass.read = x.bytes();
      vector::push(out.launches,
                   windowed(maximum ? "max_pool_backward_nchw" : "avg_pool2d_backward_out_cuda_frame", pass, 4));
      break;
    }
    case OpType::resize_backward:
      pass.read = x.bytes();
      vector::push(out.launches, windowed("upsample_backward_out_frame", pass, 4));
      break;
    default: vector::push(out.launches, windowed("upsample_out_frame", pass, 4)); break;
  }
  return out;
}

}  // namespace voltaic::kernel
