// SPDX-License-Identifier: MIT
// Recurrent layers: products with the input over all steps at once, the dependent steps, and for gradients the products
// that give those of input and weights.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "arch/units/error.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/kernel/recurrent.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using graph::Tensor;

RecurrentCell cell_of(const Node& node) {
  const bool backward = node.op == OpType::rnn_backward || node.op == OpType::rnn_wgrad;
  const auto named = backward ? graph::parse_op(node.attributes.word("of", "lstm")) : std::optional(node.op);
  switch (named.value_or(OpType::lstm)) {
    case OpType::rnn: return RecurrentCell::vanilla;
    case OpType::gru: return RecurrentCell::gru;
    default: return RecurrentCell::lstm;
  }
}

/// tf32 on a machine whose tensor cores are switched off is plain fp32.
DataType multiply_type(DataType wanted, const arch::GpuSpec& gpu) {
  return wanted == DataType::tf32 && !gpu.has_tensor_path(DataType::tf32) ? DataType::fp32 : wanted;
}

/// A node's stack of layers.
struct Stack {
  RecurrentKernel kernel;
  std::int64_t input = 1;   ///< Width of the first layer's input.
  double weight_bytes = 4;  ///< Per element, as stored.
  bool bias = false;
  std::int64_t rows() const { return kernel.steps * kernel.batch; }
  std::int64_t gate_width() const { return static_cast<std::int64_t>(gates(kernel.cell)) * kernel.hidden; }
  std::int64_t width_below(std::int64_t layer) const { return layer == 0 ? input : kernel.hidden * kernel.directions; }
};

Stack stack_of(const OpGraph& graph, const Node& node, std::size_t x_at, const Target& target) {
  ensure(node.inputs.size() > x_at + 1, "a recurrent layer lacks an operand");
  const Tensor& x = graph.tensor(node.inputs[x_at]);
  ensure(x.shape.size() == 3, "the input of a recurrent layer is [time, batch, width]");
  Stack s;
  RecurrentKernel& k = s.kernel;
  k.cell = cell_of(node);
  k.steps = x.shape[0];
  k.batch = x.shape[1];
  s.input = x.shape[2];
  k.hidden = std::max<std::int64_t>(1, node.attributes.integer("hidden", 1));
  k.layers = std::max<std::int64_t>(1, node.attributes.integer("layers", 1));
  k.directions = node.attributes.flag("bidirectional") ? 2 : 1;
  k.math = multiply_type(node.compute, target.gpu);
  k.element_bytes = bytes_per_element(x.dtype);
  k.captured = target.framework == Framework::graph || target.framework == Framework::compiled_graph ||
               target.framework == Framework::tensorrt;
  s.weight_bytes = bytes_per_element(graph.tensor(node.inputs[x_at + 1]).dtype);
  s.bias = static_cast<double>(node.inputs.size() - x_at - 1) >=
           4.0 * static_cast<double>(k.layers) * static_cast<double>(k.directions);
  return s;
}

void require_runnable(const Node& node, const RecurrentKernel& k, const arch::GpuSpec& gpu) {
  constexpr double kMostCells = 4096;  // every one has launches of its own
  const double cells = static_cast<double>(k.layers) * static_cast<double>(k.directions);
  if (cells > kMostCells) {
    throw UnsupportedError(fmt::format("node '{}': expected up to {:g} layers times directions, got {:g}",
                                       one_line(node.id), kMostCells, cells));
  }
  constexpr std::int64_t kMostUnits = std::int64_t{1} << 40U;
  if (k.hidden > kMostUnits) {
    throw UnsupportedError(
        fmt::format("node '{}': expected up to {} hidden units, got {}", one_line(node.id), kMostUnits, k.hidden));
  }
  constexpr double kMostElements = 0x1p62;
  const double gate_elements =
      static_cast<double>(k.steps) * static_cast<double>(k.batch) * gates(k.cell) * static_cast<double>(k.hidden);
  if (gate_elements > kMostElements) {
    throw UnsupportedError(
        fmt::format("node '{}': expected gates of at most 2^62 elements, got {:g}", one_line(node.id), gate_elements));
  }
  if (gpu.has_tensor_path(k.math) || gpu.sm.cuda_core[k.math] > 0) return;
  throw UnsupportedError(fmt::format("{} cannot multiply in {}", gpu.name, to_string(k.math)));
}

void add_product(GemmProblem p, const Stack& s, const Target& target, std::vector<Launch>& out) {
  p.math = s.kernel.math;
  p.a_bytes = p.c_bytes = s.kernel.element_bytes;
  if (!(p.b_bytes > 0)) p.b_bytes = s.kernel.element_bytes;
  if (p.m <= 0 || p.n <= 0 || p.k <= 0) return;
  auto launches = gemm_launches(p, target.library.choose(p), target.gpu);
  std::move(launches.begin(), launches.end(), std::back_inserter(out));
}

