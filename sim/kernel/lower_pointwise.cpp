// SPDX-License-Identifier: MIT
// Pointwise operations: one kernel each in eager frameworks, with a few that ATen composes from several.
#include <algorithm>
#include <array>

#include "sim/kernel/fused.hpp"
#include "sim/kernel/serving.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

HostClass host_class(OpType op) {
  switch (op) {
    case OpType::relu:
    case OpType::relu6:
    case OpType::leaky_relu:
    case OpType::elu:
    case OpType::gelu:
    case OpType::gelu_tanh:
    case OpType::silu:
    case OpType::hardswish:
    case OpType::hardsigmoid:
    case OpType::mish:
    case OpType::softplus: return HostClass::activation;
    case OpType::add_scalar:
    case OpType::mul_scalar:
    case OpType::div_scalar:
    case OpType::sub_scalar:
    case OpType::pow_scalar:
    case OpType::maximum_scalar:
    case OpType::compare_scalar:
    case OpType::clamp: return HostClass::pointwise_scalar;
    default: return HostClass::pointwise;
  }
}

/// Special-function calls per element: a lower bound, so only those that the function cannot do without.
double special_calls(OpType op) {
  switch (op) {
    case OpType::exp:
    case OpType::log:
    case OpType::sin:
    case OpType::cos:
    case OpType::rsqrt:
    case OpType::reciprocal:
    case OpType::silu:
    case OpType::sigmoid:
    case OpType::silu_mul: return 1;
    default: return 0;
  }
}

/// Powers that ATen turns into products and roots.
bool cheap_power(double exponent) {
  constexpr std::array<double, 8> kCheap{0, 0.5, 1, 2, 3, -0.5, -1, -2};
  return std::find(kCheap.begin(), kCheap.end(), exponent) != kCheap.end();
}

std::string_view function_of(const Node& node) {
  if (node.op == OpType::pow_scalar && cheap_power(node.attributes.number("value", 1))) return "square";
  return graph::to_string(node.op);
}

bool broadcasts(const OpGraph& graph, const Node& node) {
  const std::int64_t n = graph.tensor(node.outputs.front()).elements();
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](graph::TensorId id) { return graph.tensor(id).elements() != n; });
}

bool takes_time(std::string_view function) {
  constexpr std::array<std::string_view, 9> kSlow{"gelu", "gelu_tanh", "silu", "sigmoid", "tanh",
                                                  "exp",  "erf",       "mish", "softplus"};
  return std::find(kSlow.begin(), kSlow.end(), function) != kSlow.end();
}

/// Contiguous pointwise kernels on two-byte types have laws of their own.
void halve(Launch& launch, const Pass& pass) {
  auto& detail = std::get<VectorKernel>(launch.detail);
  if (detail.kind != VectorKind::elementwise || !serving::serves(pass)) return;
  const bool slow = takes_time(detail.function) || std::any_of(detail.fused.begin(), detail.fused.end(), takes_time);
  detail.kind = slow ? VectorKind::half_activation : VectorKind::half_elementwise;
  launch.family = to_string(detail.kind);
}

Launch plain(const OpGraph& graph, const Node& node, std::string_view function) {
  const Pass pass = vector::pass_of(graph, node);
  const bool broadcast = broadcasts(graph, node);
  Launch launch =
      vector::elementwise(function, pass, broadcast ? VectorKind::elementwise_broadcast : VectorKind::elementwise);
  launch.work.special = special_calls(node.op) * pass.elements;
  if (broadcast) vector::add_broadcast(graph, node, launch);
  halve(launch, pass);
  return launch;
}

void push_half(Lowered& out, Launch launch, const Pass& pass) {
  halve(launch, pass);
  vector::push(out.launches, std::move(launch));
}

/// The serving stack's own kernel where the engine has it: act(gate) * up of equal tensors.
bool gates(const std::vector<std::string_view>& functions, const Pass& pass, const Target& target) {
  if (target.framework != Framework::tensorrt || !serving::serves(pass) || pass.inputs != 2) return false;
  const auto has = [&](std::string_view f) {
    return std::find(functions.begin(), functions.end(), f) != functions.end();
  };
  return functions.size() == 2 && has("mul") && (has("silu") || has("gelu") || has("gelu_tanh"));
}

