// SPDX-License-Identifier: MIT
// Gradients of pointwise operations and dropout: the kernels that PyTorch's derivative formulas [PyTorchDerivatives]
// launch, one node each, reading the tensors that they read.
#include <utility>

#include "sim/graph/detail/gradient_tape.hpp"

namespace voltaic::graph::detail {
namespace {

Attributes value(double v) {
  Attributes attributes;
  attributes.set("value", v);
  return attributes;
}

Attributes relation(std::string_view name) {
  Attributes attributes;
  attributes.set("relation", std::string(name));
  return attributes;
}

Attributes relation(std::string_view name, double v) {
  Attributes attributes = relation(name);
  attributes.set("value", v);
  return attributes;
}

/// What one rule works with.
struct Rule {
  GradientTape& tape;
  const Node& node;
  TensorId dy = tape.gradient(node.outputs[0]);
  TensorId x = node.inputs[0];
  TensorId y = node.outputs[0];

  TensorId other() const { return node.inputs[1]; }
  bool wants(std::size_t i) const { return tape.wants(node.inputs[i]); }
  void give(std::size_t i, TensorId gradient) const { tape.give(node.inputs[i], gradient); }
  TensorId run(OpType op, std::string_view role, std::vector<TensorId> inputs, Attributes attributes = {}) const {
    return tape.pointwise(op, role, std::move(inputs), std::move(attributes));
  }
  /// A comparison writes one byte per element.
  TensorId compare(OpType op, std::string_view role, std::vector<TensorId> inputs, Attributes attributes) const {
    const Shape& shape = tape.tensor(inputs.size() == 1 ? inputs[0] : y).shape;
    return tape.emit(op, role, std::move(inputs), shape, DataType::boolean, std::move(attributes));
  }
  /// The framework's own backward kernel of this operation: reads dy and what forward saved.
  TensorId kernel(std::vector<TensorId> inputs) const {
    Attributes attributes = node.attributes;
    attributes.set("of", std::string(to_string(node.op)));
    return run(OpType::pointwise_backward, "grad", std::move(inputs), std::move(attributes));
  }
};

void division(const Rule& r) {
  if (r.wants(0)) r.give(0, r.run(OpType::div, "dx", {r.dy, r.other()}));
  if (!r.wants(1)) return;  // -dy * ((x / y) / y)
  const TensorId ratio = r.run(OpType::div, "ratio", {r.y, r.other()});
  r.give(1, r.run(OpType::mul, "dy", {r.run(OpType::neg, "negative", {r.dy}), ratio}));
}

/// where(x == y, dy / 2, dy), zero where the other operand won.
void selection(const Rule& r) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (!r.wants(i)) continue;
    const std::string side = i == 0 ? "x" : "y";
    const std::string_view loses = (r.node.op == OpType::maximum) == (i == 0) ? "lt" : "gt";
    const TensorId tie = r.compare(OpType::compare, "tie_" + side, {r.x, r.other()}, relation("eq"));
    const TensorId half = r.run(OpType::div_scalar, "half_" + side, {r.dy}, value(2));
    const TensorId shared = r.tape.emit(OpType::where, "shared_" + side, {tie, half, r.dy}, r.tape.tensor(r.dy).shape,
                                        r.tape.tensor(r.dy).dtype);
    const TensorId lost = r.compare(OpType::compare, "lost_" + side, {r.x, r.other()}, relation(loses));
    r.give(i, r.run(OpType::masked_fill, "d" + side, {shared, lost}, value(0)));
  }
}

