// SPDX-License-Identifier: MIT
// Bags of table rows, as recommendation models run them: FBGEMM's fused kernels [FBGEMM], one warp per bag.
#include <algorithm>
#include <cmath>

#include "sim/kernel/gather.hpp"
#include "sim/kernel/sorting.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using vector::Pass;

constexpr double kVector = 16;  // Bytes of a thread's load.
constexpr double kOffset = 8;   // Bytes.

struct Bag {
  double samples = 0, lookups = 0;
  double element = 4;
  std::int64_t width = 1;
  RowAccess table;
  double index_bytes = 0;  ///< Of ids and offsets.
};

Bag bag_of(const graph::Tensor& ids, std::int64_t rows, std::int64_t width, DataType dtype, const Node& node) {
  Bag b;
  b.samples = static_cast<double>(ids.shape[0]);
  b.lookups = static_cast<double>(ids.elements());
  b.element = bytes_per_element(dtype);
  b.width = width;
  b.table.rows = static_cast<double>(rows);
  b.table.row_bytes = b.element * static_cast<double>(width);
  b.table.lookups = b.lookups;
  b.table.exponent = node.attributes.number("zipf", 0);
  b.index_bytes = ids.bytes() + kOffset * (b.samples + 1);
  return b;
}

/// A warp per bag (or per distinct row), eight to a CTA; lanes load vectors along the row.
Launch warp_per_row(std::string name, VectorKind kind, double rows, const Bag& b, const Pass& pass) {
  Launch launch = vector::elementwise("", pass, kind);
  launch.name = std::move(name);
  launch.library = "FBGEMM";
  launch.family = "embedding";
  launch.cta = CtaResources{256, 40, Bytes{0}};
  launch.grid[0] = static_cast<std::int64_t>(std::ceil(rows / 8));
  launch.work.other_flop = b.lookups * static_cast<double>(b.width);
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.element_bytes = std::clamp(b.table.row_bytes, b.element, kVector);  // Rows may have no elements.
  detail.cols = std::max<std::int64_t>(1, b.width);
  detail.rows = static_cast<std::int64_t>(rows);
  return launch;
}

void forward(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& ids = graph.tensor(node.inputs[0]);
  const graph::Tensor& table = graph.tensor(node.inputs[1]);
  const graph::Tensor& y = graph.tensor(node.outputs[0]);
  const Bag b = bag_of(ids, table.shape[0], table.shape[1], table.dtype, node);
  const RowBytes rows = row_bytes(b.table, target.gpu);
  const Pass pass{b.lookups * static_cast<double>(b.width), b.index_bytes + rows.once, y.bytes(), 1, b.element};
  Launch launch =
      warp_per_row("split_embedding_codegen_forward_unweighted_kernel", VectorKind::embedding, b.samples, b, pass);
  set_rereads(launch, rows);
  vector::push(out.launches, std::move(launch));
}

/// Ids sorted with their bags, so that one warp sums all gradients of a row, which it reads by bag. The sum goes to a
/// dense gradient, cleared before, or updates the row itself (`fused_update`): read, changed, written.
void backward(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& dy = graph.tensor(node.inputs[0]);
  const graph::Tensor& ids = graph.tensor(node.inputs[1]);
  const bool updates = node.attributes.flag("fused_update");
  const Bag b = bag_of(ids, node.attributes.integer("rows", 0), dy.shape[1], dy.dtype, node);
  if (!updates) vector::push(out.launches, vector::fill(graph.tensor(node.outputs[0]).bytes(), b.element));
  push_radix_sort(out.launches,
                  {.pairs = b.lookups, .key_bytes = 8, .value_bytes = 4, .key_bits = index_bits(b.table.rows)});
  RowAccess bags = b.table;  // Gradients of bags, in the order of rows: even.
  bags.rows = b.samples;
  bags.exponent = 0;
  const RowBytes gradients = row_bytes(bags, target.gpu);
  const RowBytes touched = row_bytes({b.table.rows, b.table.row_bytes, b.lookups, b.table.exponent}, target.gpu);
  const double distinct = touched.once / std::max(1.0, b.table.row_bytes);
  const double state = updates ? 4 * distinct : 0;  // Row-wise AdaGrad: a sum of squares per row.
  const double read = 12 * b.lookups + gradients.once + (updates ? touched.once : 0) + state;
  const Pass pass{b.lookups * static_cast<double>(b.width), read, touched.once + state, 2, b.element};
  Launch launch =
      warp_per_row("split_embedding_backward_codegen_kernel_warp_per_row", VectorKind::embedding, distinct, b, pass);
  set_rereads(launch, gradients);
  vector::push(out.launches, std::move(launch));
  out.host_calls = 2;
}

}  // namespace

void lower_embedding_bag(const graph::OpGraph& graph, const graph::Node& node, const Target& target, Lowered& out) {
  if (node.op == graph::OpType::embedding_bag) {
    forward(graph, node, target, out);
  } else {
    backward(graph, node, target, out);
  }
}

}  // namespace voltaic::kernel