Launch gated(const OpGraph& graph, const Node& node, const Pass& pass) {
  const graph::Tensor& y = graph.tensor(node.outputs.front());
  const std::int64_t cols = y.shape.empty() ? 1 : std::max<std::int64_t>(y.shape.back(), 1);
  return serving::gate(y.elements() / cols, cols, pass);
}

/// A chain, or one function under a compiler. Operands that repeat, are gathered or strided read in runs of their own.
Launch fused(const OpGraph& graph, const Node& node, const Target& target) {
  const FusedKernel kernel = fused_pointwise_kernel(graph, node);
  const auto& f = kernel.functions;
  const bool packs = std::find(f.begin(), f.end(), graph::to_string(OpType::contiguous)) != f.end();
  const bool broadcast = broadcasts(graph, node);
  if (!packs && !broadcast && gates(f, kernel.pass, target)) return gated(graph, node, kernel.pass);
  Launch launch = vector::elementwise("", kernel.pass,
                                      broadcast || packs ? VectorKind::elementwise_broadcast : VectorKind::elementwise);
  if (broadcast) vector::add_broadcast(graph, node, launch);
  finish_generated(launch, kernel, graph, node, target);
  halve(launch, kernel.pass);
  return launch;
}

/// Selecting maxima has a gradient of five kernels: compare, halve ties, select, compare, fill [ATEN].
void maximum_backward(const Pass& whole, Lowered& out) {
  const double n = whole.elements;
  const double e = whole.element_bytes;
  vector::push(out.launches, vector::elementwise("compare", Pass{n, e * n, n, 2, e}));
  vector::push(out.launches, vector::elementwise("div_scalar", Pass{n, e * n, e * n, 1, e}));
  vector::push(out.launches, vector::elementwise("where", Pass{n, (1 + 2 * e) * n, e * n, 3, e}));
  vector::push(out.launches, vector::elementwise("compare", Pass{n, e * n, n, 2, e}));
  vector::push(out.launches, vector::elementwise("masked_fill", Pass{n, (1 + e) * n, e * n, 2, e}));
  out.host_calls = 5;
}

void backward(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const auto of = graph::parse_op(node.attributes.word("of", ""));
  if (!generates_kernels(target.framework) &&
      (of == OpType::maximum || of == OpType::minimum || of == OpType::maximum_scalar)) {
    return maximum_backward(vector::pass_of(graph, node), out);
  }
  Launch launch = plain(graph, node, of ? graph::to_string(*of) : "");
  std::get<VectorKernel>(launch.detail).backward = true;
  launch.work.other_flop *= 2;
  vector::push(out.launches, std::move(launch));
}

/// Out of place, ATen copies the input and then fills the copy under the mask. Gradients of other operations fill in
/// place or select, in one kernel.
bool copies_first(const OpGraph& graph, const Node& node, const Target& target) {
  if (target.framework != Framework::eager && target.framework != Framework::graph) return false;
  return node.forward_of == graph::kNoNode || graph.node(node.forward_of).op == OpType::masked_fill;
}

void masked_fill(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  if (copies_first(graph, node, target)) {
    const graph::Tensor& y = graph.tensor(node.outputs.front());
    const double n = static_cast<double>(y.elements());
    const double e = bytes_per_element(y.dtype);
    vector::push(out.launches, vector::elementwise("", Pass{n, e * n, e * n, 1, e}, VectorKind::copy));
  }
  vector::push(out.launches, plain(graph, node, "masked_fill"));
}

/// Columns of a token that turn: heads side by side where the layout holds heads apart.
std::int64_t rotated_cols(const OpGraph& graph, const Node& node) {
  const graph::Shape& x = graph.tensor(node.inputs.front()).shape;
  if (x.empty()) return 1;
  const std::int64_t heads = x.size() == 4 ? x[1] : 1;
  return std::max<std::int64_t>(1, x.back() * heads);
}

