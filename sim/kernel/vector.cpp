// SPDX-License-Identifier: MIT
#include "sim/kernel/vector.hpp"

#include <algorithm>
#include <utility>

namespace voltaic::kernel::vector {

namespace {

std::int64_t ceil_div(double a, double b) {
  return static_cast<std::int64_t>(std::min(9e18, std::max(0.0, (a + b - 1) / b)));
}

Work work_of(const Pass& pass, double flop_per_element) {
  Work work;
  work.read = Bytes{pass.read};
  work.written = Bytes{pass.written};
  work.other_flop = pass.elements * flop_per_element;
  return work;
}

std::string_view family_of(VectorKind kind) {
  switch (kind) {
    case VectorKind::elementwise:
    case VectorKind::elementwise_broadcast: return "elementwise";
    case VectorKind::half_elementwise:
    case VectorKind::half_activation:
    case VectorKind::half_layer_norm:
    case VectorKind::serving_norm:
    case VectorKind::serving_rope:
    case VectorKind::serving_gate:
    case VectorKind::index_select_small:
    case VectorKind::index_select_large: return to_string(kind);
    case VectorKind::softmax_warp:
    case VectorKind::softmax_block: return "softmax";
    case VectorKind::layer_norm: return "layer_norm";
    case VectorKind::norm_backward:
    case VectorKind::norm_param_grad: return "norm_backward";
    case VectorKind::batch_norm: return "batch_norm";
    case VectorKind::reduction: return "reduction";
    case VectorKind::copy:
    case VectorKind::copy_strided:
    case VectorKind::fill: return "data_movement";
    case VectorKind::embedding:
    case VectorKind::scatter: return "embedding";
    case VectorKind::dropout: return "dropout";
    case VectorKind::pooling: return "pooling";
    case VectorKind::cross_entropy: return "loss";
    case VectorKind::optimizer: return "optimizer";
  }
  return "elementwise";
}

/// The innermost dim along which an operand repeats; elements of the output that pass between two reads of it.
std::int64_t repeat_period(const graph::Shape& operand, const graph::Shape& out) {
  std::int64_t period = 1;
  const std::size_t offset = out.size() - std::min(operand.size(), out.size());
  for (std::size_t i = out.size(); i-- > 0;) {
    const std::int64_t dim = i >= offset && i - offset < operand.size() ? operand[i - offset] : 1;
    if (dim != out[i]) return period;  // Also where a kernel that was fused across views indexes otherwise.
    period *= out[i];
  }
  return period;
}

}  // namespace

double stored_bytes(const graph::OpGraph& graph, graph::TensorId id) {
  const graph::Tensor* tensor = &graph.tensor(id);
  std::int64_t least = tensor->elements();
  const double element = bytes_per_element(tensor->dtype);
  for (int views = 0; views < kMaxViews && tensor->producer != graph::kNoNode; ++views) {
    const graph::Node& node = graph.node(tensor->producer);
    if (graph::family(node.op) != graph::OpFamily::view || node.inputs.empty()) break;
    tensor = &graph.tensor(node.inputs.front());
    least = std::min(least, tensor->elements());
  }
  return static_cast<double>(least) * element;
}

double stored_bytes(const graph::OpGraph& graph, std::span<const graph::TensorId> ids) {
  double bytes = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto before = ids.first(i);
    // Long lists (optimizers) hold distinct tensors; short ones may name one twice (x * x).
    if (ids.size() <= 16 && std::find(before.begin(), before.end(), ids[i]) != before.end()) continue;
    bytes += stored_bytes(graph, ids[i]);
  }
  return bytes;
}

Pass pass_of(const graph::OpGraph& graph, const graph::Node& node) {
  Pass pass;
  pass.read = stored_bytes(graph, node.inputs);
  for (const auto id : node.outputs) pass.written += graph.tensor(id).bytes();
  pass.inputs = std::max<int>(1, static_cast<int>(node.inputs.size()));
  const auto& ids = node.outputs.empty() ? node.inputs : node.outputs;
  if (ids.empty()) return pass;
  const graph::Tensor& main = graph.tensor(ids.front());
  pass.elements = static_cast<double>(main.elements());
  pass.element_bytes = bytes_per_element(main.dtype);
  return pass;
}

