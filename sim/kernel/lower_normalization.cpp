// SPDX-License-Identifier: MIT
// Normalisations as ATen and cuDNN launch them. RMS norm has no kernel of its own in eager frameworks: it runs as the
// pointwise operations it is written with.
#include <algorithm>

#include "sim/kernel/fused.hpp"
#include "sim/kernel/serving.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

struct Norm {
  const graph::Tensor& x;
  std::int64_t rows = 0, cols = 0;
  double n = 0, bytes = 0, element = 4;
};

/// Rows and columns of a norm over the trailing `axes` dims of its main input.
Norm norm_of(const OpGraph& graph, const Node& node, const graph::Tensor& x) {
  Norm norm{x};
  const auto rank = x.shape.size();
  const auto axes = static_cast<std::size_t>(std::max<std::int64_t>(node.attributes.integer("axes", 1), 0));
  norm.cols = vector::product(x.shape, rank - std::min(axes, rank), rank);
  norm.n = static_cast<double>(x.elements());
  norm.rows = norm.cols > 0 ? x.elements() / norm.cols : 0;
  norm.bytes = x.bytes();
  norm.element = bytes_per_element(x.dtype);
  static_cast<void>(graph);
  return norm;
}

double other_inputs(const OpGraph& graph, const Node& node) {
  return vector::stored_bytes(graph, std::span(node.inputs).subspan(1));
}

void set_reread(Launch& launch, double bytes) {
  std::get<VectorKernel>(launch.detail).reread_bytes = bytes;
}

/// One kernel that reads each row twice. Rows that are no whole vectors of four take two kernels.
void layer_norm(const OpGraph& graph, const Node& node, Lowered& out) {
  const Norm norm = norm_of(graph, node, graph.tensor(node.inputs.front()));
  const double written = graph.tensor(node.outputs.front()).bytes();
  const Pass pass{norm.n, norm.bytes, written, 1, norm.element};
  if (norm.cols % 4 != 0) {
    vector::push(out.launches,
                 vector::rowwise("RowwiseMomentsCUDAKernel", VectorKind::reduction, norm.rows, norm.cols, 512,
                                 Pass{norm.n, norm.bytes, 8.0 * static_cast<double>(norm.rows), 1, norm.element}));
    Launch apply = vector::rowwise("LayerNormForwardCUDAKernel", VectorKind::elementwise_broadcast, norm.rows,
                                   norm.cols, 256, pass);
    std::get<VectorKernel>(apply.detail).function = "layer_norm";
    vector::push(out.launches, std::move(apply));
    return;
  }
  Launch launch =
      vector::rowwise("vectorized_layer_norm_kernel", VectorKind::layer_norm, norm.rows, norm.cols, 128, pass);
  set_reread(launch, norm.bytes);
  launch.work.other_flop = 5 * norm.n;
  vector::push(out.launches, std::move(launch));
}

void layer_norm_backward(const OpGraph& graph, const Node& node, Lowered& out, const char* name) {
  const Norm norm = norm_of(graph, node, graph.tensor(node.inputs.front()));
  const double dx = graph.tensor(node.outputs.front()).bytes();
  const double read = norm.bytes + other_inputs(graph, node) + 8.0 * static_cast<double>(norm.rows);
  Launch launch = vector::rowwise(name, VectorKind::norm_backward, norm.rows, norm.cols, 128,
                                  Pass{norm.n, read, dx, 2, norm.element});
  set_reread(launch, 2 * norm.bytes);
  launch.work.other_flop = 8 * norm.n;
  std::get<VectorKernel>(launch.detail).backward = true;
  vector::push(out.launches, std::move(launch));
}

/// dw and db: columns summed over all rows; a CTA walks down 32 columns [ATEN].
void param_grad(const OpGraph& graph, const Node& node, Lowered& out) {
  const Norm norm = norm_of(graph, node, graph.tensor(node.inputs.front()));
  double written = 0;
  for (const auto id : node.outputs) written += graph.tensor(id).bytes();
  Launch launch =
      vector::rowwise("GammaBetaBackwardCUDAKernel_32x32", VectorKind::norm_param_grad, norm.rows, norm.cols, 1024,
                      Pass{norm.n, norm.bytes + other_inputs(graph, node), written, 2, norm.element});
  launch.grid[0] = (norm.cols + 31) / 32;
  if (norm.rows == 0) launch.grid[0] = 0;
  std::get<VectorKernel>(launch.detail).backward = true;
  vector::push(out.launches, std::move(launch));
}