/// A rotation of each pair: in eager code a negation, a concatenation, two products and a sum.
void rope(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const Pass pass = vector::pass_of(graph, node);
  const double x = graph.tensor(node.inputs.front()).bytes();
  const double tables = pass.read - x;
  const double n = pass.elements;
  if (generates_kernels(target.framework) && serving::serves(pass)) {
    const std::int64_t cols = rotated_cols(graph, node);
    const std::int64_t query = std::clamp<std::int64_t>(node.attributes.integer("query_cols", cols), 1, cols);
    const auto rows = static_cast<std::int64_t>(n / static_cast<double>(cols));
    vector::push(out.launches, serving::rope(rows, query, cols - query, pass.element_bytes));
    return;
  }
  if (generates_kernels(target.framework)) {
    Launch launch = vector::elementwise("rope", pass, VectorKind::elementwise_broadcast);
    launch.name = "rotary_embedding_kernel";
    launch.work.other_flop = 3 * n;
    vector::push(out.launches, std::move(launch));
    return;
  }
  const double e = pass.element_bytes;
  vector::push(out.launches,
               vector::elementwise("neg", Pass{n / 2, x / 2, x / 2, 1, e}, VectorKind::elementwise_broadcast));
  vector::push(out.launches, vector::elementwise("", Pass{n, x, x, 2, e}, VectorKind::copy_strided));
  vector::push(out.launches,
               vector::elementwise("mul", Pass{n, x + tables / 2, x, 2, e}, VectorKind::elementwise_broadcast));
  vector::push(out.launches,
               vector::elementwise("mul", Pass{n, x + tables / 2, x, 2, e}, VectorKind::elementwise_broadcast));
  vector::push(out.launches, vector::elementwise("add", Pass{n, 2 * x, x, 2, e}));
  out.host_calls = 5;
}

void cast(const OpGraph& graph, const Node& node, Lowered& out) {
  const DataType from = graph.tensor(node.inputs.front()).dtype;
  if (from == graph.tensor(node.outputs.front()).dtype) {
    out.host = HostClass::view;
    return;
  }
  Launch launch = plain(graph, node, "cast");
  launch.name = "unrolled_elementwise_kernel<copy>";
  vector::push(out.launches, std::move(launch));
}

}  // namespace

Lowered lower_pointwise(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  if (graph::family(node.op) == graph::OpFamily::random) return lower_random(graph, node, target);
  Lowered out;
  out.host = host_class(node.op);
  switch (node.op) {
    case OpType::cast: cast(graph, node, out); break;
    case OpType::rope: rope(graph, node, target, out); break;
    case OpType::masked_fill: masked_fill(graph, node, target, out); break;
    case OpType::pointwise_backward: backward(graph, node, target, out); break;
    case OpType::fused_pointwise: vector::push(out.launches, fused(graph, node, target)); break;
    case OpType::silu_mul:
    case OpType::gelu_mul:
      // Eager code runs the activation and the product as two kernels.
      if (target.framework == Framework::eager || target.framework == Framework::graph) {
        Pass pass = vector::pass_of(graph, node);
        const double bytes = graph.tensor(node.outputs.front()).bytes();
        pass.inputs = 1;
        pass.read = bytes;
        push_half(out, vector::elementwise(node.op == OpType::silu_mul ? "silu" : "gelu", pass), pass);
        pass.inputs = 2;
        pass.read = 2 * bytes;
        push_half(out, vector::elementwise("mul", pass), pass);
        out.host_calls = 2;
        break;
      }
      if (const Pass pass = vector::pass_of(graph, node);
          !broadcasts(graph, node) && gates({"silu", "mul"}, pass, target)) {
        vector::push(out.launches, gated(graph, node, pass));
        break;
      }
      [[fallthrough]];
    default: vector::push(out.launches, plain(graph, node, function_of(node))); break;
  }
  return out;
}

}  // namespace voltaic::kernel
