// SPDX-License-Identifier: MIT
// How much arithmetic a node asks for, from shapes alone. The conventions stand in README.md.
#include <algorithm>
#include <cmath>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

namespace {

double size(const Shape& shape, std::size_t first = 0) {
  double product = 1;
  for (std::size_t d = first; d < shape.size(); ++d) product *= static_cast<double>(shape[d]);
  return product;
}

/// Shapes of a node's tensors; absent ones are empty tensors, so that a partly built node counts nothing.
class Shapes {
 public:
  Shapes(const OpGraph& graph, const Node& node) : graph_(graph), node_(node) {}

  std::size_t inputs() const { return node_.inputs.size(); }
  bool has_input(std::size_t i) const { return i < node_.inputs.size(); }
  const Shape& input(std::size_t i) const { return has_input(i) ? graph_.tensor(node_.inputs[i]).shape : kNone; }
  const Shape& output(std::size_t i) const {
    return i < node_.outputs.size() ? graph_.tensor(node_.outputs[i]).shape : kNone;
  }
  double in(std::size_t i) const { return size(input(i)); }
  double out(std::size_t i = 0) const { return size(output(i)); }

 private:
  inline static const Shape kNone{0};
  const OpGraph& graph_;
  const Node& node_;
};

double last(const Shape& shape) {
  return shape.empty() ? 1 : static_cast<double>(shape.back());
}

OpCount matrix_count(const Node& node, const Shapes& s) {
  if (node.op == OpType::grouped_linear && node.attributes.has("rows") && s.output(0).size() == 3) {
    const double padded = static_cast<double>(s.output(0)[0]) * static_cast<double>(s.output(0)[1]);
    const double rows = std::clamp(static_cast<double>(node.attributes.integer("rows", 0)), 0.0, padded);
    return {rows * last(s.output(0)) * last(s.input(0)), 0};
  }
  if (node.op == OpType::linear || node.op == OpType::grouped_linear) {
    const double epilogue = (s.has_input(2) ? 1 : 0) + (node.attributes.has("epilogue") ? 1 : 0);
    return {s.out() * last(s.input(0)), epilogue * s.out()};
  }
  const Shape& a = s.input(0);
  if (a.size() < 2) return {};
  const std::size_t k = a.size() - (node.attributes.flag("transpose_a") ? 2 : 1);
  return {s.out() * static_cast<double>(a[k]), 0};
}

/// Functions of an epilogue beside the residual's addition.
double activations_of(const Node& node) {
  const std::string epilogue = node.attributes.word("epilogue", "");
  return epilogue.empty() || epilogue == "add" ? 0 : 1;
}

/// Forward, data gradient and weight gradient of one convolution do the same multiply-adds: each filter tap of a
/// group's channels for each position of the side the filter slides over.
OpCount convolution_count(const Node& node, const Shapes& s) {
  switch (node.op) {
    case OpType::conv_dgrad: {
      const Shape& slid = node.attributes.flag("transposed") ? s.output(0) : s.input(0);
      return {size(slid) * size(s.input(1), 1), 0};
    }
    case OpType::conv_wgrad: {
      const Shape& slid = node.attributes.flag("transposed") ? s.input(0) : s.input(1);
      return {size(slid) * size(s.output(0), 1), 0};
    }
    case OpType::conv1d:
    case OpType::conv2d:
    case OpType::conv3d: {
      const double epilogue = (s.has_input(2) ? 1 : 0) + (s.has_input(3) ? 1 : 0) + activations_of(node);
      return {s.out() * size(s.input(1), 1), epilogue * s.out()};
    }
    default: return {s.in(0) * size(s.input(1), 1), s.has_input(2) ? s.out() : 0};
  }
}

OpCount attention_count(const Node& node, const Shapes& s) {
  const bool backward = node.op == OpType::attention_backward;
  const Shape& q = s.input(backward ? 1 : 0);
  const Shape& k = s.input(backward ? 2 : 1);
  const Shape& v = s.input(backward ? 3 : 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return {};
  const double heads = static_cast<double>(q[0]) * static_cast<double>(q[1]);
  const double pairs =
      heads * attention_pairs(q[2], k[2], node.attributes.flag("causal"), node.attributes.integer("window", 0));
  const double d = last(q);
  const double dv = last(v);
  if (!backward) return {pairs * (d + dv), 6 * pairs};         // Scale and a softmax of 5.
  return {pairs * (3 * d + 2 * dv), 7 * pairs + 2 * s.in(0)};  // Scores again, dV, dP, dQ, dK.
}

/// A gradient does the multiply-adds of the forward layer once for the input and once for the weights.
OpCount recurrent_count(const Node& node, const Shapes& s) {
  const bool backward = node.op == OpType::rnn_backward || node.op == OpType::rnn_wgrad;
  const Shape& x = s.input(backward ? 1 : 0);
  if (x.size() != 3) return {};
  const auto named = backward ? parse_op(node.attributes.word("of", "lstm")) : std::optional(node.op);
  const OpType cell = named.value_or(OpType::lstm);
  const double gates = cell == OpType::lstm ? 4 : cell == OpType::gru ? 3 : 1;
  const double functions = cell == OpType::lstm ? 9 : cell == OpType::gru ? 8 : 1;  // Per hidden element, not of gates.
  const auto hidden = static_cast<double>(node.attributes.integer("hidden", 0));
  const auto layers = static_cast<double>(node.attributes.integer("layers", 1));
  const double directions = node.attributes.flag("bidirectional") ? 2 : 1;
  const double steps = static_cast<double>(x[0]) * static_cast<double>(x[1]) * directions;
  const double widths =
      last(x) + (layers - 1) * hidden * directions + layers * hidden;  // Inputs and states, all layers.
  const double mac = steps * gates * hidden * widths;
  const double sums = steps * layers * hidden;
  if (node.op == OpType::rnn_wgrad) return {mac, sums * gates};  // Bias gradients.
  return {mac, sums * (3 * gates + functions)};
}

double normalization_flop(const Node& node, const Shapes& s) {
  const double n = s.in(0);
  switch (node.op) {
    case OpType::layer_norm:
    case OpType::group_norm: return n * (5 + static_cast<double>(s.inputs() - 1));
    case OpType::rms_norm: return n * (3 + static_cast<double>(s.inputs() - 1));
    case OpType::batch_norm: return n * (node.attributes.flag("training") ? 7 : 4);
    case OpType::rms_norm_backward: return n * 7;
    case OpType::batch_norm_backward: return n * 11;
    case OpType::norm_param_grad: return n * (node.attributes.integer("bias", 1) != 0 ? 5 : 4);
    default: return n * 9;
  }
}

/// Per element, by itself or inside a fused kernel.
double function_cost(OpType op) {
  switch (op) {
    case OpType::cast:
    case OpType::contiguous:
    case OpType::copy:
    case OpType::embedding: return 0;
    case OpType::silu_mul:
    case OpType::gelu_mul:
    case OpType::dropout:
    case OpType::pointwise_backward: return 2;  // The derivative and its product with dy.
    case OpType::rope: return 3;                // Two products and a sum.
    case OpType::batch_norm: return 4;          // With known statistics.
    case OpType::rms_norm: return 3;
    case OpType::softmax_backward:
    case OpType::log_softmax_backward: return 4;
    case OpType::softmax:
    case OpType::log_softmax:
    case OpType::layer_norm: return 5;
    case OpType::rms_norm_backward: return 7;
    case OpType::layer_norm_backward: return 9;
    default: return 1;
  }
}

double fused_flop(const Node& node, const Shapes& s) {
  const std::string functions = node.attributes.word("functions", "");
  double cost = static_cast<double>(node.attributes.integer("parameters", 0));  // A norm's weight and bias.
  for (std::size_t begin = 0; begin < functions.size();) {
    const std::size_t end = std::min(functions.find(',', begin), functions.size());
    const auto op = parse_op(std::string_view(functions).substr(begin, end - begin));
    cost += op ? function_cost(*op) : 1;
    begin = end + 1;
  }
  return s.out() * cost;
}

double pooling_flop(const Node& node, const Shapes& s) {
  if (node.op == OpType::global_avg_pool2d) return s.in(0);
  auto kernel = node.attributes.integers("kernel");
  const std::size_t dims = std::max<std::size_t>(s.input(0).size(), 3) - 2;
  if (kernel.size() == 1) kernel.resize(dims, kernel.front());
  double taps = 1;
  for (const std::int64_t side : kernel) taps *= static_cast<double>(side);
  if (node.op != OpType::pool_backward) return s.out() * taps;
  return s.in(0) * (node.attributes.word("of", "").starts_with("max") ? 1 : taps);
}

double reduction_flop(const Node& node, const Shapes& s) {
  const double n = s.in(0);
  if (node.op == OpType::sort) {
    const Shape& x = s.input(0);
    if (x.empty()) return 0;
    const std::int64_t axis = node.attributes.integer("axis", -1);
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.size()) : axis);
    return n * std::ceil(std::log2(std::max(1.0, static_cast<double>(x.at(std::min(at, x.size() - 1))))));
  }
  if (node.op != OpType::nms) return n;
  const double boxes = s.in(1);
  return 15 * boxes * std::max(0.0, boxes - 1) / 2;  // Every pair once.
}

