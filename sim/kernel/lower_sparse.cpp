// SPDX-License-Identifier: MIT
// Products with a sparse matrix: messages of a graph network, and their gradients.
#include <algorithm>

#include "sim/kernel/sparse.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;
using vector::Pass;

/// y = A x. A's own layout, or that of its transpose in a gradient: frameworks of graph networks keep both.
void spmm(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs[0]);
  const graph::Tensor& index = graph.tensor(node.inputs[1]);
  const graph::Tensor& y = graph.tensor(node.outputs[0]);
  const double element = bytes_per_element(x.dtype);
  SparseKernel k;
  k.rows = y.shape[0];
  k.cols = x.shape[0];
  k.features = x.shape[1];
  k.nnz = index.elements();
  k.math = node.compute;
  k.index_bytes = bytes_per_element(index.dtype);
  k.value_bytes = node.inputs.size() > 2 ? bytes_per_element(graph.tensor(node.inputs[2]).dtype) : 0;
  k.element_bytes = element;
  const auto entries = static_cast<double>(k.nnz);
  if (k.value_bytes > 0 && node.attributes.flag("transposed")) {
    // The values change every step and are brought into the transpose's order, by a permutation that is kept.
    const Pass order{entries, (8 + k.value_bytes) * entries, k.value_bytes * entries, 2, k.value_bytes};
    Launch launch = vector::elementwise("", order, VectorKind::embedding);
    launch.name = "indexSelectLargeIndex";
    launch.work.other_flop = 0;
    vector::push(out.launches, std::move(launch));
  }
  Launch product = sparse_launch(k);
  const std::string reduce = node.attributes.word("reduce", "sum");
  const double results = static_cast<double>(y.elements());
  if (reduce == "max") product.work.written += Bytes{4 * results};  // Which entry won, for the gradient.
  if (k.value_bytes == 0) {                                         // A sum of rows multiplies nothing.
    product.work.other_flop = product.work.mac;
    product.work.mac = 0;
  }
  vector::push(out.launches, std::move(product));
  if (reduce == "mean" && !node.attributes.flag("transposed")) {  // Divided by the rows' degrees.
    const double degrees = k.index_bytes * static_cast<double>(k.rows);
    vector::push(out.launches, vector::elementwise("div", Pass{results, y.bytes() + degrees, y.bytes(), 2, element},
                                                   VectorKind::elementwise_broadcast));
  }
}

/// One dot product of a row of each operand per entry.
void sddmm(const OpGraph& graph, const Node& node, Lowered& out) {
  const graph::Tensor& left = graph.tensor(node.inputs[0]);
  const graph::Tensor& right = graph.tensor(node.inputs[1]);
  const graph::Tensor& index = graph.tensor(node.inputs[2]);
  SparseKernel k;
  k.rows = left.shape[0];
  k.cols = right.shape[0];
  k.features = left.shape[1];
  k.nnz = index.elements();
  k.math = node.compute;
  k.index_bytes = bytes_per_element(index.dtype);
  k.value_bytes = bytes_per_element(graph.tensor(node.outputs[0]).dtype);
  k.element_bytes = bytes_per_element(left.dtype);
  k.sampled = true;
  vector::push(out.launches, sparse_launch(k));
}

}  // namespace

Lowered lower_sparse(const graph::OpGraph& graph, const graph::Node& node, const Target&) {
  Lowered out;
  out.host = HostClass::other;
  const auto empty = [&](graph::TensorId id) { return graph.tensor(id).elements() == 0; };
  if (std::any_of(node.outputs.begin(), node.outputs.end(), empty)) return out;
  if (std::any_of(node.inputs.begin(), node.inputs.end(), empty)) {
    const graph::Tensor& y = graph.tensor(node.outputs.front());  // Nothing stored: a result of zeroes.
    vector::push(out.launches, vector::fill(y.bytes(), bytes_per_element(y.dtype)));
    return out;
  }
  if (node.op == OpType::sddmm) {
    sddmm(graph, node, out);
  } else {
    spmm(graph, node, out);
  }
  out.host_calls = static_cast<double>(out.launches.size());
  return out;
}

}  // namespace voltaic::kernel
