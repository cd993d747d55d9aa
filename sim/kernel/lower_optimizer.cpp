// SPDX-License-Identifier: MIT
// Optimizer steps and gradient bookkeeping: multi-tensor kernels that stream weights, gradients and state.
#include <algorithm>
#include <array>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;

/// fp32 tensors that one step reads and writes per parameter, when the node does not say.
struct StepTraffic {
  std::string_view optimizer;
  double read, written, launches;
};
/// For graphs that come with optimizer nodes of their own; the optimizer pass states its traffic in the node.
constexpr std::array<StepTraffic, 5> kSteps{{
    {"sgd", 2, 1, 1},       // weight, gradient
    {"momentum", 3, 2, 1},  // and velocity
    {"adam", 4, 3, 1},      // and both moments, fused
    {"adamw", 4, 3, 1},
    {"lamb", 8, 4, 2},  // p, g, m, v; norms of p and update; p, update
}};

const StepTraffic& traffic_of(std::string_view optimizer) {
  const auto* at = std::find_if(kSteps.begin(), kSteps.end(), [&](const auto& s) { return s.optimizer == optimizer; });
  return at == kSteps.end() ? kSteps[2] : *at;
}

/// Chunks of 65,536 elements, one CTA each [ATEN]. Simplification: one launch where a library splits long tensor lists.
Launch multi_tensor(std::string name, double elements, double read, double written, double flop_per_element) {
  const vector::Pass pass{elements, read, written, 3, 4};
  Launch launch = vector::elementwise("", pass, VectorKind::optimizer);
  launch.name = std::move(name);
  launch.cta = CtaResources{512, 40, Bytes{0}};
  launch.grid[0] = static_cast<std::int64_t>(std::min(9e18, elements / 65536)) + 1;
  launch.work.other_flop = flop_per_element * elements;
  return launch;
}

double elements_of(const OpGraph& graph, const Node& node, double per_parameter) {
  const double stated = node.attributes.number("elements", -1);
  if (stated >= 0) return stated;
  double n = 0;
  for (const auto id : node.inputs) n += static_cast<double>(graph.tensor(id).elements());
  return n / per_parameter;
}

void step(const OpGraph& graph, const Node& node, Lowered& out) {
  const std::string optimizer = node.attributes.word("optimizer", "adam");
  if (optimizer == "plain") {  // One line of the rule over one tensor.
    const double element = node.inputs.empty() ? 4 : bytes_per_element(graph.tensor(node.inputs.front()).dtype);
    const double plain = elements_of(graph, node, 2);
    const vector::Pass pass{plain, node.attributes.number("read_bytes", 2 * element * plain),
                            node.attributes.number("written_bytes", element * plain), 2, element};
    vector::push(out.launches, vector::elementwise("add", pass));
    out.host = HostClass::pointwise;
    return;
  }
  const StepTraffic& traffic = traffic_of(optimizer);
  const double n = elements_of(graph, node, 2);
  const double read = node.attributes.number("read_bytes", traffic.read * 4 * n);
  const double written = node.attributes.number("written_bytes", traffic.written * 4 * n);
  vector::push(out.launches, multi_tensor("multi_tensor_apply_kernel<" + optimizer + ">", n, read, written, 12));
}

}  // namespace

Lowered lower_optimizer(const graph::OpGraph& graph, const graph::Node& node, const Target&) {
  Lowered out;
  out.host = HostClass::other;
  const double n = elements_of(graph, node, 1);
  const double element = node.inputs.empty() ? 4 : bytes_per_element(graph.tensor(node.inputs.front()).dtype);
  const double bytes = element * n;
  switch (node.op) {
    case OpType::optimizer_step: step(graph, node, out); break;
    case OpType::grad_accumulate: {
      const double read = node.attributes.number("read_bytes", 2 * bytes);
      Launch launch = vector::elementwise("add", vector::Pass{n, read, bytes, 2, element});
      vector::push(out.launches, std::move(launch));
      break;
    }
    case OpType::zero_grad: vector::push(out.launches, vector::fill(bytes, element)); break;
    default: vector::push(out.launches, multi_tensor("multi_tensor_apply_kernel<unscale>", n, bytes, bytes, 1)); break;
  }
  return out;
}

}  // namespace voltaic::kernel
