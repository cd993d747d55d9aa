// SPDX-License-Identifier: MIT
// Losses and their gradients.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/kernel/fused.hpp"
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
  std::int64_t images = 0;  ///< Of scores per place, [images, places..., classes]; 0: rows of a table.

  std::int64_t places() const { return images > 0 ? rows / images : rows; }
};

Logits logits_of(const graph::Tensor& x) {
  Logits l;
  l.cols = x.shape.empty() ? 1 : x.shape.back();
  l.rows = l.cols > 0 ? x.elements() / l.cols : 0;
  l.n = static_cast<double>(x.elements());
  l.bytes = x.bytes();
  l.element = bytes_per_element(x.dtype);
  l.images = x.shape.size() > 2 ? x.shape.front() : 0;
  return l;
}

/// Scores per place come with the classes in front of the places: a thread per place walks them [ATEN].
Launch spatial(const Logits& l, bool backward) {
  Launch launch = vector::elementwise("", Pass{l.n, (backward ? 2 : 1) * l.bytes, l.bytes, 1, l.element},
                                      VectorKind::elementwise_broadcast);
  launch.name = backward ? "cunn_SpatialSoftMaxBackward" : "cunn_SpatialSoftMaxForward";
  const std::int64_t threads = std::clamp<std::int64_t>(l.places(), 1, 1024);
  launch.cta.threads = static_cast<int>(threads);
  launch.grid[0] = l.images * ((l.places() + threads - 1) / threads);
  launch.family = "loss";
  launch.work.special = l.n;
  return launch;
}

