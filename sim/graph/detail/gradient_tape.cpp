// SPDX-License-Identifier: MIT
#include "sim/graph/detail/gradient_tape.hpp"

#include <fmt/format.h>

#include <utility>

#include "arch/units/error.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {
namespace {

bool carries_gradient(OpType op) {
  switch (op) {
    case OpType::argmax:
    case OpType::compare:
    case OpType::compare_scalar:
    case OpType::logical_not:
    case OpType::fill: return false;
    default: return true;
  }
}

/// Shapes of gradients may join dimensions that no forward tensor has together.
void check_size(const std::string& id, const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) {
    if (dim != 0 && (__builtin_mul_overflow(product, dim, &product) || product > kMaxElements)) {
      throw UnsupportedError(
          fmt::format("node '{}': a gradient of shape {} has more than 2^62 elements", one_line(id), to_string(shape)));
    }
  }
}

bool is_view(OpType op) {
  return family(op) == OpFamily::view;
}

}  // namespace

GradientTape::GradientTape(const OpGraph& forward)
    : forward_(forward), gradient_(forward.tensors().size(), kNoTensor), final_of_(forward.nodes().size()) {
  find_wanted();
  std::vector<bool> seen(forward.tensors().size(), false);
  for (NodeId n = 0; n < forward.nodes().size(); ++n) {
    for (const TensorId t : forward.node(n).inputs) {
      if (seen[t] || forward.tensor(t).role != TensorRole::parameter) continue;
      seen[t] = true;
      if (wanted_[t]) final_of_[n].push_back(t);
    }
  }
}

/// A graph with nothing to train (a single operation, say) is differentiated with respect to its floating inputs.
void GradientTape::find_wanted() {
  const auto tensors = forward_.tensors();
  wanted_.assign(tensors.size(), false);
  bool trained = false;
  for (TensorId t = 0; t < tensors.size(); ++t) {
    wanted_[t] = tensors[t].role == TensorRole::parameter && tensors[t].trainable && is_floating(tensors[t].dtype);
    trained = trained || wanted_[t];
  }
  for (TensorId t = 0; t < tensors.size() && !trained; ++t) {
    wanted_[t] = tensors[t].role == TensorRole::input && is_floating(tensors[t].dtype);
  }
  for (const Node& node : forward_.nodes()) {
    bool wanted = false;
    for (const TensorId t : node.inputs) wanted = wanted || wanted_[t];
    if (!wanted || !carries_gradient(node.op)) continue;
    for (const TensorId t : node.outputs) wanted_[t] = is_floating(tensors[t].dtype);
  }
}

const Tensor& GradientTape::tensor(TensorId id) const {
  const std::size_t base = gradient_.size();
  return id < base ? forward_.tensors()[id] : tensors_[id - base];
}

TensorId GradientTape::add(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  holders_.push_back(0);
  return static_cast<TensorId>(gradient_.size() + tensors_.size() - 1);
}

Node GradientTape::start(OpType op, std::string_view role, std::vector<TensorId> inputs, Attributes attributes) const {
  const Node& of = forward_.nodes()[current_];
  Node node;
  node.id.reserve(of.id.size() + role.size() + 10);
  node.id.append(of.id).append(".backward.").append(role);
  node.op = op;
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  node.phase = Phase::backward;
  node.compute = of.compute;
  node.layer = of.layer.empty() ? of.id : of.layer;
  node.forward_of = current_;
  return node;
}

void GradientTape::add_output(Node& node, std::string name, Shape shape, DataType dtype) {
  check_size(node.id, shape);
  node.outputs.push_back(add({.name = std::move(name),
                              .shape = std::move(shape),
                              .dtype = dtype,
                              .role = TensorRole::gradient,
                              .producer = static_cast<NodeId>(nodes_.size())}));
}

TensorId GradientTape::emit(OpType op, std::string_view role, std::vector<TensorId> inputs, Shape shape, DataType dtype,
                            Attributes attributes) {
  Node node = start(op, role, std::move(inputs), std::move(attributes));
  add_output(node, node.id, std::move(shape), dtype);
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs.front();
}

TensorId GradientTape::emit(OpType op, std::string_view role, std::vector<TensorId> inputs, std::vector<Shape> shapes,
                            DataType dtype, Attributes attributes) {
  Node node = start(op, role, std::move(inputs), std::move(attributes));
  for (Shape& shape : shapes) {
    add_output(node, fmt::format("{}.{}", node.id, node.outputs.size()), std::move(shape), dtype);
  }
  nodes_.push_back(std::move(node));
  return shapes.empty() ? kNoTensor : nodes_.back().outputs.front();
}

TensorId GradientTape::pointwise(OpType op, std::string_view role, std::vector<TensorId> inputs,
                                 Attributes attributes) {
  const Tensor& like = tensor(inputs.front());
  return emit(op, role, std::move(inputs), like.shape, like.dtype, std::move(attributes));
}