/// The pointwise operations of an eager RMS norm: square, mean, add epsilon, reciprocal root, scale, weight.
void rms_norm_eager(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const Norm norm = norm_of(graph, node, x);
  const double rows = static_cast<double>(norm.rows);
  const bool half = norm.element < 4;
  const double wide = 4 * norm.n;  // The statistics run in fp32.
  if (half) vector::push(out.launches, vector::elementwise("cast", Pass{norm.n, norm.bytes, wide, 1, 4}));
  vector::push(out.launches, vector::elementwise("square", Pass{norm.n, wide, wide, 1, 4}));
  vector::push(out.launches, vector::reduce(norm.rows, norm.cols, wide, 4 * rows, 4));
  vector::push(out.launches, vector::elementwise("add_scalar", Pass{rows, 4 * rows, 4 * rows, 1, 4}));
  vector::push(out.launches, vector::elementwise("rsqrt", Pass{rows, 4 * rows, 4 * rows, 1, 4}));
  vector::push(out.launches, vector::elementwise("mul", Pass{norm.n, wide + 4 * rows, wide, 2, 4},
                                                 VectorKind::elementwise_broadcast));
  if (half) vector::push(out.launches, vector::elementwise("cast", Pass{norm.n, wide, norm.bytes, 1, 4}));
  if (node.inputs.size() > 1) {
    vector::push(
        out.launches,
        vector::elementwise("mul", Pass{norm.n, norm.bytes + other_inputs(graph, node), norm.bytes, 2, norm.element},
                            VectorKind::elementwise_broadcast));
  }
  out.host = HostClass::pointwise;
  out.host_calls = static_cast<double>(out.launches.size());
}

/// The kernels of serving stacks on two-byte rows; those of quantised engines are the same on one-byte rows.
bool serves_rows(const FusedKernel& kernel, const Target& target) {
  const bool one_byte = target.framework == Framework::tensorrt && kernel.pass.element_bytes == 1;
  return one_byte || serving::serves(kernel.pass);
}

/// A norm as a compiler generates it, with the chains around it: rows that registers hold are read once, longer ones
/// again for the result.
void generated(const OpGraph& graph, const Node& node, const FusedKernel& kernel, const Target& target, Lowered& out) {
  const bool backward =
      kernel.reduction == OpType::layer_norm_backward || kernel.reduction == OpType::rms_norm_backward;
  if (!backward && serves_rows(kernel, target)) {
    Launch launch = kernel.reduction == OpType::layer_norm ? serving::layer_norm(kernel.rows, kernel.cols, kernel.pass)
                                                           : serving::norm(kernel.rows, kernel.cols, kernel.pass);
    finish_generated(launch, kernel, graph, node, target);
    out.host = HostClass::pointwise;
    vector::push(out.launches, std::move(launch));
    return;
  }
  Launch launch = vector::rowwise("", backward ? VectorKind::norm_backward : VectorKind::layer_norm, kernel.rows,
                                  kernel.cols, 128, kernel.pass);
  if (!kernel.held()) set_reread(launch, kernel.row_bytes);
  std::get<VectorKernel>(launch.detail).backward = backward;
  finish_generated(launch, kernel, graph, node, target);
  out.host = HostClass::pointwise;  // Generated kernels are launched alike.
  vector::push(out.launches, std::move(launch));
}

/// The forward norms and their row gradients; true when a compiler generated the kernel.
bool generated_rows(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  if (node.op == OpType::fused_norm) {
    generated(graph, node, fused_row_kernel(graph, node), target, out);
    return true;
  }
  if (!generates_rows(target.framework) || (node.op != OpType::layer_norm && node.op != OpType::rms_norm)) {
    return false;
  }
  const Norm norm = norm_of(graph, node, graph.tensor(node.inputs.front()));
  generated(graph, node, row_kernel(graph, node, node.op, norm.cols), target, out);
  return true;
}

