// SPDX-License-Identifier: MIT
// Gradient of recurrent layers, as cuDNN splits it: the gradients of gates and input step by step back in time, then
// those of the weights as products over all steps at once.
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/detail/gradient_tape.hpp"

namespace voltaic::graph::detail {
namespace {

/// The library wants a gradient of every step's output; where only the last state is used, one of zeros.
TensorId step_gradients(GradientTape& tape, const Node& node) {
  const TensorId y = node.outputs[0];
  const TensorId dy = tape.gradient(y);
  if (dy != kNoTensor) return tape.packed(dy, "dy_packed");
  Attributes attributes;
  attributes.set("shape", tape.tensor(y).shape);
  attributes.set("dtype", std::string(to_string(tape.tensor(y).dtype)));
  return tape.emit(OpType::fill, "dy_zero", {}, tape.tensor(y).shape, tape.tensor(y).dtype, std::move(attributes));
}

}  // namespace

void recurrent_gradient(GradientTape& tape, const Node& node) {
  if (node.op == OpType::rnn_backward || node.op == OpType::rnn_wgrad) tape.unsupported(node);
  const TensorId x = node.inputs[0];
  const TensorId dy = step_gradients(tape, node);
  Attributes attributes = node.attributes;
  attributes.set("of", std::string(to_string(node.op)));
  std::vector<TensorId> operands{dy};
  operands.insert(operands.end(), node.inputs.begin(), node.inputs.end());

  // The gates' gradients are made here, so this runs also where nobody wants the input's.
  std::vector<TensorId> with_states = operands;
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (tape.gradient(node.outputs[i]) != kNoTensor) with_states.push_back(tape.gradient(node.outputs[i]));
  }
  const TensorId dx = tape.emit(OpType::rnn_backward, "dgrad", std::move(with_states), tape.tensor(x).shape,
                                tape.tensor(x).dtype, attributes);
  tape.give(x, dx);

  bool trained = false;
  std::vector<Shape> shapes;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    trained = trained || tape.wants(node.inputs[i]);
    shapes.push_back(tape.tensor(node.inputs[i]).shape);
  }
  if (!trained) return;
  const DataType dtype = tape.tensor(node.inputs[1]).dtype;
  const TensorId first =
      tape.emit(OpType::rnn_wgrad, "wgrad", std::move(operands), std::move(shapes), dtype, std::move(attributes));
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    tape.give(node.inputs[i], first + static_cast<TensorId>(i - 1));
  }
}

}  // namespace voltaic::graph::detail
