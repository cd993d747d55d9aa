// SPDX-License-Identifier: MIT
// Softmax over one axis as ATen launches it: rows of up to 1024 columns in the registers of a warp, longer ones by a
// CTA.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "sim/kernel/fused.hpp"

namespace voltaic::kernel {

namespace {

using graph::OpType;

struct Rows {
  std::int64_t rows = 0, cols = 0;
  bool inner = true;        ///< The axis is the last one.
  std::int64_t places = 1;  ///< Elements of what follows the axis.
};

Rows rows_of(const graph::Node& node, const graph::Tensor& tensor) {
  const auto& shape = tensor.shape;
  if (shape.empty()) return {1, 1, true};
  const std::size_t axis = vector::axis_of(node.attributes.integer("axis", -1), shape.size());
  const std::int64_t cols = shape[axis];
  const std::int64_t n = tensor.elements();
  std::int64_t places = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) places *= shape[d];
  return {cols > 0 ? n / cols : 0, cols, axis + 1 == shape.size(), places};
}

/// Threads of the block kernel: the largest power of two not above a quarter of the columns, halved once, 32 to 512
/// [ATEN].
int block_threads(std::int64_t cols) {
  int threads = 32;
  const std::int64_t limit = std::min<std::int64_t>(cols / 4, 1024) / 2;
  while (threads < limit) threads *= 2;
  return threads;
}

Launch warp_kernel(const Rows& r, const vector::Pass& pass, bool backward) {
  const auto log2 = std::bit_width(static_cast<std::uint64_t>(r.cols - 1));
  Launch launch = vector::rowwise(fmt::format("softmax_warp_{}<{}>", backward ? "backward" : "forward", log2),
                                  VectorKind::softmax_warp, r.rows, r.cols, 128, pass);
  // 128 threads in groups of up to 32 lanes, two rows to a group of short ones [ATEN].
  const std::int64_t lanes = std::min<std::int64_t>(std::int64_t{1} << log2, 32);
  const std::int64_t rows_per_cta = 128 / lanes * (r.cols <= 128 ? 2 : 1);
  launch.grid[0] = (r.rows + rows_per_cta - 1) / rows_per_cta;
  return launch;
}

Launch block_kernel(const Rows& r, const vector::Pass& pass, bool backward) {
  std::string name = r.inner ? (backward ? "cunn_SoftMaxBackward<4>" : "cunn_SoftMaxForward<4>")
                             : (backward ? "cunn_SpatialSoftMaxBackward" : "cunn_SpatialSoftMaxForward");
  Launch launch =
      vector::rowwise(std::move(name), VectorKind::softmax_block, r.rows, r.cols, block_threads(r.cols), pass);
  // Forward: maximum, sum, result. Backward: sum, result.
  std::get<VectorKernel>(launch.detail).reread_bytes = (backward ? 1 : 2) * pass.read;
  return launch;
}

constexpr std::int64_t kLeastPlaces = 64;  ///< Fewer, and threads share an axis [ATEN].

/// Along an axis that is not the last: a thread per place walks it, and neighbours read neighbours [ATEN].
Launch spatial_kernel(const Rows& r, const vector::Pass& pass, bool backward) {
  Launch launch = vector::elementwise("", pass, VectorKind::elementwise_broadcast);
  launch.name = backward ? "cunn_SpatialSoftMaxBackward" : "cunn_SpatialSoftMaxForward";
  launch.family = "softmax";
  const std::int64_t threads = std::min<std::int64_t>(r.places, 1024);
  launch.cta.threads = static_cast<int>(threads);
  launch.grid[0] = r.rows / r.places * ((r.places + threads - 1) / threads);
  return launch;
}

Launch softmax_kernel(const Rows& r, const vector::Pass& pass, bool backward) {
  const bool warp = r.inner && r.cols <= 1024 && r.cols > 0;
  const bool spatial = !r.inner && r.places >= kLeastPlaces;
  Launch launch = warp      ? warp_kernel(r, pass, backward)
                  : spatial ? spatial_kernel(r, pass, backward)
                            : block_kernel(r, pass, backward);
  std::get<VectorKernel>(launch.detail).backward = backward;
  launch.work.special = backward ? 0 : pass.elements;
  launch.work.other_flop = (backward ? 3 : 4) * pass.elements;
  return launch;
}

/// Chains around the rows change what is read and written, not how rows are reduced. Long rows are computed anew from
/// the operands in each pass.
void fused(const graph::OpGraph& graph, const graph::Node& node, const Target& target, Lowered& out) {
  const FusedKernel kernel = fused_row_kernel(graph, node);
  const bool backward =
      kernel.reduction == OpType::softmax_backward || kernel.reduction == OpType::log_softmax_backward;
  Launch launch = softmax_kernel({.rows = kernel.rows, .cols = kernel.cols}, kernel.pass, backward);
  auto& detail = std::get<VectorKernel>(launch.detail);
  if (kernel.held()) {
    vector::add_broadcast(graph, node, launch);
  } else {
    detail.reread_bytes = (backward ? 1 : 2) * kernel.row_bytes;
  }
  finish_generated(launch, kernel, graph, node, target);
  vector::push(out.launches, std::move(launch));
}

}  // namespace

Lowered lower_softmax(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::softmax;
  if (node.op == OpType::fused_softmax) {
    out.host = HostClass::pointwise;  // Generated kernels are launched alike.
    fused(graph, node, target, out);
    return out;
  }
  const graph::Tensor& y = graph.tensor(node.outputs.front());
  const Rows rows = rows_of(node, y);
  const bool backward = node.op == OpType::softmax_backward || node.op == OpType::log_softmax_backward;
  vector::Pass pass = vector::pass_of(graph, node);
  if (node.op == OpType::softmax_backward && !generates_rows(target.framework)) {
    // ATen first multiplies dy by y into a temporary, then reduces that [ATEN].
    vector::push(out.launches, vector::elementwise("mul", pass));
    pass.read = 2 * y.bytes();
  }
  pass.inputs = 1;  // Rows stream one after another: the softmax laws were fitted with the one-input bandwidth.
  vector::push(out.launches, softmax_kernel(rows, pass, backward));
  return out;
}

}  // namespace voltaic::kernel
