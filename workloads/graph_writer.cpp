// SPDX-License-Identifier: MIT
#include "workloads/graph_writer.hpp"

#include <numbers>

#include "arch/units/error.hpp"

namespace voltaic::workloads {

namespace {
constexpr std::int64_t kMostElements = std::int64_t{1} << 62U;
}

graph::Attributes attributes(std::initializer_list<std::pair<std::string_view, graph::Attributes::Value>> entries) {
  graph::Attributes out;
  for (const auto& [name, value] : entries) out.set(name, value);
  return out;
}

GraphWriter::GraphWriter(graph::OpGraph& graph, std::string source, bool training)
    : graph_(&graph), source_(std::move(source)), training_(training) {}

Dim GraphWriter::dim(TensorId tensor, int axis) const {
  const Shape& s = shape(tensor);
  return s.at(axis < 0 ? s.size() - static_cast<std::size_t>(-axis) : static_cast<std::size_t>(axis));
}

void GraphWriter::host_calls(double count) {
  if (last_ == graph::kNoNode) {
    pending_host_calls_ += count;
  } else {
    graph_->node(last_).extra_host_calls += count;
  }
}

std::string GraphWriter::scoped(std::string_view name) const {
  std::string out;
  out.reserve(scope_.size() + name.size() + 1);
  out += scope_;
  if (!out.empty()) out += '.';
  out += name;
  return out;
}

TensorId GraphWriter::add(std::string name, Shape shape, DataType dtype, graph::TensorRole role) {
  std::int64_t elements = 1;
  for (const Dim d : shape) {
    if (__builtin_mul_overflow(elements, d, &elements) || elements > kMostElements) {
      throw ConfigError(source_, "", "expected tensors of at most 2^62 elements, got '" + name + "' with more");
    }
  }
  graph::Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.dtype = dtype;
  tensor.role = role;
  return graph_->add_tensor(std::move(tensor));
}

TensorId GraphWriter::input(std::string_view name, Shape shape, DataType dtype) {
  return add(std::string(name), std::move(shape), dtype, graph::TensorRole::input);
}

TensorId GraphWriter::parameter(std::string_view name, Shape shape) {
  return add(scoped(name), std::move(shape), DataType::fp32, graph::TensorRole::parameter);
}

TensorId GraphWriter::buffer(std::string_view name, Shape shape, DataType dtype) {
  return add(std::string(name), std::move(shape), dtype, graph::TensorRole::buffer);
}

graph::NodeId GraphWriter::append(OpType op, std::string id, std::vector<TensorId> inputs, graph::Attributes attributes,
                                  std::span<const std::string> outputs) {
  graph::Node node;
  node.id = std::move(id);
  node.op = op;
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  node.layer = scope_;
  node.extra_host_calls = pending_host_calls_;
  pending_host_calls_ = 0;
  const std::string place = source_ + ": " + node.id;
  last_ = graph::append(*graph_, std::move(node), outputs, place);
  return last_;
}

TensorId GraphWriter::apply(OpType op, std::string_view name, std::initializer_list<TensorId> inputs,
                            graph::Attributes attributes) {
  return apply_all(op, name, std::vector<TensorId>(inputs), std::move(attributes));
}

TensorId GraphWriter::apply_all(OpType op, std::string_view name, std::vector<TensorId> inputs,
                                graph::Attributes attributes) {
  std::string id = scoped(name);
  const std::string output[] = {id};
  return graph_->node(append(op, std::move(id), std::move(inputs), std::move(attributes), output)).outputs.front();
}

std::vector<TensorId> GraphWriter::apply_multiple(OpType op, std::string_view name, std::vector<TensorId> inputs,
                                                  graph::Attributes attributes, std::size_t count) {
  std::string id = scoped(name);
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(id + "." + std::to_string(i));
  return graph_->node(append(op, std::move(id), std::move(inputs), std::move(attributes), outputs)).outputs;
}

TensorId GraphWriter::linear(std::string_view name, TensorId x, Dim out, bool bias, bool transposed) {
  const Dim in = dim(x, -1);
  const std::string prefix(name);
  const TensorId weight = parameter(prefix + ".weight", transposed ? Shape{in, out} : Shape{out, in});
  graph::Attributes attrs;
  if (transposed) attrs.set("transposed_weight", std::int64_t{1});
  if (!bias) return apply(OpType::linear, name, {x, weight}, std::move(attrs));
  const TensorId b = parameter(prefix + ".bias", {out});
  return apply(OpType::linear, name, {x, weight, b}, std::move(attrs));
}

TensorId GraphWriter::layer_norm(std::string_view name, TensorId x) {
  const Dim width = dim(x, -1);
  const std::string prefix(name);
  const TensorId weight = parameter(prefix + ".weight", {width});
  const TensorId bias = parameter(prefix + ".bias", {width});
  return apply(OpType::layer_norm, name, {x, weight, bias});
}

TensorId GraphWriter::rms_norm(std::string_view name, TensorId x) {
  const TensorId weight = parameter(std::string(name) + ".weight", {dim(x, -1)});
  return apply(OpType::rms_norm, name, {x, weight});
}

TensorId GraphWriter::embedding(std::string_view name, TensorId ids, TensorId table) {
  return apply(OpType::embedding, name, {ids, table});
}

TensorId GraphWriter::dropout(std::string_view name, TensorId x, double p) {
  if (!training_ || p <= 0) {
    host_calls(1);
    return x;
  }
  return apply_multiple(OpType::dropout, name, {x}, attributes({{"p", p}}), 2).front();
}

TensorId GraphWriter::scalar(OpType op, std::string_view name, TensorId x, double value) {
  return apply(op, name, {x}, attributes({{"value", value}}));
}

TensorId GraphWriter::gelu_new(std::string_view name, TensorId x) {
  const std::string prefix(name);
  const TensorId half = scalar(OpType::mul_scalar, prefix + ".half", x, 0.5);
  const TensorId cube = scalar(OpType::pow_scalar, prefix + ".cube", x, 3.0);
  const TensorId scaled = scalar(OpType::mul_scalar, prefix + ".scaled_cube", cube, 0.044715);
  const TensorId sum = apply(OpType::add, prefix + ".polynomial", {x, scaled});
  const TensorId inner =
      scalar(OpType::mul_scalar, prefix + ".inner", sum, std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  const TensorId tanh = apply(OpType::tanh, prefix + ".tanh", {inner});
  const TensorId plus_one = scalar(OpType::add_scalar, prefix + ".plus_one", tanh, 1.0);
  return apply(OpType::mul, name, {half, plus_one});
}

TensorId GraphWriter::activation(std::string_view name, TensorId x, Activation kind) {
  switch (kind) {
    case Activation::relu: return apply(OpType::relu, name, {x});
    case Activation::gelu: return apply(OpType::gelu, name, {x});
    case Activation::gelu_new: return gelu_new(name, x);
    case Activation::gelu_tanh: return apply(OpType::gelu_tanh, name, {x});
    case Activation::silu: return apply(OpType::silu, name, {x});
    case Activation::tanh: return apply(OpType::tanh, name, {x});
  }
  return x;
}

TensorId GraphWriter::reshape(std::string_view name, TensorId x, Shape shape) {
  return apply(OpType::reshape, name, {x}, attributes({{"shape", std::move(shape)}}));
}

TensorId GraphWriter::transpose(std::string_view name, TensorId x, std::vector<Dim> perm) {
  return apply(OpType::transpose, name, {x}, attributes({{"perm", std::move(perm)}}));
}

TensorId GraphWriter::contiguous(std::string_view name, TensorId x) {
  return apply(OpType::contiguous, name, {x});
}

TensorId GraphWriter::slice(std::string_view name, TensorId x, Dim axis, Dim start, Dim end) {
  return apply(OpType::slice, name, {x}, attributes({{"axis", axis}, {"start", start}, {"end", end}}));
}

TensorId GraphWriter::fill(std::string_view name, const Shape& shape, DataType dtype) {
  return apply(OpType::fill, name, {}, attributes({{"shape", shape}, {"dtype", std::string(to_string(dtype))}}));
}

}  // namespace voltaic::workloads
