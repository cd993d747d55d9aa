// SPDX-License-Identifier: MIT
#include "sim/kernel/fused.hpp"

#include <algorithm>
#include <string>

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;

/// "add,gelu" as static names; unknown words are left out.
std::vector<std::string_view> function_list(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (const auto op = graph::parse_op(list.substr(0, comma))) names.push_back(graph::to_string(*op));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

bool is_reduction(OpType op) {
  const auto f = graph::family(op);
  const bool norm = f == graph::OpFamily::normalization && op != OpType::batch_norm;
  return f == graph::OpFamily::softmax || norm;
}

/// Each operand once. A table gives one element per result, however long it is; a small operand its own bytes.
void add_bytes(const OpGraph& graph, const Node& node, FusedKernel& kernel) {
  const graph::Tensor& y = graph.tensor(node.outputs.front());
  const double n = static_cast<double>(y.elements());
  kernel.pass.elements = n;
  kernel.pass.element_bytes = bytes_per_element(y.dtype);
  for (const auto id : node.outputs) kernel.pass.written += graph.tensor(id).bytes();
  const auto of_rows = node.attributes.integer("row_inputs", static_cast<std::int64_t>(node.inputs.size()));
  int streams = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto before = std::span(node.inputs).first(i);
    if (std::find(before.begin(), before.end(), node.inputs[i]) != before.end()) continue;
    const graph::Tensor& x = graph.tensor(node.inputs[i]);
    const double whole = n * bytes_per_element(x.dtype);
    const double bytes = std::min(vector::stored_bytes(graph, node.inputs[i]), whole);
    kernel.pass.read += bytes;
    if (bytes < whole) continue;
    ++streams;
    if (static_cast<std::int64_t>(i) < of_rows) kernel.row_bytes += bytes;
  }
  kernel.pass.inputs = std::max(1, streams);
}

void set_rows(FusedKernel& kernel, std::int64_t cols) {
  kernel.cols = std::max<std::int64_t>(cols, 1);
  kernel.rows = static_cast<std::int64_t>(kernel.pass.elements / static_cast<double>(kernel.cols));
}

}  // namespace

bool generates_kernels(Framework framework) {
  return framework != Framework::eager && framework != Framework::graph;
}

bool generates_rows(Framework framework) {
  return generates_kernels(framework) && framework != Framework::xla;
}

FusedKernel fused_pointwise_kernel(const OpGraph& graph, const Node& node) {
  FusedKernel kernel;
  kernel.functions = kernel.pointwise = function_list(node.attributes.word("functions", ""));
  add_bytes(graph, node, kernel);
  return kernel;
}

FusedKernel row_kernel(const OpGraph& graph, const Node& node, OpType reduction, std::int64_t cols) {
  FusedKernel kernel;
  kernel.functions = {graph::to_string(reduction)};
  kernel.reduction = reduction;
  add_bytes(graph, node, kernel);
  set_rows(kernel, cols);
  return kernel;
}

FusedKernel fused_row_kernel(const OpGraph& graph, const Node& node) {
  FusedKernel kernel;
  kernel.functions = function_list(node.attributes.word("functions", ""));
  kernel.reduction = node.op == OpType::fused_softmax ? OpType::softmax : OpType::layer_norm;
  for (const auto name : kernel.functions) {
    const auto op = graph::parse_op(name);
    if (op && is_reduction(*op)) {
      kernel.reduction = *op;
    } else {
      kernel.pointwise.push_back(name);
    }
  }
  add_bytes(graph, node, kernel);
  set_rows(kernel, node.attributes.integer("cols", 1));
  return kernel;
}

void finish_generated(Launch& launch, const FusedKernel& kernel, const OpGraph& graph, const Node& node,
                      const Target& target) {
  const bool rows = kernel.rows > 0;
  launch.name = !rows ? "triton_poi_fused" : kernel.held() ? "triton_per_fused" : "triton_red_fused";
  for (const auto function : kernel.functions) launch.name.append("_").append(function);
  launch.library = target.framework == Framework::tensorrt ? "TensorRT" : "Triton";
  launch.work.other_flop = graph::count(graph, node).other_flop;
  std::get<VectorKernel>(launch.detail).fused = kernel.pointwise;
}

}  // namespace voltaic::kernel