/// d/dx: dy * (y * x^(y-1)), zero where the exponent is; d/dy: dy * where(.., 0, result * log x).
void power(const Rule& r) {
  const TensorId exponent = r.other();
  if (r.wants(0)) {
    const TensorId zero = r.compare(OpType::compare_scalar, "flat", {exponent}, relation("eq", 0));
    const TensorId less = r.run(OpType::sub_scalar, "exponent", {exponent}, value(1));
    const TensorId base = r.run(OpType::mul, "slope", {r.run(OpType::pow, "base", {r.y, less}), exponent});
    const TensorId dx = r.run(OpType::mul, "scaled", {r.dy, base});
    r.give(0, r.run(OpType::masked_fill, "dx", {dx, zero}, value(0)));
  }
  if (!r.wants(1)) return;
  const TensorId zero = r.compare(OpType::compare_scalar, "zero", {r.x}, relation("eq", 0));
  const TensorId rate = r.run(OpType::mul, "rate", {r.y, r.run(OpType::log, "log", {r.x})});
  const TensorId masked = r.run(OpType::masked_fill, "finite", {rate, zero}, value(0));
  r.give(1, r.run(OpType::mul, "dexponent", {r.dy, masked}));
}

/// dy * (e * x^(e-1)): three kernels, x and the intermediate results read and written in full.
void scalar_power(const Rule& r, double exponent) {
  const TensorId lower = r.run(OpType::pow_scalar, "power", {r.x}, value(exponent - 1));
  const TensorId slope = r.run(OpType::mul_scalar, "slope", {lower}, value(exponent));
  r.give(0, r.run(OpType::mul, "dx", {r.dy, slope}));
}

/// dy where low <= x <= high: two comparisons, their conjunction, one masked write.
void clamp(const Rule& r) {
  const bool two_sided = r.node.op == OpType::clamp;
  TensorId inside = r.compare(OpType::compare_scalar, "above", {r.x}, relation("ge"));
  if (two_sided) {
    const TensorId below = r.compare(OpType::compare_scalar, "below", {r.x}, relation("le"));
    inside = r.compare(OpType::mul, "inside", {inside, below}, {});
  }
  r.give(0, r.run(OpType::masked_fill, "dx", {r.dy, inside}, value(0)));
}

void two_tensors(const Rule& r) {
  switch (r.node.op) {
    case OpType::add: r.give(0, r.dy); return r.give(1, r.dy);
    case OpType::sub:
      r.give(0, r.dy);
      if (r.wants(1)) r.give(1, r.run(OpType::neg, "dy", {r.dy}));
      return;
    case OpType::mul:
      if (r.wants(0)) r.give(0, r.run(OpType::mul, "dx", {r.dy, r.other()}));
      if (r.wants(1)) r.give(1, r.run(OpType::mul, "dy", {r.dy, r.x}));
      return;
    case OpType::div: return division(r);
    case OpType::pow: return power(r);
    case OpType::maximum:
    case OpType::minimum: return selection(r);
    case OpType::where:
      if (r.wants(1)) r.give(1, r.run(OpType::masked_fill, "dx", {r.dy, r.x}, value(0)));
      if (r.wants(2)) r.give(2, r.run(OpType::masked_fill, "dy", {r.dy, r.x}, value(0)));
      return;
    case OpType::masked_fill: return r.give(0, r.run(OpType::masked_fill, "dx", {r.dy, r.other()}, value(0)));
    case OpType::silu_mul:
    case OpType::gelu_mul: {  // One fused kernel, as its forward.
      Attributes attributes;
      attributes.set("of", std::string(to_string(r.node.op)));
      const Shape& shape = r.tape.tensor(r.y).shape;
      const TensorId both = r.tape.emit(OpType::pointwise_backward, "grad", {r.dy, r.x, r.other()},
                                        std::vector<Shape>{shape, shape}, r.tape.tensor(r.dy).dtype, attributes);
      r.give(0, both);
      return r.give(1, both + 1);
    }
    default: r.tape.unsupported(r.node);
  }
}

