// SPDX-License-Identifier: MIT
// Reductions, scans and selections.
#include <algorithm>

#include "sim/kernel/gather.hpp"
#include "sim/kernel/sorting.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::OpType;

constexpr std::int64_t kLongestInCta = 4096;

struct Rows {
  std::int64_t count = 0, cols = 0;
};

Rows rows_along(const graph::Tensor& x, std::int64_t axis) {
  const std::int64_t cols = x.shape.empty() ? 1 : x.shape[vector::axis_of(axis, x.shape.size())];
  return {cols > 0 ? x.elements() / cols : 0, cols};
}

/// Few long rows are spread over the GPU [ATEN].
bool selects_in_many_ctas(const Rows& r) {
  constexpr std::int64_t kLeast[][2] = {{20, 20000}, {40, 10000}, {80, 8000}, {199, 5000}, {799, 3000}, {4000, 800}};
  for (const auto& [rows, cols] : kLeast) {
    if (r.count <= rows) return r.cols >= cols;
  }
  return r.cols >= 400;
}

/// Radix selection reads each row once per two bits of its key in one CTA, per eight in many [ATEN]; all but the first
/// reading find it in cache. Then the chosen are sorted.
void topk(const graph::Tensor& x, const graph::Tensor& values, double written, Lowered& out) {
  const Rows r = rows_along(x, -1);
  const double element = bytes_per_element(x.dtype);
  const double bits = info(x.dtype).bits;
  const vector::Pass pass{static_cast<double>(x.elements()), x.bytes(), written, 1, element};
  const bool many = selects_in_many_ctas(r);
  const int threads = many ? 256 : static_cast<int>(std::clamp<std::int64_t>((r.cols + 31) / 32 * 32, 32, 1024));
  Launch launch =
      vector::rowwise(many ? "radixFindKthValues" : "gatherTopK",
                      many ? VectorKind::reduction : VectorKind::softmax_block, r.count, r.cols, threads, pass);
  launch.family = "reduction";
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.reread_bytes = bits / (many ? 8 : 2) * x.bytes();
  if (many) {
    detail.reuse_bytes = x.bytes();
    constexpr std::int64_t kPerCta = 4096;
    launch.grid[0] = r.count * ((r.cols + kPerCta - 1) / kPerCta);
  }
  vector::push(out.launches, std::move(launch));
  const Rows chosen = rows_along(values, -1);
  if (chosen.cols < 2 || chosen.count < 1) return;
  const SortProblem sort{.pairs = static_cast<double>(values.elements()), .key_bytes = element, .key_bits = bits};
  if (chosen.cols <= kLongestInCta) {
    vector::push(out.launches, block_sort(chosen.count, chosen.cols, sort));
  } else {
    push_radix_sort(out.launches, sort);
  }
}

/// Indices are written first, as 64-bit values of the pairs. Rows that fit a CTA are sorted there; a longer one is
/// sorted by passes over all of it, several by a second sort that brings the rows together again [ATEN].
void sort(const graph::Tensor& x, std::int64_t axis, Lowered& out) {
  const Rows r = rows_along(x, axis);
  const double n = static_cast<double>(x.elements());
  if (!(n > 0)) return;
  SortProblem p{.pairs = n, .key_bytes = bytes_per_element(x.dtype)};
  p.key_bits = info(x.dtype).bits;
  vector::push(out.launches, vector::fill(p.value_bytes * n, p.value_bytes));
  if (r.cols <= kLongestInCta) {
    vector::push(out.launches, vector::elementwise("", {n, x.bytes(), x.bytes(), 1, p.key_bytes}, VectorKind::copy));
    vector::push(out.launches, block_sort(r.count, r.cols, p));
    return;
  }
  push_radix_sort(out.launches, p);
  if (r.count > 1) {
    push_radix_sort(out.launches, {.pairs = n,
                                   .key_bytes = 4,
                                   .value_bytes = p.value_bytes + p.key_bytes,
                                   .key_bits = index_bits(static_cast<double>(r.count))});
  }
}

/// Along one row the whole GPU scans, each CTA waiting for its predecessors' sum; else a CTA takes rows.
void scan(const graph::Tensor& x, std::int64_t axis, const vector::Pass& pass, Lowered& out) {
  const Rows r = rows_along(x, axis);
  Launch launch =
      vector::rowwise("tensor_kernel_scan_innermost_dim", VectorKind::reduction, r.count, r.cols, 512, pass);
  if (r.count == 1) {
    constexpr std::int64_t kPerCta = 1920;  // 128 threads of 15 elements.
    launch.name = "DeviceScanKernel";
    launch.library = "CUB";
    launch.cta.threads = 128;
    launch.grid[0] = (r.cols + kPerCta - 1) / kPerCta;
  }
  vector::push(out.launches, std::move(launch));
}

}  // namespace

Lowered lower_reduction(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::pointwise;
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const double element = bytes_per_element(x.dtype);
  const double read = vector::stored_bytes(graph, node.inputs.front());
  double written = 0;
  for (const auto id : node.outputs) written += graph.tensor(id).bytes();
  const graph::Tensor& y = graph.tensor(node.outputs.front());
  const std::int64_t axis = node.attributes.integer("axis", -1);
  switch (node.op) {
    case OpType::topk: topk(x, y, written, out); break;
    case OpType::sort: sort(x, axis, out); break;
    case OpType::nms: lower_nms(graph, node, target, out); break;
    case OpType::cumsum: scan(x, axis, {static_cast<double>(x.elements()), read, written, 1, element}, out); break;
    default: {
      const std::int64_t cols = y.elements() > 0 ? x.elements() / y.elements() : 0;
      vector::push(out.launches, vector::reduce(y.elements(), cols, read, written, element));
    }
  }
  return out;
}

}  // namespace voltaic::kernel
