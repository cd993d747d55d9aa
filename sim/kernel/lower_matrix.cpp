// SPDX-License-Identifier: MIT
// Dense layers, (batched) matrix products and products grouped by expert as matrix kernels.
#include <algorithm>
#include <string>
#include <vector>

#include "arch/units/error.hpp"
#include "sim/graph/passes.hpp"
#include "sim/kernel/experts.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::Shape;
using graph::Tensor;

std::int64_t product(Shape::const_iterator first, Shape::const_iterator last) {
  std::int64_t n = 1;
  for (; first != last; ++first) n *= *first;
  return n;
}

const Tensor& input(const OpGraph& graph, const Node& node, std::size_t i) {
  ensure(i < node.inputs.size() && !node.outputs.empty(), "a matrix operation lacks an operand");
  return graph.tensor(node.inputs[i]);
}

/// tf32 on a machine whose tensor cores are switched off is plain fp32.
DataType multiply_type(DataType wanted, const arch::GpuSpec& gpu) {
  const bool switched_off = gpu.sm.tensor[DataType::tf32] > 0 && !gpu.has_tensor_path(DataType::tf32);
  return wanted == DataType::tf32 && switched_off ? DataType::fp32 : wanted;
}

/// Leading dims of the activation are rows: y[rows, out] = x[rows, in] w^T.
GemmProblem linear_problem(const OpGraph& graph, const Node& node) {
  const Tensor& x = input(graph, node, 0);
  const Tensor& w = input(graph, node, 1);
  const bool stored_in_out = node.attributes.flag("transposed_weight");
  GemmProblem p;
  p.m = product(x.shape.begin(), x.shape.end() - 1);
  p.k = x.shape.back();
  p.n = w.shape[stored_in_out ? 1 : 0];
  p.transpose_b = !stored_in_out;
  p.bias = node.inputs.size() > 2;
  return p;
}

GemmProblem grouped_problem(const OpGraph& graph, const Node& node) {
  const Tensor& x = input(graph, node, 0);
  const Tensor& w = input(graph, node, 1);
  const bool stored_in_out = node.attributes.flag("transposed_weight");
  GemmProblem p;
  p.batch = x.shape[0];
  p.m = x.shape[1];
  p.k = x.shape[2];
  p.n = w.shape[stored_in_out ? 2 : 1];
  p.transpose_b = !stored_in_out;
  p.linear = false;
  return p;
}

/// Two matrices are one dense product. A matrix shared by a batch of others is too, with the batch folded into its
/// rows, as frameworks do. Anything else is a batched product; broadcast operands count once per batch entry that reads
/// them.
GemmProblem matmul_problem(const OpGraph& graph, const Node& node) {
  const Tensor& a = input(graph, node, 0);
  const Tensor& b = input(graph, node, 1);
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  GemmProblem p;
  p.transpose_a = node.attributes.flag("transpose_a");
  p.transpose_b = node.attributes.flag("transpose_b");
  p.batch = product(out.begin(), out.end() - 2);
  p.m = out[out.size() - 2];
  p.n = out.back();
  p.k = a.shape[a.shape.size() - (p.transpose_a ? 2 : 1)];
  p.linear = out.size() == 2 || node.attributes.flag("linear");
  const bool shared_b = product(b.shape.begin(), b.shape.end() - 2) == 1 && p.batch > 1;
  if (shared_b && !p.transpose_a) {
    p.m *= p.batch;
    p.batch = 1;
    p.linear = true;
  }
  return p;
}

GemmProblem problem_of(const OpGraph& graph, const Node& node) {
  switch (node.op) {
    case graph::OpType::linear: return linear_problem(graph, node);
    case graph::OpType::grouped_linear: return grouped_problem(graph, node);
    default: return matmul_problem(graph, node);
  }
}

/// How the right operand lies in memory: plain, 2:4 sparse, or in integers with a 2-byte scale per group along k.
void store_weights(GemmProblem& p, const Tensor& w, const Target& target) {
  p.b_bytes = bytes_per_element(w.dtype);
  p.sparse = w.sparse && target.sparse_weights && target.gpu.has_sparse_path(p.math);
  if (p.sparse) p.b_bytes = w.stored_bytes();
  p.dequantise = is_floating(p.math) && !is_floating(w.dtype);
  if (p.dequantise) p.b_bytes += 2.0 / static_cast<double>(graph::scale_group(w.dtype, p.k));
}

/// An activation applied while the tile is still in registers. Simplification: its instructions count as work but take
/// no time beside the product's.
void add_epilogue(const Node& node, const GemmProblem& p, std::vector<Launch>& launches) {
  const std::string function = node.attributes.word("epilogue", "");
  if (function.empty() || launches.empty()) return;
  launches.front().name += "_" + function;
  launches.front().work.other_flop += static_cast<double>(p.m) * static_cast<double>(p.n);
}

/// One row against 16-bit weights. Graph compilers write such a product as multiplications and a sum along k, for which
/// they generate a kernel that streams the weights [Inductor].
bool streams_weights(const GemmProblem& p, const Target& target) {
  const bool compiler = target.framework == Framework::compiled || target.framework == Framework::compiled_graph;
  return compiler && p.linear && p.batch == 1 && p.m == 1 && p.math != DataType::tf32 &&
         bytes_per_element(p.math) == 2 && !p.dequantise && !p.sparse;
}

Launch weight_stream(const GemmProblem& p) {
  constexpr double kWholeModel = 1e12;  // bytes; any model's weights leave L2
  const auto n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k);
  const vector::Pass pass{n * k, n * k * p.b_bytes + k * p.a_bytes, n * p.c_bytes, 1, p.b_bytes};
  Launch launch = vector::elementwise("mul", pass, VectorKind::half_elementwise);
  // A weight comes round once a step, after all the others.
  std::get<VectorKernel>(launch.detail).reuse_bytes = kWholeModel;
  launch.name = "triton_red_fused_mul_sum";
  launch.library = "Triton";
  launch.math = p.math;
  launch.work.mac = n * k;
  launch.work.other_flop = p.bias ? n : 0;
  return launch;
}

}  // namespace

Lowered lower_matrix(const OpGraph& graph, const Node& node, const Target& target) {
  Lowered out;
  if (node.op == graph::OpType::grouped_linear && lower_experts(graph, node, target, out)) return out;
  GemmProblem p = problem_of(graph, node);
  p.math = multiply_type(node.compute, target.gpu);
  p.a_bytes = bytes_per_element(input(graph, node, 0).dtype);
  store_weights(p, input(graph, node, 1), target);
  p.c_bytes = bytes_per_element(graph.tensor(node.outputs[0]).dtype);
  out.host = p.linear ? HostClass::linear : HostClass::matmul;
  if (streams_weights(p, target) && p.n > 0 && p.k > 0) {
    out.launches.push_back(weight_stream(p));
  } else if (p.batch > 0 && p.m > 0 && p.n > 0 && p.k > 0) {
    out.launches = gemm_launches(p, target.library.choose(p), target.gpu);
    add_epilogue(node, p, out.launches);
  }
  return out;
}

}  // namespace voltaic::kernel
