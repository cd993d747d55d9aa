// SPDX-License-Identifier: MIT
// Fused attention of the graph: prompt, decoding step over a cache, backward. Unfused attention is separate nodes.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "arch/units/error.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

namespace {

AttentionKernel kernel_of(const graph::OpGraph& g, const graph::Node& node) {
  const bool backward = node.op == graph::OpType::attention_backward;
  const std::size_t first = backward ? 1 : 0;  // dy comes before q, k, v.
  const graph::Tensor& q = g.tensor(node.inputs.at(first));
  const graph::Tensor& k = g.tensor(node.inputs.at(first + 1));
  const graph::Tensor& v = g.tensor(node.inputs.at(first + 2));
  if (q.shape.size() != 4 || k.shape.size() != 4 || v.shape.size() != 4) {
    throw UnsupportedError(fmt::format("{}: expected q, k and v of rank 4, got {}, {} and {}", one_line(node.id),
                                       graph::to_string(q.shape), graph::to_string(k.shape),
                                       graph::to_string(v.shape)));
  }
  AttentionKernel a;
  a.batch = q.shape[0];
  a.heads = q.shape[1];
  a.kv_heads = k.shape[1];
  a.seq_q = q.shape[2];
  a.seq_kv = k.shape[2];
  a.head_dim = q.shape[3];
  a.value_dim = v.shape[3];
  a.causal = node.attributes.flag("causal");
  a.window = std::max<std::int64_t>(0, node.attributes.integer("window", 0));
  a.backward = backward;
  a.decode = !backward && a.seq_q == 1;
  a.math = node.compute;
  a.element_bytes = bytes_per_element(q.dtype);
  return a;
}

}  // namespace

Lowered lower_attention(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  Lowered out;
  out.host = HostClass::other;
  AttentionKernel kernel = kernel_of(graph, node);
  // Engines bring fused kernels of their own, known on Ampere only.
  const bool own = target.framework == Framework::tensorrt && target.gpu.architecture == arch::Architecture::ampere;
  if (own) kernel.library = AttentionLibrary::tensorrt;
  if (!(attention_work(kernel).mac > 0)) return out;
  if (!target.gpu.has_tensor_path(kernel.math) && !(target.gpu.sm.cuda_core[kernel.math] > 0)) {
    throw UnsupportedError(
        fmt::format("{}: {} cannot multiply in {}", one_line(node.id), target.gpu.name, to_string(kernel.math)));
  }
  out.launches = attention_launches(kernel, target.gpu);
  return out;
}

}  // namespace voltaic::kernel
