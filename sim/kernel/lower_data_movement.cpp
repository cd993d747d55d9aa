// SPDX-License-Identifier: MIT
// Copies: packed, strided, joined, padded, filled, and over the host link. Views are free and never come here.
#include <algorithm>
#include <utility>

#include "sim/kernel/fused.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

/// How a tensor lies in memory, from the views that made it.
struct Layout {
  bool packed = true;
  std::int64_t run = 1;  ///< Contiguous elements along the last dim.
};

bool moves_last_dim(const Node& view, std::size_t rank) {
  const auto perm = view.attributes.integers("perm");
  if (perm.empty()) return true;  // Without a list the last two dims are exchanged.
  return perm.back() != static_cast<std::int64_t>(rank) - 1;
}

bool keeps_order(const Node& view) {
  const auto perm = view.attributes.integers("perm");
  return !perm.empty() && std::is_sorted(perm.begin(), perm.end());
}

/// Walks up the views of `id`. A cut along the first dim stays packed; any other cut, an expansion or a permutation
/// does not.
Layout layout_of(const OpGraph& graph, graph::TensorId id) {
  const graph::Tensor* tensor = &graph.tensor(id);
  Layout layout;
  layout.run = tensor->shape.empty() ? 1 : tensor->shape.back();
  for (int views = 0; views < vector::kMaxViews && tensor->producer != graph::kNoNode; ++views) {
    const Node& view = graph.node(tensor->producer);
    if (graph::family(view.op) != graph::OpFamily::view || view.inputs.empty()) break;
    tensor = &graph.tensor(view.inputs.front());
    const std::size_t rank = tensor->shape.size();
    const std::size_t axis = vector::axis_of(view.attributes.integer("axis", view.op == OpType::split ? -1 : 0), rank);
    if (view.op == OpType::expand) layout.packed = false;
    if (view.op == OpType::transpose && !keeps_order(view)) {
      layout.packed = false;
      if (moves_last_dim(view, rank)) layout.run = 1;
    }
    if (view.op == OpType::split && axis > 0) layout.packed = false;
    if (view.op == OpType::slice && (axis > 0 || view.attributes.integer("step", 1) != 1)) {
      layout.packed = false;
      if (axis + 1 == rank && view.attributes.integer("step", 1) != 1) layout.run = 1;
    }
  }
  return layout;
}

Launch copy(const Pass& pass) {
  Launch launch = vector::elementwise("", pass, VectorKind::copy);
  launch.name = "Memcpy DtoD";
  launch.library = "driver";
  launch.work.other_flop = 0;
  return launch;
}

Launch strided_copy(std::string name, const Pass& pass, std::int64_t run) {
  Launch launch = vector::elementwise("", pass, VectorKind::copy_strided);
  launch.name = std::move(name);
  launch.work.other_flop = 0;
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.cols = std::max<std::int64_t>(run, 1);
  detail.rows = static_cast<std::int64_t>(pass.elements / static_cast<double>(detail.cols));
  return launch;
}

void transfer(const OpGraph& graph, const Node& node, Lowered& out) {
  const double bytes = graph.tensor(node.inputs.front()).bytes();
  if (!(bytes > 0)) return;
  TransferKernel detail;
  detail.bytes = Bytes{bytes};
  detail.to_device = node.op == OpType::host_to_device;
  detail.pinned = node.attributes.integer("pinned", 1) != 0;
  Launch launch;
  launch.name = detail.to_device ? "Memcpy HtoD" : "Memcpy DtoH";
  launch.library = "driver";
  launch.family = "transfer";
  (detail.to_device ? launch.work.written : launch.work.read) = Bytes{bytes};
  launch.detail = detail;
  out.launches.push_back(std::move(launch));
}

void pad(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs.front());
  const graph::Tensor& y = graph.tensor(node.outputs.front());
  const double element = bytes_per_element(x.dtype);
  vector::push(out.launches, vector::fill(y.bytes(), element));
  vector::push(out.launches, strided_copy("elementwise_kernel<128, 4>",
                                          Pass{static_cast<double>(x.elements()),
                                               vector::stored_bytes(graph, node.inputs.front()), x.bytes(), 1, element},
                                          x.shape.empty() ? 1 : x.shape.back()));
  out.host_calls = 2;
}

}  // namespace

Lowered lower_data_movement(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::pointwise;
  if (node.op == OpType::host_to_device || node.op == OpType::device_to_host) {
    out.host = HostClass::other;
    transfer(graph, node, out);
    return out;
  }
  const Pass pass = vector::pass_of(graph, node);
  switch (node.op) {
    case OpType::fill: vector::push(out.launches, vector::fill(pass.written, pass.element_bytes)); break;
    case OpType::pad: pad(graph, node, out); break;
    case OpType::concat: vector::push(out.launches, strided_copy("CatArrayBatchedCopy", pass, 64)); break;
    default: {
      const Layout layout = layout_of(graph, node.inputs.front());
      if (layout.packed && node.op == OpType::contiguous) {
        out.host = HostClass::view;  // Packed already: the call returns its input.
      } else if (layout.packed) {
        vector::push(out.launches, copy(pass));
      } else if (generates_kernels(target.framework)) {
        // A generated kernel covers both dims of a transposition with a tile, so that no run is short.
        constexpr std::int64_t kTile = 32;
        Launch launch = strided_copy("triton_poi_fused_clone", pass, std::max(layout.run, kTile));
        launch.library = target.framework == Framework::tensorrt ? "TensorRT" : "Triton";
        vector::push(out.launches, std::move(launch));
      } else {
        vector::push(out.launches, strided_copy("elementwise_kernel<128, 4>", pass, layout.run));
      }
    }
  }
  return out;
}

}  // namespace voltaic::kernel
