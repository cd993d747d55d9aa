// SPDX-License-Identifier: MIT
// Table lookups and what is built of them: embedding, gather, scatter, expert dispatch and combine.
#include <algorithm>
#include <cmath>

#include "sim/kernel/experts.hpp"
#include "sim/kernel/gather.hpp"
#include "sim/kernel/serving.hpp"
#include "sim/kernel/sorting.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

double bytes_of(const OpGraph& graph, graph::TensorId id) {
  return vector::stored_bytes(graph, id);
}

/// Rows by index, through the kernel `name`. What a thread has in flight bounds these kernels, whether L2 or DRAM
/// delivers it: a row met again takes as long as one met first, as measured lookups in small tables do [NEUDATA].
Launch rows_by_index(std::string name, const graph::Tensor& moved, double index_bytes, const Target& target,
                     int ctas_per_sm) {
  return lookup_launch(std::move(name), moved, {.once = moved.bytes()}, index_bytes, target.gpu, ctas_per_sm);
}

void embedding(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& result = graph.tensor(node.outputs.front());
  const double ids = bytes_of(graph, node.inputs[0]);
  const Pass pass{static_cast<double>(result.elements()), result.bytes() + ids, result.bytes(), 1,
                  bytes_per_element(result.dtype)};
  const std::int64_t cols = result.shape.empty() ? 1 : result.shape.back();
  if (serving::serves(pass) && cols > 0) {
    vector::push(out.launches, serving::lookup(result.elements() / cols, cols, pass, target.gpu.sm.count));
  } else {
    vector::push(out.launches, rows_by_index("indexSelectLargeIndex", result, ids, target, 8));
  }
}

/// Gradients in the order of sorted ids: a thread sums one feature of up to ten of them, then of a row's such parts
/// [ATEN]. The launch has room for a part per tenth id and one more per row.
void sum_sorted(const graph::Tensor& dy, const RowAccess& rows, double touched, Lowered& out) {
  constexpr double kIdsPerPart = 10;
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kMostThreads = 1024;
  const double element = bytes_per_element(dy.dtype);
  const std::int64_t features = std::max<std::int64_t>(1, dy.shape.back());
  const std::int64_t threads = std::min(kMostThreads, (features + kWarp - 1) / kWarp * kWarp);
  const auto width = static_cast<double>(features);
  const double distinct = touched / std::max(1.0, rows.row_bytes);
  const double parts = rows.lookups / kIdsPerPart + distinct;
  const double part_bytes = 4 * width * parts;
  // `loads` depend on each other; while one of them is under way the element itself is not.
  const auto launch_of = [&](const char* name, double summed, double loads, const Pass& pass) {
    const auto count = static_cast<std::int64_t>(std::ceil(summed));
    Launch launch = vector::rowwise(name, VectorKind::scatter, count, features, static_cast<int>(threads), pass);
    launch.grid[0] = count * ((features + threads - 1) / threads);
    std::get<VectorKernel>(launch.detail).element_bytes = pass.element_bytes / loads;
    vector::push(out.launches, std::move(launch));
  };
  constexpr double kIdThenRow = 2;          // sorted id, element
  constexpr double kPartsThenTheirSum = 3;  // first part, id, element
  launch_of("compute_grad_weight", rows.lookups / kIdsPerPart + std::min(rows.lookups, rows.rows), kIdThenRow,
            Pass{static_cast<double>(dy.elements()), dy.bytes() + 8 * rows.lookups, part_bytes, 2, element});
  launch_of("sum_and_scatter", std::min(rows.lookups, rows.rows), kPartsThenTheirSum,
            Pass{width * parts, part_bytes, touched, 1, element});
}

/// Dense gradient of a table: zeroes, then rows added by index. Few indices take one kernel that scans them for each
/// slice of features; many are sorted first [ATEN].
void embedding_backward(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& dy = graph.tensor(node.inputs[0]);
  const graph::Tensor& table = graph.tensor(node.outputs[0]);
  const double element = bytes_per_element(dy.dtype);
  const double ids = static_cast<double>(node.inputs.size() > 1 ? graph.tensor(node.inputs[1]).elements() : 1);
  const std::int64_t features = table.shape.empty() ? 1 : table.shape.back();
  vector::push(out.launches, vector::fill(table.bytes(), element));
  if (!(ids > 0)) return;
  const RowAccess rows{static_cast<double>(table.shape.front()), element * static_cast<double>(features), ids, 0};
  const double touched = row_bytes(rows, target.gpu).once;
  // As in lookups, bytes in flight bound the kernel: a row met again takes as long as one met first.
  const Pass scatter{static_cast<double>(dy.elements()), 2 * dy.bytes() + 8 * ids, dy.bytes(), 2, element};
  constexpr double kSortAbove = 3072;  // ATen: more indices than this are sorted.
  if (ids > kSortAbove) {
    push_radix_sort(out.launches, {.pairs = ids, .key_bytes = 8, .value_bytes = 8, .key_bits = index_bits(rows.rows)});
    for (const auto* name : {"krn_partials_per_segment", "DeviceScanKernel"}) {
      Launch launch = vector::elementwise("", Pass{ids, 16 * ids, 16 * ids, 2, 8});
      launch.name = name;
      launch.library = "CUB";
      launch.family = "embedding";
      vector::push(out.launches, std::move(launch));
    }
  }
  if (ids > kSortAbove) return sum_sorted(dy, rows, touched, out);
  Launch launch = vector::rowwise("embedding_backward_feature_kernel", VectorKind::scatter,
                                  static_cast<std::int64_t>(ids), features, 1024, scatter);
  launch.grid[0] = (features + 31) / 32;
  vector::push(out.launches, std::move(launch));
}