/// A log-softmax over the classes: three readings forward, two of both operands backward.
Launch log_softmax(const Logits& l, bool backward) {
  if (l.images > 0) return spatial(l, backward);
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

/// About sixteen rows per thread, 32 to 1024 threads in powers of two [ATEN].
int walking_threads(double rows) {
  constexpr double kRowsPerThread = 16;
  const double wanted = std::max(1.0, std::floor(rows / kRowsPerThread));
  return static_cast<int>(std::clamp(std::exp2(std::round(std::log2(wanted))), 32.0, 1024.0));
}

/// One entry per row picked by its label, by one CTA; of images by one CTA per 128 times 1024 places [ATEN].
Launch nll(const Logits& l, bool backward) {
  const double rows = static_cast<double>(l.rows);
  const Pass pass{rows, (8 + (backward ? 0 : l.element)) * rows, backward ? l.element * rows : l.element, 2, l.element};
  Launch launch = vector::elementwise("", pass, VectorKind::cross_entropy);
  launch.name = backward ? "nll_loss_backward_reduce_cuda_kernel_2d" : "nll_loss_forward_reduce_cuda_kernel_2d";
  launch.cta.threads = walking_threads(rows);
  launch.grid[0] = l.rows > 0 ? 1 : 0;
  if (l.images > 0 && l.rows > 0) {
    launch.name = backward ? "nll_loss2d_backward_kernel" : "nll_loss2d_forward_kernel";
    launch.cta.threads = 1024;
    launch.grid[0] = l.images * std::max<std::int64_t>(1, (l.places() + 1023) / 1024 / 128);
  }
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

/// One kernel per element and the mean of what it wrote.
void elementwise_loss(const OpGraph& graph, const Node& node, std::string_view function, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const double n = static_cast<double>(x.elements());
  const double e = bytes_per_element(x.dtype);
  const double read = vector::stored_bytes(graph, node.inputs);
  vector::push(out.launches, vector::elementwise(function, Pass{n, read, e * n, 2, e}));
  vector::push(out.launches, vector::reduce(x.elements() > 0 ? 1 : 0, x.elements(), e * n, e, e));
}

/// Of logits, as ATen composes it: (1 - y) x - log sigmoid(x), and the mean. A compiler makes one kernel of the former.
void bce(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  if (generates_kernels(target.framework)) return elementwise_loss(graph, node, "softplus", out);
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const double n = static_cast<double>(x.elements());
  const double e = bytes_per_element(x.dtype);
  const double b = e * n;
  vector::push(out.launches, vector::elementwise("sub_scalar", Pass{n, b, b, 1, e}));
  vector::push(out.launches, vector::elementwise("mul", Pass{n, 2 * b, b, 2, e}));
  vector::push(out.launches, vector::elementwise("softplus", Pass{n, b, b, 1, e}));
  vector::push(out.launches, vector::elementwise("sub", Pass{n, 2 * b, b, 2, e}));
  vector::push(out.launches, vector::reduce(x.elements() > 0 ? 1 : 0, x.elements(), b, e, e));
  out.host_calls = 5;
}

/// (sigmoid(x) - y) dy / n.
void bce_backward(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const Pass whole = vector::pass_of(graph, node);
  if (generates_kernels(target.framework)) return vector::push(out.launches, vector::elementwise("sigmoid", whole));
  const double n = whole.elements;
  const double e = whole.element_bytes;
  const double b = e * n;
  vector::push(out.launches, vector::elementwise("sigmoid", Pass{n, b, b, 1, e}));
  vector::push(out.launches, vector::elementwise("sub", Pass{n, 2 * b, b, 2, e}));
  vector::push(out.launches, vector::elementwise("mul", Pass{n, b + e, b, 2, e}));
  vector::push(out.launches, vector::elementwise("mul_scalar", Pass{n, b, b, 1, e}));
  out.host_calls = 4;
}

/// A lattice of T steps and 2 L + 1 states (labels with blanks between them) per sample.
struct Lattice {
  double steps = 0, samples = 0, states = 1, classes = 0, labels = 0;
  double element = 4;
  double cells() const { return steps * samples * states; }
  double probabilities() const { return steps * samples * classes; }
};

Lattice lattice_of(const OpGraph& graph, const Node& node) {
  const graph::Tensor& x = graph.tensor(node.inputs[0]);
  const graph::Tensor& labels = graph.tensor(node.inputs[1]);
  Lattice l;
  l.steps = static_cast<double>(x.shape[0]);
  l.samples = static_cast<double>(x.shape[1]);
  l.classes = static_cast<double>(x.shape[2]);
  l.labels = static_cast<double>(labels.shape[1]);
  l.states = 2 * l.labels + 1;
  l.element = bytes_per_element(x.dtype);
  return l;
}

/// One kernel loops over time: a thread per state, a barrier per step, since each state needs three of the last step.
Launch sweep(std::string name, const Lattice& l) {
  // A cell reads the probability of its state, of which no more than all classes exist; the last step's are at hand.
  const double read = l.element * l.steps * l.samples * std::min(l.states, l.classes) + 8 * l.labels * l.samples;
  Launch launch =
      vector::elementwise("", Pass{l.cells(), read, l.element * l.cells(), 2, l.element}, VectorKind::cross_entropy);
  launch.name = std::move(name);
  constexpr double kMostThreads = 1024;
  double threads = kMostThreads;
  while (threads / 2 >= l.states) threads /= 2;
  const double together = std::min(kMostThreads / threads, std::max(1.0, l.samples));
  launch.cta.threads = static_cast<int>(threads * together);
  launch.grid[0] = static_cast<std::int64_t>(std::ceil(l.samples / together));
  launch.work.other_flop = 10 * l.cells();  // Largest of three, differences, sum, and the probability.
  launch.work.special = 4 * l.cells();      // Three exponentials and a logarithm.
  std::get<VectorKernel>(launch.detail).passes = l.steps * std::ceil(l.states / threads);
  return launch;
}

/// Alpha forwards through time, and the mean over samples of what its last step says.
void ctc(const OpGraph& graph, const Node& node, Lowered& out) {
  const Lattice l = lattice_of(graph, node);
  if (!(l.probabilities() > 0)) return;
  vector::push(out.launches, sweep("ctc_loss_log_alpha_gpu_kernel", l));
  const double losses = l.element * l.samples;
  vector::push(out.launches, vector::elementwise("div", Pass{l.samples, 2 * losses, losses, 2, l.element}));
  const auto samples = static_cast<std::int64_t>(l.samples);
  vector::push(out.launches, vector::reduce(1, samples, losses, l.element, l.element));
  out.host_calls = 3;
}

/// What blanks, every other state, take from the gradient: a log-sum of alpha + beta in pieces, then small corrections
/// per step and sample.
void push_blanks(const Lattice& l, Lowered& out) {
  const double places = l.steps * l.samples;
  const double n = places * (l.labels + 1);
  const double e = l.element;
  const auto rows = static_cast<std::int64_t>(places);
  const auto cols = static_cast<std::int64_t>(l.labels + 1);
  const auto strided = VectorKind::elementwise_broadcast;
  vector::push(out.launches, vector::elementwise("add", Pass{n, 2 * e * n, e * n, 2, e}, strided));
  vector::push(out.launches, vector::reduce(rows, cols, e * n, e * places, e));
  vector::push(out.launches, vector::elementwise("sub", Pass{n, e * (n + places), e * n, 2, e}, strided));
  vector::push(out.launches, vector::elementwise("exp", Pass{n, e * n, e * n, 1, e}));
  vector::push(out.launches, vector::reduce(rows, cols, e * n, e * places, e));
  constexpr int kSmall = 9;  // Infinite maxima set to 0 (3), log, add, the loss, the blank's score, exp, subtract.
  for (int i = 0; i < kSmall; ++i) {
    vector::push(out.launches, vector::elementwise("add", Pass{places, 2 * e * places, e * places, 2, e}, strided));
  }
}

/// Beta backwards through time, then the gradient from both: for large problems probabilities first, and states added
/// to them by atomics; for small ones one thread per step and sample [ATEN].
void ctc_backward(const OpGraph& graph, const Node& node, Lowered& out) {
  const Lattice l = lattice_of(graph, node);
  if (!(l.probabilities() > 0)) return;
  const double gradient = l.element * l.probabilities();
  const double cells = l.element * l.cells();
  vector::push(out.launches, vector::fill(gradient, l.element));
  vector::push(out.launches, sweep("ctc_loss_backward_log_beta_gpu_kernel", l));
  const bool large = 2 * l.steps + 2.4 * l.samples + 0.2 * l.classes > 450;
  if (large) {
    vector::push(out.launches, vector::elementwise("exp", Pass{l.probabilities(), gradient, gradient, 1, l.element}));
    push_blanks(l, out);
  }
  const double touched = large ? l.element * l.steps * l.samples * std::min(l.labels, l.classes) : gradient;
  Launch collect = vector::elementwise("exp", Pass{l.cells(), 2 * cells + 2 * touched, touched, 3, l.element},
                                       large ? VectorKind::scatter : VectorKind::elementwise);
  collect.name = large ? "ctc_loss_backward_collect_nonblank_gpu_kernel" : "ctc_loss_backward_collect_gpu_kernel";
  collect.family = "loss";
  collect.work.other_flop = 4 * l.cells() + 3 * l.probabilities();
  vector::push(out.launches, std::move(collect));
  constexpr double kCallsForBlanks = 15;
  out.host_calls = large ? 1 + kCallsForBlanks : 1;
}

}  // namespace

Lowered lower_loss(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::other;
  switch (node.op) {
    case OpType::cross_entropy: cross_entropy(graph, node, out); break;
    case OpType::cross_entropy_backward: cross_entropy_backward(graph, node, out); break;
    case OpType::mse_loss: elementwise_loss(graph, node, "square", out); break;
    case OpType::smooth_l1_loss: elementwise_loss(graph, node, "abs", out); break;
    case OpType::bce_loss: bce(graph, node, target, out); break;
    case OpType::bce_loss_backward: bce_backward(graph, node, target, out); break;
    case OpType::ctc_loss: ctc(graph, node, out); break;
    case OpType::ctc_loss_backward: ctc_backward(graph, node, out); break;
    default: vector::push(out.launches, vector::elementwise("mul", vector::pass_of(graph, node))); break;
  }
  return out;
}

}  // namespace voltaic::kernel
