// SPDX-License-Identifier: MIT
// The entry points of shape inference and the rules that hardly change a shape; the others stand in shape_rules_*.cpp.
#include "sim/graph/shape_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "sim/graph/detail/op_schema.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph {

namespace {

std::string count_text(int least, int most, std::string_view noun) {
  const auto plural = [&](int n) { return n == 1 ? "" : "s"; };
  if (least == most) return fmt::format("{} {}{}", least, noun, plural(least));
  if (most == detail::kMany) return fmt::format("{} or more {}s", least, noun);
  return fmt::format("{} to {} {}s", least, most, noun);
}

void check_count(OpType op, std::size_t got, int least, int most, std::string_view noun) {
  if (got >= static_cast<std::size_t>(least) && got <= static_cast<std::size_t>(most)) return;
  throw ShapeError(fmt::format("{}: expected {}, got {}", to_string(op), count_text(least, most, noun), got),
                   fmt::format("{}s", noun));
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t d = 0; d < shorter.size(); ++d) {
    std::int64_t& dim = result[offset + d];
    if (dim == shorter[d] || shorter[d] == 1) continue;
    if (dim != 1) {
      throw ShapeError(
          fmt::format("expected shapes that broadcast together, got {} and {}", to_string(a), to_string(b)));
    }
    dim = shorter[d];
  }
  return result;
}

std::vector<TensorType> infer(OpType op, const Attributes& attributes, std::span<const TensorType> inputs) {
  std::vector<detail::TypeRef> refs;
  refs.reserve(inputs.size());
  for (const TensorType& input : inputs) refs.push_back({&input.shape, input.dtype});
  return detail::infer({op, attributes, refs});
}

namespace detail {

Types infer(const RuleContext& c) {
  const OpSchema expected = schema(c.op);
  check_count(c.op, c.input_count(), expected.min_inputs, expected.max_inputs, "input");
  auto outputs = [&]() -> Types {
    switch (family(c.op)) {
      case OpFamily::matrix: return matrix_rule(c);
      case OpFamily::convolution: return convolution_rule(c);
      case OpFamily::attention: return attention_rule(c);
      case OpFamily::recurrent: return recurrent_rule(c);
      case OpFamily::normalization: return normalization_rule(c);
      case OpFamily::pointwise: return pointwise_rule(c);
      case OpFamily::softmax: return softmax_rule(c);
      case OpFamily::reduction: return reduction_rule(c);
      case OpFamily::pooling: return pooling_rule(c);
      case OpFamily::resize: return resize_rule(c);
      case OpFamily::embedding: return embedding_rule(c);
      case OpFamily::gather_scatter: return gather_scatter_rule(c);
      case OpFamily::sparse: return sparse_rule(c);
      case OpFamily::moe: return moe_rule(c);
      case OpFamily::view:
      case OpFamily::data_movement: return movement_rule(c);
      case OpFamily::random: return random_rule(c);
      case OpFamily::loss: return loss_rule(c);
      case OpFamily::optimizer: return {};
      case OpFamily::transfer: return {c.like(0)};
      case OpFamily::collective: return collective_rule(c);
    }
    return {};
  }();
  for (const TensorType& output : outputs) check_shape(output.shape);
  return outputs;
}

Types infer_outputs(std::span<const Tensor> tensors, const Node& node, std::size_t output_count) {
  const auto ref = [&](TensorId id) {
    ensure(id < tensors.size(), "a node reads a tensor that does not exist");
    const Tensor& tensor = tensors[id];
    return TypeRef{&tensor.shape, tensor.dtype};
  };
  constexpr std::size_t kUsual = 8;  // Nearly every node: no heap for those.
  std::array<TypeRef, kUsual> few;
  std::vector<TypeRef> many;
  std::span<const TypeRef> refs;
  if (node.inputs.size() <= kUsual) {
    std::transform(node.inputs.begin(), node.inputs.end(), few.begin(), ref);
    refs = std::span(few).first(node.inputs.size());
  } else {
    many.reserve(node.inputs.size());
    for (const TensorId id : node.inputs) many.push_back(ref(id));
    refs = many;
  }
  Types outputs = infer({node.op, node.attributes, refs});
  const OpSchema expected = schema(node.op);
  const bool each = node.op == OpType::split;  // Each part needs a name; elsewhere trailing outputs may stay unnamed.
  const int least = each ? static_cast<int>(outputs.size()) : expected.min_outputs;
  check_count(node.op, output_count, least, std::min(expected.max_outputs, static_cast<int>(outputs.size())), "output");
  return outputs;
}

}  // namespace detail

}  // namespace voltaic::graph
