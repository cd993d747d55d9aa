// SPDX-License-Identifier: MIT
// Dropout: Philox numbers make it arithmetic-heavy for a pointwise kernel; the mask is one byte per element.
#include <algorithm>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

Lowered lower_random(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::other;
  vector::Pass pass = vector::pass_of(graph, node);
  if (node.op == graph::OpType::dropout_backward) {
    Launch launch = vector::elementwise("mul", pass);
    launch.name = "masked_scale_kernel";
    launch.family = "dropout";
    vector::push(out.launches, std::move(launch));
    return out;
  }
  // Without a probability the framework returns its input.
  if (!(node.attributes.number("p", 0.1) > 0)) {
    out.host = HostClass::view;
    return out;
  }
  Launch launch = vector::elementwise("", pass, VectorKind::dropout);
  launch.name = "fused_dropout_kernel_vec<4>";
  // The grid is capped at what the SMs hold; each thread walks on in strides [ATEN].
  launch.cta.threads = 256;
  const std::int64_t most = target.gpu.sm.count * (target.gpu.sm.max_warps * 32 / 256);
  launch.grid[0] = std::min<std::int64_t>((launch.grid[0] + 1) / 2, std::max<std::int64_t>(most, 1));
  vector::push(out.launches, std::move(launch));
  return out;
}

}  // namespace voltaic::kernel