void add_broadcast(const graph::OpGraph& graph, const graph::Node& node, Launch& launch) {
  const graph::Tensor& y = graph.tensor(node.outputs.front());
  auto& detail = std::get<VectorKernel>(launch.detail);
  const double n = static_cast<double>(y.elements());
  if (!(n > 0)) return;
  const double bytes_per_output = launch.work.traffic().value / n;
  for (const auto id : node.inputs) {
    const graph::Tensor& x = graph.tensor(id);
    const double element = bytes_per_element(x.dtype);
    const double again = n * element - stored_bytes(graph, id);
    if (!(again > 0) || x.elements() <= 1) continue;
    const double period = static_cast<double>(repeat_period(x.shape, y.shape));
    const double reuse = period * (bytes_per_output + element);
    detail.reuse_bytes = std::max(detail.reuse_bytes, reuse);
    detail.reread_bytes += again;
  }
}

Launch elementwise(std::string_view function, const Pass& pass, VectorKind kind) {
  Launch launch;
  launch.name = kind == VectorKind::elementwise ? "vectorized_elementwise_kernel<4>" : "elementwise_kernel<128, 4>";
  launch.library = "ATen";
  launch.family = family_of(kind);
  launch.grid[0] = ceil_div(pass.elements, 512);
  launch.cta = CtaResources{128, 32, Bytes{0}};
  launch.work = work_of(pass, 1);
  VectorKernel detail;
  detail.kind = kind;
  detail.rows = static_cast<std::int64_t>(std::min(9e18, pass.elements));
  detail.tensor_inputs = pass.inputs;
  detail.function = function;
  detail.element_bytes = pass.element_bytes;
  launch.detail = std::move(detail);
  return launch;
}

Launch rowwise(std::string name, VectorKind kind, std::int64_t rows, std::int64_t cols, int threads, const Pass& pass) {
  Launch launch;
  launch.name = std::move(name);
  launch.library = "ATen";
  launch.family = family_of(kind);
  launch.grid[0] = rows;
  launch.cta = CtaResources{threads, 32, Bytes{0}};
  launch.work = work_of(pass, 4);
  VectorKernel detail;
  detail.kind = kind;
  detail.rows = rows;
  detail.cols = cols;
  detail.tensor_inputs = pass.inputs;
  detail.element_bytes = pass.element_bytes;
  launch.detail = std::move(detail);
  return launch;
}

Launch reduce(std::int64_t rows, std::int64_t cols, double read, double written, double element_bytes) {
  const Pass pass{static_cast<double>(rows) * static_cast<double>(cols), read, written, 1, element_bytes};
  Launch launch = rowwise("reduce_kernel<512, 1>", VectorKind::reduction, rows, cols, 512, pass);
  launch.grid[0] = std::max<std::int64_t>(rows > 0 ? 1 : 0, ceil_div(pass.elements, 512 * 16));
  launch.work.other_flop = pass.elements;
  return launch;
}

Launch fill(double bytes, double element_bytes) {
  const Pass pass{bytes / std::max(element_bytes, 0.125), 0, bytes, 1, element_bytes};
  Launch launch = elementwise("", pass, VectorKind::fill);
  launch.name = "vectorized_elementwise_kernel<4>";
  launch.work.other_flop = 0;
  return launch;
}

void push(std::vector<Launch>& launches, Launch launch) {
  if (launch.ctas() > 0 && launch.work.traffic().value > 0) launches.push_back(std::move(launch));
}

std::int64_t product(const graph::Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < to && i < shape.size(); ++i) n *= shape[i];
  return n;
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  const std::int64_t positive = axis < 0 ? axis + r : axis;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(positive, 0, std::max<std::int64_t>(r - 1, 0)));
}

}  // namespace voltaic::kernel::vector