/// Functions whose derivative formula is composed of plain kernels.
void composed(const Rule& r) {
  switch (r.node.op) {
    case OpType::exp: return r.give(0, r.run(OpType::mul, "dx", {r.dy, r.y}));
    case OpType::log: return r.give(0, r.run(OpType::div, "dx", {r.dy, r.x}));
    case OpType::sqrt:
      return r.give(0, r.run(OpType::div, "dx", {r.dy, r.run(OpType::mul_scalar, "twice", {r.y}, value(2))}));
    case OpType::rsqrt: {  // -0.5 dy * y^3
      const TensorId half = r.run(OpType::mul_scalar, "half", {r.dy}, value(-0.5));
      return r.give(0, r.run(OpType::mul, "dx", {half, r.run(OpType::pow_scalar, "cube", {r.y}, value(3))}));
    }
    case OpType::reciprocal:  // -dy * (y * y)
      return r.give(0, r.run(OpType::mul, "dx",
                             {r.run(OpType::neg, "negative", {r.dy}), r.run(OpType::mul, "square", {r.y, r.y})}));
    case OpType::abs: return r.give(0, r.run(OpType::mul, "dx", {r.dy, r.run(OpType::abs, "sign", {r.x})}));
    case OpType::sin: return r.give(0, r.run(OpType::mul, "dx", {r.dy, r.run(OpType::cos, "cos", {r.x})}));
    case OpType::cos: {
      const TensorId slope = r.run(OpType::neg, "negative", {r.run(OpType::sin, "sin", {r.x})});
      return r.give(0, r.run(OpType::mul, "dx", {r.dy, slope}));
    }
    case OpType::erf: {  // dy * (2 / sqrt(pi)) * exp(-x^2)
      const TensorId square = r.run(OpType::pow_scalar, "square", {r.x}, value(2));
      const TensorId bell = r.run(OpType::exp, "bell", {r.run(OpType::neg, "negative", {square})});
      const TensorId scaled = r.run(OpType::mul_scalar, "scaled", {bell}, value(1.1283791670955126));
      return r.give(0, r.run(OpType::mul, "dx", {scaled, r.dy}));
    }
    case OpType::square: return scalar_power(r, 2);
    case OpType::pow_scalar: return scalar_power(r, r.node.attributes.number("value", 1));
    case OpType::clamp:
    case OpType::maximum_scalar: return clamp(r);
    default: r.tape.unsupported(r.node);
  }
}

void one_tensor(const Rule& r) {
  switch (r.node.op) {
    case OpType::relu:
    case OpType::elu:
    case OpType::tanh:
    case OpType::sigmoid: return r.give(0, r.kernel({r.dy, r.y}));
    case OpType::relu6:
    case OpType::leaky_relu:
    case OpType::gelu:
    case OpType::gelu_tanh:
    case OpType::silu:
    case OpType::hardswish:
    case OpType::hardsigmoid:
    case OpType::mish:
    case OpType::softplus: return r.give(0, r.kernel({r.dy, r.x}));
    case OpType::rope: {
      std::vector<TensorId> inputs = r.node.inputs;  // The inverse rotation.
      inputs[0] = r.dy;
      return r.give(0, r.kernel(std::move(inputs)));
    }
    case OpType::neg: return r.give(0, r.run(OpType::neg, "dx", {r.dy}));
    case OpType::mul_scalar:
    case OpType::div_scalar: return r.give(0, r.run(r.node.op, "dx", {r.dy}, r.node.attributes));
    case OpType::add_scalar:
    case OpType::sub_scalar:
    case OpType::cast: return r.give(0, r.dy);  // give() converts the type back.
    default: return composed(r);
  }
}

}  // namespace

void pointwise_gradient(GradientTape& tape, const Node& node) {
  if (tape.gradient(node.outputs[0]) == kNoTensor) return;
  const Rule rule{tape, node};
  if (node.op == OpType::dropout) {
    Attributes attributes = node.attributes;
    return rule.give(
        0, rule.run(OpType::dropout_backward, "grad", {rule.dy, tape.dropout_mask(node)}, std::move(attributes)));
  }
  if (node.op == OpType::dropout_backward || node.op == OpType::pointwise_backward ||
      node.op == OpType::fused_pointwise) {
    tape.unsupported(node);
  }
  if (node.inputs.size() > 1 && node.op != OpType::rope) return two_tensors(rule);
  one_tensor(rule);
}

}  // namespace voltaic::graph::detail