/// One product and one sum per corner of each sample.
double region_flop(const Node& node, const Shapes& s) {
  const auto side = static_cast<double>(node.attributes.integer("sampling", 2));
  return 8 * side * side * (node.op == OpType::roi_align ? s.out() : s.in(0));
}

double embedding_flop(const Node& node, const Shapes& s) {
  switch (node.op) {
    case OpType::embedding: return 0;
    case OpType::embedding_bag: return s.in(0) * last(s.input(1));
    case OpType::embedding_bag_backward: return s.in(1) * last(s.input(0));
    default: return s.in(0);
  }
}

/// A product with values multiplies, one with a pattern of ones only adds; a mean divides too.
OpCount sparse_count(const Node& node, const Shapes& s) {
  if (node.op == OpType::sddmm) return {s.in(2) * last(s.input(0)), 0};
  const double entries = s.in(1) * last(s.input(0));
  const double mean = node.attributes.word("reduce", "sum") == "mean" ? s.out() : 0;
  return s.has_input(2) ? OpCount{entries, mean} : OpCount{0, entries + mean};
}

double resize_flop(const Node& node, const Shapes& s) {
  if (node.attributes.word("mode", "nearest") == "nearest") return 0;
  const std::size_t rank = s.input(0).size();
  const double corners = rank <= 3 ? 2 : rank == 4 ? 4 : 8;
  return 2 * corners * std::max(s.in(0), s.out());  // One product and one sum per corner of the larger grid.
}