/// Batch norm: cuDNN in training (statistics, then the result), one pass with known statistics in inference.
void batch_norm(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const double n = static_cast<double>(x.elements());
  const std::int64_t channels = x.shape.size() > 1 ? x.shape[1] : 1;
  const std::int64_t per_channel = channels > 0 ? x.elements() / channels : 0;
  const double small = other_inputs(graph, node);
  const Pass pass{n, x.bytes() + small, x.bytes(), 1, bytes_per_element(x.dtype)};
  if (!node.attributes.flag("training")) {
    Launch launch = vector::elementwise("mul", pass, VectorKind::elementwise_broadcast);
    launch.name = "batch_norm_transform_input_kernel";
    launch.family = "batch_norm";
    launch.work.other_flop = 2 * n;
    vector::push(out.launches, std::move(launch));
    return;
  }
  Launch launch =
      vector::rowwise("bn_fw_tr_1C11_kernel_NCHW", VectorKind::batch_norm, channels, per_channel, 512, pass);
  launch.library = "cuDNN";
  launch.work.other_flop = 5 * n;
  set_reread(launch, x.bytes());
  vector::push(out.launches, std::move(launch));
}

void batch_norm_backward(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& dy = graph.tensor(node.inputs.front());
  const double n = static_cast<double>(dy.elements());
  const std::int64_t channels = dy.shape.size() > 1 ? dy.shape[1] : 1;
  double written = 0;
  for (const auto id : node.outputs) written += graph.tensor(id).bytes();
  Launch launch = vector::rowwise(
      "bn_bw_1C11_kernel_new", VectorKind::batch_norm, channels, channels > 0 ? dy.elements() / channels : 0, 512,
      Pass{n, dy.bytes() + other_inputs(graph, node), written, 2, bytes_per_element(dy.dtype)});
  launch.library = "cuDNN";
  launch.work.other_flop = 8 * n;
  set_reread(launch, 2 * dy.bytes());
  std::get<VectorKernel>(launch.detail).backward = true;
  vector::push(out.launches, std::move(launch));
}

/// Group norm: moments of each group, fused coefficients of each channel, one pointwise pass.
void group_norm(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const std::int64_t batch = x.shape.empty() ? 1 : x.shape[0];
  const std::int64_t rows = batch * std::max<std::int64_t>(node.attributes.integer("groups", 1), 1);
  const double n = static_cast<double>(x.elements());
  const double element = bytes_per_element(x.dtype);
  const double channels = static_cast<double>(batch) * (x.shape.size() > 1 ? static_cast<double>(x.shape[1]) : 1);
  if (rows <= 0 || n <= 0) return;
  vector::push(out.launches,
               vector::rowwise("RowwiseMomentsCUDAKernel", VectorKind::reduction, rows, x.elements() / rows, 512,
                               Pass{n, x.bytes(), 8.0 * static_cast<double>(rows), 1, element}));
  vector::push(out.launches, vector::elementwise("mul", Pass{channels, 8 * channels, 8 * channels, 2, 4}));
  vector::push(out.launches, vector::elementwise("mul", Pass{n, x.bytes() + 8 * channels, x.bytes(), 2, element},
                                                 VectorKind::elementwise_broadcast));
}

}  // namespace

Lowered lower_normalization(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::norm;
  if (generated_rows(graph, node, target, out)) return out;
  switch (node.op) {
    case OpType::layer_norm: layer_norm(graph, node, out); break;
    case OpType::rms_norm: rms_norm_eager(graph, node, out); break;
    case OpType::batch_norm: batch_norm(graph, node, out); break;
    case OpType::group_norm: group_norm(graph, node, out); break;
    case OpType::layer_norm_backward: layer_norm_backward(graph, node, out, "layer_norm_grad_input_kernel"); break;
    case OpType::rms_norm_backward: layer_norm_backward(graph, node, out, "rms_norm_grad_input_kernel"); break;
    case OpType::group_norm_backward: layer_norm_backward(graph, node, out, "group_norm_grad_input_kernel"); break;
    case OpType::batch_norm_backward: batch_norm_backward(graph, node, out); break;
    default: param_grad(graph, node, out); break;
  }
  return out;
}

}  // namespace voltaic::kernel
