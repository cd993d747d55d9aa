// SPDX-License-Identifier: MIT
// Losses and their gradients.
#include <algorithm>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

struct Logits {
  std::int64_t rows = 0, cols = 0;
  double n = 0, bytes = 0, element = 4;
};

Logits logits_of(const graph::Tensor& x) {
  Logits l;
  l.cols = x.shape.empty() ? 1 : x.shape.back();
  l.rows = l.cols > 0 ? x.elements() / l.cols : 0;
  l.n = static_cast<double>(x.elements());
  l.bytes = x.bytes();
  l.element = bytes_per_element(x.dtype);
  return l;
}

/// A log-softmax over the classes: three readings forward, two of both operands backward.
Launch log_softmax(const Logits& l, bool backward) {
  const double read = (backward ? 2 : 1) * l.bytes;
  const bool warp = l.cols <= 1024;
  Launch launch = vector::rowwise(warp ? (backward ? "softmax_warp_backward" : "softmax_warp_forward")
                                       : (backward ? "cunn_SoftMaxBackward<4>" : "cunn_SoftMaxForward<4>"),
                                  warp ? VectorKind::softmax_warp : VectorKind::softmax_block, l.rows, l.cols,
                                  warp ? 128 : 512, Pass{l.n, read, l.bytes, 1, l.element});
  if (warp) launch.grid[0] = (l.rows + 3) / 4;
  auto& detail = std::get<VectorKernel>(launch.detail);
  if (!warp) detail.reread_bytes = (backward ? 1 : 2) * read;
  detail.backward = backward;
  launch.family = "loss";
  launch.work.special = l.n;
  return launch;
}

/// One entry per row picked by its label, by one CTA.
Launch nll(const Logits& l, bool backward) {
  const double rows = static_cast<double>(l.rows);
  const Pass pass{rows, (8 + (backward ? 0 : l.element)) * rows, backward ? l.element * rows : l.element, 2, l.element};
  Launch launch = vector::elementwise("", pass, VectorKind::cross_entropy);
  launch.name = backward ? "nll_loss_backward_reduce_cuda_kernel_2d" : "nll_loss_forward_reduce_cuda_kernel_2d";
  launch.cta.threads = 32;
  launch.grid[0] = l.rows > 0 ? 1 : 0;
  return launch;
}

void cross_entropy(const OpGraph& graph, const Node& node, Lowered& out) {
  const Logits l = logits_of(graph.tensor(node.inputs.front()));
  vector::push(out.launches, log_softmax(l, false));
  vector::push(out.launches, nll(l, false));
  out.host_calls = 2;
}

/// Zeroes and one entry per row, then the log-softmax gradient, which reads them and the saved result.
void cross_entropy_backward(const OpGraph& graph, const Node& node, Lowered& out) {
  const Logits l = logits_of(graph.tensor(node.outputs.front()));
  vector::push(out.launches, vector::fill(l.bytes, l.element));
  vector::push(out.launches, nll(l, true));
  vector::push(out.launches, log_softmax(l, true));
  out.host_calls = 2;
}

void mse(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const double n = static_cast<double>(x.elements());
  const double e = bytes_per_element(x.dtype);
  const double read = vector::stored_bytes(graph, node.inputs);
  vector::push(out.launches, vector::elementwise("square", Pass{n, read, e * n, 2, e}));
  vector::push(out.launches, vector::reduce(x.elements() > 0 ? 1 : 0, x.elements(), e * n, e, e));
}

}  // namespace

Lowered lower_loss(const graph::OpGraph& graph, const graph::Node& node, const Target&) {
  Lowered out;
  out.host = HostClass::other;
  switch (node.op) {
    case OpType::cross_entropy: cross_entropy(graph, node, out); break;
    case OpType::cross_entropy_backward: cross_entropy_backward(graph, node, out); break;
    case OpType::mse_loss: mse(graph, node, out); break;
    default: vector::push(out.launches, vector::elementwise("mul", vector::pass_of(graph, node))); break;
  }
  return out;
}

}  // namespace voltaic::kernel