/// What the layer below adds to every gate of every step: x[T N, in] w_ih^T.
void add_input_products(const Stack& s, const Target& target, std::vector<Launch>& out) {
  for (std::int64_t cell = 0; cell < s.kernel.layers * s.kernel.directions; ++cell) {
    GemmProblem p;
    p.m = s.rows();
    p.n = s.gate_width();
    p.k = s.width_below(cell / s.kernel.directions);
    p.transpose_b = true;
    p.bias = s.bias;
    p.b_bytes = s.weight_bytes;
    add_product(p, s, target, out);
  }
}

/// dx[T N, in] = dgates w_ih.
void add_input_gradients(const Stack& s, const Target& target, std::vector<Launch>& out) {
  for (std::int64_t cell = 0; cell < s.kernel.layers * s.kernel.directions; ++cell) {
    GemmProblem p;
    p.m = s.rows();
    p.n = s.width_below(cell / s.kernel.directions);
    p.k = s.gate_width();
    p.b_bytes = s.weight_bytes;
    add_product(p, s, target, out);
  }
}

/// dw_ih = dgates^T x and dw_hh = dgates^T h, each over all steps.
void add_weight_gradients(const Stack& s, const Target& target, std::vector<Launch>& out) {
  for (std::int64_t cell = 0; cell < s.kernel.layers * s.kernel.directions; ++cell) {
    for (const std::int64_t width : {s.width_below(cell / s.kernel.directions), s.kernel.hidden}) {
      GemmProblem p;
      p.m = s.gate_width();
      p.n = width;
      p.k = s.rows();
      p.transpose_a = true;
      p.b_bytes = 0;  // a state, stored as the gates are
      add_product(p, s, target, out);
    }
  }
}

/// The pointwise part of a single step, forward or backward: both products, the cell's state, what is saved.
Launch cell_pointwise(const Stack& s) {
  const RecurrentKernel& k = s.kernel;
  const double elements = static_cast<double>(k.batch) * static_cast<double>(k.hidden);
  const double bytes = elements * k.element_bytes;
  const double states = k.cell == RecurrentCell::lstm ? 2 : 1;
  const vector::Pass pass{elements, (2 * gates(k.cell) + states - 1) * bytes, (gates(k.cell) + states) * bytes, 2,
                          k.element_bytes};
  Launch launch = vector::elementwise("tanh", pass);
  launch.name = fmt::format("{}_cell_{}", to_string(k.cell), k.pass == RecurrentPass::forward ? "forward" : "backward");
  launch.work.special = elements * (gates(k.cell) + states - 1);
  return launch;
}

/// A loop that calls a cell step by step has no library that sees the whole sequence: frameworks run two products and a
/// pointwise kernel for each step.
bool is_single_cell(const RecurrentKernel& k) {
  return k.steps == 1 && k.layers == 1 && k.directions == 1;
}

Lowered lower_cell(const Node& node, Stack s, const Target& target) {
  Lowered out;
  out.host = HostClass::linear;
  out.host_calls = 2;
  GemmProblem hidden;
  hidden.m = s.kernel.batch;
  hidden.b_bytes = s.weight_bytes;
  if (node.op == OpType::rnn_wgrad) {
    add_weight_gradients(s, target, out.launches);
    return out;
  }
  out.host_calls = 3;
  if (node.op == OpType::rnn_backward) {
    s.kernel.pass = RecurrentPass::backward_data;
    out.launches.push_back(cell_pointwise(s));
    add_input_gradients(s, target, out.launches);
    hidden.n = s.kernel.hidden;
    hidden.k = s.gate_width();
    add_product(hidden, s, target, out.launches);
    return out;
  }
  add_input_products(s, target, out.launches);
  hidden.n = s.gate_width();
  hidden.k = s.kernel.hidden;
  hidden.transpose_b = true;
  hidden.bias = s.bias;
  add_product(hidden, s, target, out.launches);
  out.launches.push_back(cell_pointwise(s));
  return out;
}

}  // namespace

Lowered lower_recurrent(const OpGraph& graph, const Node& node, const Target& target) {
  const bool forward = node.op != OpType::rnn_backward && node.op != OpType::rnn_wgrad;
  Stack s = stack_of(graph, node, forward ? 0 : 1, target);
  require_runnable(node, s.kernel, target.gpu);
  Lowered out;
  out.host = HostClass::other;
  if (s.rows() <= 0) return out;
  if (is_single_cell(s.kernel)) return lower_cell(node, s, target);
  s.kernel.persistent = asks_persistent(s.kernel, s.input, target.gpu) && fits_registers(s.kernel, target.gpu);
  if (node.op == OpType::rnn_wgrad) {
    s.kernel.pass = RecurrentPass::backward_weights;
    add_weight_gradients(s, target, out.launches);
    out.launches.push_back(recurrent_launch(s.kernel, target.gpu));
    return out;
  }
  if (forward) add_input_products(s, target, out.launches);
  s.kernel.pass = forward ? RecurrentPass::forward : RecurrentPass::backward_data;
  out.launches.push_back(recurrent_launch(s.kernel, target.gpu));
  if (!forward) add_input_gradients(s, target, out.launches);
  return out;
}

}  // namespace voltaic::kernel
