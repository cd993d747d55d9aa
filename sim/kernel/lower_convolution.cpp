// SPDX-License-Identifier: MIT
// Convolutions of the graph: forward, data gradient, filter gradient, transposed, 1-d to 3-d, grouped and depthwise.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "arch/units/error.hpp"
#include "sim/kernel/conv_shape.hpp"
#include "sim/kernel/fused.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

namespace {

using graph::OpType;

/// Fills the trailing `rank` entries of `out` from an integer or a list; missing entries keep what they have.
void read_sizes(const graph::Attributes& attributes, std::string_view name, std::size_t rank, std::int64_t (&out)[3]) {
  const auto* value = attributes.find(name);
  if (value == nullptr) return;
  if (const auto* one = std::get_if<std::int64_t>(value)) {
    std::fill(out + (3 - rank), out + 3, *one);
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(value)) {
    for (std::size_t i = 0; i < rank && i < list->size(); ++i) out[3 - rank + i] = (*list)[i];
  }
}

/// Trailing spatial sizes of a [a, b, spatial] shape.
void read_spatial(const graph::Shape& shape, std::int64_t (&out)[3]) {
  const std::size_t rank = std::min<std::size_t>(shape.size() - 2, 3);
  for (std::size_t i = 0; i < rank; ++i) out[3 - rank + i] = shape[2 + i];
}

/// The problem of a plain convolution with input side x, filters w and output side y.
ConvProblem problem_of(const graph::Shape& x, const graph::Shape& w, const graph::Shape& y, ConvPass pass,
                       const graph::Node& node) {
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size() || y.size() != x.size()) {
    throw UnsupportedError(fmt::format("{}: expected a 1-d to 3-d convolution, got tensors of rank {}, {} and {}",
                                       one_line(node.id), x.size(), w.size(), y.size()));
  }
  ConvProblem p;
  p.pass = pass;
  p.n = x[0];
  p.c = x[1];
  p.k = y[1];
  p.groups = std::max<std::int64_t>(1, node.attributes.integer("groups", 1));
  read_spatial(x, p.in);
  read_spatial(w, p.filter);
  read_spatial(y, p.out);
  const std::size_t rank = x.size() - 2;
  read_sizes(node.attributes, "stride", rank, p.stride);
  read_sizes(node.attributes, "padding", rank, p.pad);
  read_sizes(node.attributes, "dilation", rank, p.dilation);
  for (auto& stride : p.stride) stride = std::max<std::int64_t>(1, stride);
  return p;
}

/// A transposed convolution is the data gradient of the convolution that leads back from its output to its input, and
/// its own data gradient is that convolution run forward.
ConvProblem problem_of(const graph::OpGraph& g, const graph::Node& node) {
  const auto in = [&](std::size_t i) -> const graph::Shape& { return g.tensor(node.inputs.at(i)).shape; };
  const graph::Shape& out = g.tensor(node.outputs.at(0)).shape;
  const bool transposed = node.attributes.flag("transposed");
  switch (node.op) {
    case OpType::conv_transpose1d:
    case OpType::conv_transpose2d:
    case OpType::conv_transpose3d: return problem_of(out, in(1), in(0), ConvPass::dgrad, node);
    case OpType::conv_dgrad:
      return transposed ? problem_of(in(0), in(1), out, ConvPass::forward, node)
                        : problem_of(out, in(1), in(0), ConvPass::dgrad, node);
    case OpType::conv_wgrad:
      return transposed ? problem_of(in(1), out, in(0), ConvPass::wgrad, node)
                        : problem_of(in(0), out, in(1), ConvPass::wgrad, node);
    default: return problem_of(in(0), in(1), out, ConvPass::forward, node);
  }
}

/// Eager frameworks add the bias with a broadcast kernel after the convolution; compilers fuse it into what follows.
Launch bias_launch(const graph::Tensor& y) {
  const double elements = static_cast<double>(y.elements());
  const double size = bytes_per_element(y.dtype);
  constexpr double kPerCta = 512;  // 128 threads, four elements each.
  Launch launch;
  launch.name = "elementwise_kernel<CUDAFunctor_add>";
  launch.library = "ATen";
  launch.family = "elementwise";
  launch.grid[0] = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(elements / kPerCta)));
  launch.math = y.dtype;
  launch.work.other_flop = elements;
  launch.work.read = Bytes{size * (elements + static_cast<double>(y.shape[1]))};
  launch.work.written = Bytes{size * elements};
  VectorKernel vector;
  vector.kind = VectorKind::elementwise_broadcast;
  vector.rows = y.shape[0] * y.shape[1];
  vector.cols = vector.rows > 0 ? y.elements() / vector.rows : 0;
  vector.tensor_inputs = 1;
  vector.function = "add";
  vector.element_bytes = size;
  launch.detail = vector;
  return launch;
}

void check_type(const graph::Node& node, const arch::GpuSpec& gpu) {
  if (gpu.has_tensor_path(node.compute) || gpu.sm.cuda_core[node.compute] > 0) return;
  std::string has;
  for (const auto& type : kDataTypes) {
    if (!gpu.has_tensor_path(type.type) && !(gpu.sm.cuda_core[type.type] > 0)) continue;
    if (!has.empty()) has += ", ";
    has += type.name;
  }
  throw UnsupportedError(fmt::format("{}: {} cannot multiply in {}; it multiplies in {}", one_line(node.id), gpu.name,
                                     to_string(node.compute), has));
}

}  // namespace

Lowered lower_convolution(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::conv;
  ConvProblem problem = problem_of(graph, node);
  const graph::Tensor& result = graph.tensor(node.outputs.at(0));
  if (result.elements() == 0 || !(direct_mac(problem) > 0)) return out;
  check_type(node, target.gpu);
  const bool backward = node.op == OpType::conv_dgrad || node.op == OpType::conv_wgrad;
  problem.math = node.compute;
  problem.element_bytes = bytes_per_element(graph.tensor(node.inputs[0]).dtype);
  problem.bias = !backward && node.inputs.size() > 2;
  constexpr std::size_t kResidual = 3;
  if (!backward && node.inputs.size() > kResidual)
    problem.epilogue_bytes = graph.tensor(node.inputs[kResidual]).bytes();
  const double narrow = problem.element_bytes * static_cast<double>(result.elements());
  if (!backward) problem.epilogue_bytes += std::max(0.0, result.bytes() - narrow);
  problem.channels_last = target.framework == Framework::tensorrt || node.attributes.flag("channels_last");
  out.launches = conv_launches(target.library.choose(problem), target.gpu);
  if (problem.bias && !generates_kernels(target.framework)) out.launches.push_back(bias_launch(result));
  return out;
}

}  // namespace voltaic::kernel