/// Cells of the lattice that a CTC loss walks over: time, samples, labels with blanks between them.
double ctc_cells(const Shapes& s) {
  const Shape& x = s.input(0);
  const Shape& labels = s.input(1);
  if (x.size() != 3 || labels.size() != 2) return 0;
  return static_cast<double>(x[0]) * static_cast<double>(x[1]) * (2 * static_cast<double>(labels[1]) + 1);
}

double loss_flop(const Node& node, const Shapes& s) {
  switch (node.op) {
    case OpType::cross_entropy: return 5 * s.in(0) + s.in(1);
    case OpType::cross_entropy_backward:
    case OpType::mse_loss:
    case OpType::smooth_l1_loss_backward:
    case OpType::bce_loss_backward: return 3 * s.in(0);
    case OpType::smooth_l1_loss: return 6 * s.in(0);
    case OpType::bce_loss: return 7 * s.in(0);
    case OpType::ctc_loss: return 10 * ctc_cells(s);
    case OpType::ctc_loss_backward: return 14 * ctc_cells(s) + 3 * s.in(0);
    default: return 2 * s.in(0);
  }
}

double optimizer_flop(const Node& node, const Shapes& s) {
  double elements = node.attributes.number("elements", -1);
  if (elements < 0) {
    elements = 0;
    for (std::size_t i = 0; i < s.inputs(); ++i) elements += s.in(i);
  }
  if (node.op == OpType::zero_grad) return 0;
  if (node.op != OpType::optimizer_step) return elements;
  const std::string rule = node.attributes.word("optimizer", "sgd");
  if (rule == "momentum") return 4 * elements;
  if (rule == "adam") return 14 * elements;
  if (rule == "adamw") return 15 * elements;
  if (rule == "lamb") return 21 * elements;
  return 2 * elements;
}