/// Tokens gathered into the slots of their experts: positions by a scan over the choices, then rows copied.
void moe_dispatch(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& slots = graph.tensor(node.outputs[0]);
  const graph::Tensor& index = graph.tensor(node.inputs.size() > 1 ? node.inputs[1] : node.inputs[0]);
  const double choices = static_cast<double>(index.elements());
  vector::push(out.launches, vector::elementwise("add", Pass{choices, 8 * choices, 8 * choices, 1, 8}));
  vector::push(out.launches, lookup_launch("index_elementwise_kernel<128, 4>", slots, {.once = slots.bytes()},
                                           8 * choices, target.gpu, 16));
  out.host_calls = 2;
}

/// Each token sums its k expert rows, weighted.
void moe_combine(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& y = graph.tensor(node.outputs[0]);
  double k = 1;
  if (node.inputs.size() > 1) {
    const auto& shape = graph.tensor(node.inputs[1]).shape;
    if (shape.size() > 1) k = static_cast<double>(shape.back());
  }
  Pass pass{static_cast<double>(y.elements()), k * y.bytes(), y.bytes(), 2, bytes_per_element(y.dtype)};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) pass.read += bytes_of(graph, node.inputs[i]);
  Launch launch = lookup_launch("index_elementwise_kernel<128, 4>", y, {.once = pass.read}, 0, target.gpu, 16);
  launch.work.other_flop = 2 * k * pass.elements;
  vector::push(out.launches, std::move(launch));
}

/// Zeroes, then atomic additions at L2: a row comes there and is written back once, if it stays.
void scatter_add(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs[0]);
  const graph::Tensor& y = graph.tensor(node.outputs[0]);
  const graph::Tensor& index = graph.tensor(node.inputs[1]);
  const double element = bytes_per_element(x.dtype);
  vector::push(out.launches, vector::fill(y.bytes(), element));
  RowBytes rows = row_bytes(access_of(y, index), target.gpu);
  const double read = x.bytes() + bytes_of(graph, node.inputs[1]) + rows.once;
  Launch launch = vector::elementwise("", Pass{static_cast<double>(x.elements()), read, rows.once, 2, element},
                                      VectorKind::scatter);
  launch.name = "_scatter_gather_elementwise_kernel";
  // What a thread has in flight for one element: its value, its index and its sum.
  if (x.elements() > 0) std::get<VectorKernel>(launch.detail).element_bytes = read / static_cast<double>(x.elements());
  rows.again *= 2;  // Read and written.
  rows.far *= 2;
  set_rereads(launch, rows);
  vector::push(out.launches, std::move(launch));
}

}  // namespace

Lowered lower_embedding(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::other;
  const graph::Tensor& result = graph.tensor(node.outputs.front());
  const bool routes = node.op == OpType::moe_dispatch || node.op == OpType::moe_combine;
  if (routes && lower_experts(graph, node, target, out)) return out;
  switch (node.op) {
    case OpType::embedding: embedding(graph, node, target, out); break;
    case OpType::embedding_backward: embedding_backward(graph, node, target, out); break;
    case OpType::embedding_bag:
    case OpType::embedding_bag_backward: lower_embedding_bag(graph, node, target, out); break;
    case OpType::roi_align:
    case OpType::roi_align_backward: lower_regions(graph, node, target, out); break;
    case OpType::gather:
      vector::push(out.launches, rows_by_index("index_elementwise_kernel<128, 4>", result,
                                               bytes_of(graph, node.inputs[1]), target, 16));
      break;
    case OpType::scatter_add: scatter_add(graph, node, target, out); break;
    case OpType::moe_dispatch: moe_dispatch(graph, node, target, out); break;
    default: moe_combine(graph, node, target, out); break;
  }
  return out;
}

}  // namespace voltaic::kernel
