// SPDX-License-Identifier: MIT
// Reverse-mode differentiation: walks the forward nodes backwards and lets each operation's rule write its gradient
// kernels.
#include <fmt/format.h>

#include <utility>

#include "arch/units/error.hpp"
#include "sim/graph/detail/gradient_tape.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

void differentiate(detail::GradientTape& tape, const Node& node) {
  switch (family(node.op)) {
    case OpFamily::matrix: return detail::matrix_gradient(tape, node);
    case OpFamily::convolution: return detail::convolution_gradient(tape, node);
    case OpFamily::attention: return detail::attention_gradient(tape, node);
    case OpFamily::recurrent: return detail::recurrent_gradient(tape, node);
    case OpFamily::normalization: return detail::normalization_gradient(tape, node);
    case OpFamily::pointwise:
    case OpFamily::random: return detail::pointwise_gradient(tape, node);
    case OpFamily::softmax: return detail::softmax_gradient(tape, node);
    case OpFamily::reduction: return detail::reduction_gradient(tape, node);
    case OpFamily::pooling:
    case OpFamily::resize: return detail::pooling_gradient(tape, node);
    case OpFamily::embedding:
    case OpFamily::gather_scatter:
    case OpFamily::sparse:
    case OpFamily::moe: return detail::indexing_gradient(tape, node);
    case OpFamily::view:
    case OpFamily::data_movement: return detail::movement_gradient(tape, node);
    case OpFamily::loss: return detail::loss_gradient(tape, node);
    case OpFamily::optimizer:
    case OpFamily::transfer:
    case OpFamily::collective: tape.unsupported(node);
  }
}

/// A node is differentiated when a gradient arrives at it and something before it wants one.
bool takes_part(const detail::GradientTape& tape, const Node& node) {
  bool arrives = false;
  for (const TensorId t : node.outputs) arrives = arrives || tape.gradient(t) != detail::kNoTensor;
  if (!arrives) return false;
  for (const TensorId t : node.inputs) {
    if (tape.wants(t)) return true;
  }
  return false;
}

void refuse_quantised(const OpGraph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.compute != DataType::int8 && node.compute != DataType::int4 && node.compute != DataType::fp8) continue;
    throw UnsupportedError(
        fmt::format("node '{}': a product in {} has no backward rule; train in mixed-fp16, mixed-bf16, fp16, "
                    "bf16, tf32 or fp32",
                    one_line(node.id), to_string(node.compute)));
  }
}

}  // namespace

void append_backward(OpGraph& graph, const BackwardOptions& options) {
  refuse_quantised(graph);
  detail::GradientTape tape(graph);
  tape.seed();
  for (auto n = static_cast<NodeId>(graph.nodes().size()); n-- > 0;) {
    const Node& node = std::as_const(graph).node(n);
    tape.begin(n);
    if (takes_part(tape, node)) differentiate(tape, node);
    tape.finish_parameters(options.accumulate_gradients);
  }
  std::move(tape).append_to(graph);
}

}  // namespace voltaic::graph