double collective_flop(const Node& node, const Shapes& s) {
  if (node.op != OpType::all_reduce && node.op != OpType::reduce_scatter) return 0;
  const auto ranks = static_cast<double>(std::max<std::int64_t>(1, node.attributes.integer("ranks", 1)));
  return s.in(0) * (ranks - 1) / ranks;  // Each rank sums its share of the elements.
}

double other_flop(const Node& node, const Shapes& s) {
  const bool fused = node.op == OpType::fused_pointwise || node.op == OpType::fused_softmax;
  if (fused || node.op == OpType::fused_norm) return fused_flop(node, s);
  switch (family(node.op)) {
    case OpFamily::normalization: return normalization_flop(node, s);
    case OpFamily::pointwise: return s.out() * function_cost(node.op);
    case OpFamily::softmax: return s.out() * (s.inputs() == 1 ? 5 : 4);
    case OpFamily::reduction: return reduction_flop(node, s);
    case OpFamily::pooling: return pooling_flop(node, s);
    case OpFamily::resize: return resize_flop(node, s);
    case OpFamily::embedding: return embedding_flop(node, s);
    case OpFamily::gather_scatter:
      if (node.op == OpType::roi_align || node.op == OpType::roi_align_backward) return region_flop(node, s);
      return node.op == OpType::gather ? 0 : s.in(0);
    case OpFamily::moe: return node.op == OpType::moe_dispatch ? 0 : 2 * s.in(1) * last(s.output(0));
    case OpFamily::random: return node.op == OpType::dropout ? 2 * s.out() : s.out();
    case OpFamily::loss: return loss_flop(node, s);
    case OpFamily::optimizer: return optimizer_flop(node, s);
    case OpFamily::collective: return collective_flop(node, s);
    default: return 0;  // Views, data movement and transfers compute nothing.
  }
}

/// Sum over t up to x of t cut to [0, cap].
double ramp_sum(double x, double cap) {
  if (x <= 0) return 0;
  const double rising = std::min(x, cap);
  return rising * (rising + 1) / 2 + cap * (x - rising);
}

}  // namespace

double attention_pairs(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  const auto q = static_cast<double>(queries);
  const auto k = static_cast<double>(keys);
  const auto w = static_cast<double>(window);
  if (!causal && window <= 0) return q * k;
  // Query i stands at position p = keys - queries + i. The keys before position p + shift, cut to [0, keys], summed
  // over i:
  const auto before = [&](double shift) { return ramp_sum(k - 1 + shift, k) - ramp_sum(k - q - 1 + shift, k); };
  const double upto = causal ? before(1) : before(w);  // Causal: keys 0..p; else up to p + w - 1.
  return window > 0 ? upto - before(1 - w) : upto;     // Less those that have left the window.
}

OpCount count(const OpGraph& graph, const Node& node) {
  const Shapes shapes(graph, node);
  switch (family(node.op)) {
    case OpFamily::matrix: return matrix_count(node, shapes);
    case OpFamily::convolution: return convolution_count(node, shapes);
    case OpFamily::attention: return attention_count(node, shapes);
    case OpFamily::recurrent: return recurrent_count(node, shapes);
    case OpFamily::sparse: return sparse_count(node, shapes);
    default: return {0, other_flop(node, shapes)};
  }
}

std::int64_t parameter_count(const OpGraph& graph) {
  std::int64_t total = 0;
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.role != TensorRole::parameter) continue;
    const std::int64_t here = tensor.elements();
    total = here > INT64_MAX - total ? INT64_MAX : total + here;  // Several tensors of 2^62 elements are legal.
  }
  return total;
}

}  // namespace voltaic::graph
