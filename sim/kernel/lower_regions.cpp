// SPDX-License-Identifier: MIT
// Operations of detectors: regions resampled from feature maps, and boxes that suppress each other [TORCHVISION].
#include <algorithm>
#include <cmath>

#include "sim/kernel/gather.hpp"
#include "sim/kernel/sorting.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

constexpr double kCorners = 4;
constexpr double kTableShare = 0.5;  // assumed: of L2, as for table rows

/// Samples per element of a region, in both directions.
double samples_of(const Node& node) {
  const auto side = static_cast<double>(std::clamp<std::int64_t>(node.attributes.integer("sampling", 2), 1, 1 << 15));
  return side * side;
}

/// Neighbouring samples share sectors in L1; each brings about one new element from L2.
RowBytes sampled_bytes(const graph::Tensor& map, double elements, double samples, const arch::GpuSpec& gpu) {
  const double element = bytes_per_element(map.dtype);
  RowBytes bytes;
  bytes.once = std::min(map.bytes(), kCorners * samples * elements * element);
  bytes.again = std::max(0.0, samples * elements * element - bytes.once);
  const double held = kTableShare * gpu.l2.capacity.value;
  if (map.bytes() > held) bytes.far = bytes.again * (1 - held / map.bytes());
  return bytes;
}

Launch region_kernel(std::string name, VectorKind kind, const Pass& pass, double samples) {
  Launch launch = vector::elementwise("", pass, kind);
  launch.name = std::move(name);
  launch.library = "torchvision";
  launch.family = "pooling";
  launch.cta.threads = 512;
  launch.grid[0] = std::min<std::int64_t>(4096, launch.grid[0]);
  launch.work.other_flop = pass.elements * samples * 2 * kCorners;
  std::get<VectorKernel>(launch.detail).cols = static_cast<std::int64_t>(kCorners * samples);
  return launch;
}

void roi_align(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs[0]);
  const graph::Tensor& y = graph.tensor(node.outputs[0]);
  const double n = static_cast<double>(y.elements());
  const double samples = samples_of(node);
  if (!(n > 0) || x.elements() == 0) return;
  const RowBytes map = sampled_bytes(x, n, samples, target.gpu);
  const double boxes = graph.tensor(node.inputs[1]).bytes();
  Launch launch = region_kernel("roi_align_forward_kernel_impl", VectorKind::pooling,
                                {n, map.once + boxes, y.bytes(), 2, bytes_per_element(y.dtype)}, samples);
  set_rereads(launch, map);
  vector::push(out.launches, std::move(launch));
}

/// Zeroes, then four atomic additions per sample, which L2 performs.
void roi_align_backward(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& dy = graph.tensor(node.inputs[0]);
  const graph::Tensor& dx = graph.tensor(node.outputs[0]);
  const double n = static_cast<double>(dy.elements());
  const double samples = samples_of(node);
  const double element = bytes_per_element(dx.dtype);
  vector::push(out.launches, vector::fill(dx.bytes(), element));
  if (!(n > 0) || dx.elements() == 0) return;
  RowBytes map = sampled_bytes(dx, n, samples, target.gpu);
  const double additions = kCorners * samples * n * element;
  map.again = std::max(map.again, additions - map.once);
  const double boxes = graph.tensor(node.inputs[1]).bytes();
  Launch launch = region_kernel("roi_align_backward_kernel_impl", VectorKind::pooling,
                                {n, dy.bytes() + map.once + boxes, map.once, 2, element}, samples);
  set_rereads(launch, map);
  vector::push(out.launches, std::move(launch));
  out.host_calls = 2;
}

/// Each box against every later one: 64 x 64 pairs per CTA, a bit for each. CTAs below the diagonal end at once.
Launch overlap_mask(std::int64_t boxes, double box_bytes, double mask_bytes) {
  const double n = static_cast<double>(boxes);
  Launch launch = vector::elementwise("", {n, box_bytes, mask_bytes, 1, 4}, VectorKind::pooling);
  launch.name = "nms_kernel_impl";
  launch.library = "torchvision";
  launch.family = "reduction";
  launch.cta = CtaResources{64, 40, Bytes{64 * 4 * 4}};
  launch.grid[0] = launch.grid[1] = (boxes + 63) / 64;
  constexpr double kPerPair = 15;  // Corners of the intersection, its area, the union, a comparison.
  launch.work.other_flop = kPerPair * n * n / 2;
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.rows = boxes;
  detail.cols = boxes;  // Half of the pairs, each as much as two elements of a pooling window.
  return launch;
}

Launch to_host(double bytes) {
  Launch launch;
  launch.name = "Memcpy DtoH";
  launch.library = "driver";
  launch.family = "transfer";
  launch.work.read = Bytes{bytes};
  launch.detail = TransferKernel{.bytes = Bytes{bytes}, .to_device = false, .pinned = false};
  return launch;
}

/// An engine walks over the boxes on the GPU: each kept one waits for the row of its mask.
Launch device_scan(std::int64_t boxes, double kept, double mask_bytes) {
  const Pass pass{static_cast<double>(boxes), mask_bytes, 8 * kept, 1, 8};
  Launch launch = vector::elementwise("", pass, VectorKind::cross_entropy);
  launch.name = "gather_keep_from_mask";
  launch.library = "torchvision";
  launch.family = "reduction";
  launch.cta.threads = 64;
  launch.grid[0] = 1;
  std::get<VectorKernel>(launch.detail).passes = std::max(1.0, kept);
  return launch;
}

}  // namespace

void lower_regions(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  if (node.op == OpType::roi_align) return roi_align(graph, node, target, out);
  roi_align_backward(graph, node, target, out);
}

/// Scores sorted, boxes brought into their order, the mask; then the host takes the mask and scans it, one word per 64
/// boxes for each box kept, and sends back what remains.
void lower_nms(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const graph::Tensor& boxes = graph.tensor(node.inputs[0]);
  const graph::Tensor& kept = graph.tensor(node.outputs[0]);
  const std::int64_t n = boxes.shape[0];
  if (n == 0) return;
  const double count = static_cast<double>(n);
  const double key = bytes_per_element(graph.tensor(node.inputs[1]).dtype);
  const double words = std::ceil(count / 64);
  const double mask = 8 * words * count;
  push_radix_sort(out.launches, {.pairs = count, .key_bytes = key, .value_bytes = 8, .key_bits = 8 * key});
  const RowAccess rows{count, boxes.bytes() / count, count, 0};
  vector::push(out.launches,
               lookup_launch("indexSelectLargeIndex", boxes, row_bytes(rows, target.gpu), 8 * count, target.gpu, 8));
  vector::push(out.launches, overlap_mask(n, boxes.bytes(), mask));
  const double survivors = static_cast<double>(kept.elements());
  const bool on_host = target.framework != Framework::tensorrt;
  if (on_host) {
    out.launches.push_back(to_host(mask));
  } else {
    vector::push(out.launches, device_scan(n, survivors, mask));
  }
  const RowAccess picked{count, 8, survivors, 0};
  vector::push(out.launches, lookup_launch("indexSelectLargeIndex", kept, row_bytes(picked, target.gpu), 8 * survivors,
                                           target.gpu, 8));
  constexpr double kWordsPerCall = 8000;  // assumed: words a host scans in the time of one framework call
  out.host_calls = 5 + (on_host ? survivors * words / 2 / kWordsPerCall : 0);
}

}  // namespace voltaic::kernel