TensorId GradientTape::sum_to(TensorId gradient, const Shape& shape) {
  const Shape& from = tensor(gradient).shape;
  if (from == shape) return gradient;
  ensure(from.size() >= shape.size(), "a gradient has a lower rank than its tensor");
  const std::size_t extra = from.size() - shape.size();
  std::vector<std::int64_t> axes;
  Shape kept;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (d < extra || (shape[d - extra] == 1 && from[d] != 1)) {
      axes.push_back(static_cast<std::int64_t>(d));
    } else {
      kept.push_back(from[d]);
    }
  }
  const std::string number = converted_ == 0 ? std::string() : std::to_string(converted_ + 1);
  ++converted_;
  Attributes attributes;
  attributes.set("axes", std::move(axes));
  const TensorId sum = emit(OpType::reduce_sum, "sum" + number, {gradient}, std::move(kept), tensor(gradient).dtype,
                            std::move(attributes));
  return reshape(sum, shape, "sum" + number + "_view");
}

void GradientTape::give(TensorId of, TensorId gradient) {
  if (!wanted_[of]) return;
  const Tensor& target = forward_.tensors()[of];
  TensorId given = sum_to(gradient, target.shape);
  if (tensor(given).dtype != target.dtype) {
    Attributes attributes;
    attributes.set("to", std::string(to_string(target.dtype)));
    const std::string role = converted_ == 0 ? "cast" : fmt::format("cast{}", converted_ + 1);
    ++converted_;
    given = emit(OpType::cast, role, {given}, target.shape, target.dtype, std::move(attributes));
  }
  TensorId& total = gradient_[of];
  if (total != kNoTensor) {
    --holders_[total - gradient_.size()];
    ++sums_;
    given = emit(OpType::add, sums_ == 1 ? "accumulate" : fmt::format("accumulate{}", sums_), {total, given},
                 target.shape, target.dtype);
  }
  total = given;
  ++holders_[given - gradient_.size()];
}

TensorId GradientTape::dropout_mask(const Node& node) {
  if (node.outputs.size() > 1) return node.outputs[1];
  const Tensor& y = tensor(node.outputs[0]);
  const TensorId mask = add({.name = y.name + ".mask", .shape = y.shape, .dtype = DataType::boolean});
  masks_.emplace_back(current_, mask);
  return mask;
}

void GradientTape::unsupported(const Node& node) const {
  throw UnsupportedError(
      fmt::format("node '{}': operation {} has no backward rule", one_line(node.id), to_string(node.op)));
}

void GradientTape::seed() {
  const auto known = [&](TensorId t) { return t < gradient_.size() && wanted_[t]; };
  if (known(forward_.loss)) {
    const Tensor& loss = tensor(forward_.loss);
    if (loss.producer == kNoNode) return;
    begin(loss.producer);
    Attributes attributes;
    attributes.set("shape", loss.shape);
    attributes.set("dtype", std::string(to_string(loss.dtype)));
    attributes.set("value", 1.0);
    give(forward_.loss, emit(OpType::fill, "seed", {}, loss.shape, loss.dtype, std::move(attributes)));
    return;
  }
  if (forward_.loss < gradient_.size()) return;
  for (const TensorId t : forward_.outputs) {
    if (!known(t) || gradient_[t] != kNoTensor) continue;
    const Tensor& output = tensor(t);
    gradient_[t] = add(
        {.name = output.name + ".grad", .shape = output.shape, .dtype = output.dtype, .role = TensorRole::gradient});
    ++holders_.back();
  }
}

void GradientTape::begin(NodeId node) {
  current_ = node;
  sums_ = 0;
  converted_ = 0;
}

void GradientTape::finish_parameters(bool accumulate) {
  for (const TensorId parameter : final_of_[current_]) {
    if (gradient_[parameter] != kNoTensor) finish_parameter(parameter, accumulate);
  }
}

void GradientTape::append_to(OpGraph& graph) && {
  ensure(&graph == &forward_, "a tape is appended to the graph it was made for");
  for (Tensor& tensor : tensors_) {
    tensor.producer = kNoNode;
    graph.add_tensor(std::move(tensor));
  }
  for (const auto& [node, mask] : masks_) {
    graph.node(node).outputs.push_back(mask);
    graph.tensor(mask).producer = node;
  }
  for (Node& node : nodes_) graph.add_node(std::move(node));
}

/// Frameworks keep the tensor that backward computed as .grad when nothing else holds it, and copy it otherwise.
void GradientTape::finish_parameter(TensorId parameter, bool accumulate) {
  const Tensor& of = forward_.tensors()[parameter];
  TensorId fresh = gradient_[parameter];
  const std::size_t index = fresh - gradient_.size();
  if (accumulate) {
    const TensorId total =
        add({.name = of.name + ".grad", .shape = of.shape, .dtype = of.dtype, .role = TensorRole::parameter_gradient});
    Attributes attributes;
    attributes.set("elements", of.elements());
    emit(OpType::grad_accumulate, "accumulate_" + of.name, {total, fresh}, std::vector<Shape>{}, of.dtype,
         std::move(attributes));
    gradient_[parameter] = total;
    return;
  }
  const NodeId producer = tensors_[index].producer;
  const bool owned = producer != kNoNode && !is_view(nodes_[producer].op) && holders_[index] == 1;
  if (!owned) fresh = emit(OpType::copy, "grad_" + of.name, {fresh}, of.shape, of.dtype);
  Tensor& final = tensors_[fresh - gradient_.size()];
  final.name = of.name + ".grad";
  final.role = TensorRole::parameter_gradient;
  gradient_[parameter] = fresh;
}

}  // namespace voltaic::graph::detail
