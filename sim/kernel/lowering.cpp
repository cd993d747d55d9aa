// SPDX-License-Identifier: MIT
#include "sim/kernel/lowering.hpp"

#include <array>
#include <string>
#include <utility>

namespace voltaic::kernel {

namespace {

constexpr std::array<std::string_view, 6> kFrameworks{"eager",    "graph",          "compiled",
                                                      "tensorrt", "compiled-graph", "xla"};
constexpr std::array<std::string_view, kHostClasses> kHostClassNames{
    "view", "pointwise", "pointwise_scalar", "activation", "softmax", "norm", "linear", "matmul", "conv", "other"};
constexpr std::array<std::string_view, 6> kConvAlgorithms{
    "implicit_gemm", "implicit_precomp_gemm", "winograd_fused", "winograd_nonfused", "fft", "direct_depthwise"};
constexpr std::array<std::string_view, 26> kVectorKinds{"elementwise",
                                                        "elementwise_broadcast",
                                                        "softmax_warp",
                                                        "softmax_block",
                                                        "layer_norm",
                                                        "norm_backward",
                                                        "norm_param_grad",
                                                        "batch_norm",
                                                        "reduction",
                                                        "copy",
                                                        "copy_strided",
                                                        "embedding",
                                                        "scatter",
                                                        "dropout",
                                                        "pooling",
                                                        "cross_entropy",
                                                        "optimizer",
                                                        "fill",
                                                        "half_elementwise",
                                                        "half_activation",
                                                        "half_layer_norm",
                                                        "serving_norm",
                                                        "serving_rope",
                                                        "serving_gate",
                                                        "index_select_small",
                                                        "index_select_large"};

/// Views change metadata only: the host pays for the call, the GPU sees nothing.
Lowered lower_view() {
  Lowered out;
  out.host = HostClass::view;
  return out;
}

Lowered unmodelled(const graph::OpGraph& graph, const graph::Node& node, std::string reason) {
  Lowered out;
  out.unmodelled_reason = std::move(reason);
  for (const auto id : node.inputs) out.unmodelled_bytes += Bytes{graph.tensor(id).bytes()};
  for (const auto id : node.outputs) out.unmodelled_bytes += Bytes{graph.tensor(id).bytes()};
  return out;
}

}  // namespace

std::string_view to_string(Framework framework) {
  return kFrameworks[static_cast<std::size_t>(framework)];
}

std::optional<Framework> parse_framework(std::string_view name) {
  for (std::size_t i = 0; i < kFrameworks.size(); ++i) {
    if (kFrameworks[i] == name) return static_cast<Framework>(i);
  }
  return std::nullopt;
}

std::string_view to_string(HostClass c) {
  return kHostClassNames[static_cast<std::size_t>(c)];
}
std::string_view to_string(ConvAlgorithm algorithm) {
  return kConvAlgorithms[static_cast<std::size_t>(algorithm)];
}
std::string_view to_string(VectorKind kind) {
  return kVectorKinds[static_cast<std::size_t>(kind)];
}

Lowered lower(const graph::OpGraph& graph, const graph::Node& node, const Target& target) {
  using graph::OpFamily;
  switch (graph::family(node.op)) {
    case OpFamily::matrix: return lower_matrix(graph, node, target);
    case OpFamily::convolution: return lower_convolution(graph, node, target);
    case OpFamily::attention: return lower_attention(graph, node, target);
    case OpFamily::recurrent: return lower_recurrent(graph, node, target);
    case OpFamily::normalization: return lower_normalization(graph, node, target);
    case OpFamily::pointwise:
    case OpFamily::random: return lower_pointwise(graph, node, target);
    case OpFamily::softmax: return lower_softmax(graph, node, target);
    case OpFamily::reduction: return lower_reduction(graph, node, target);
    case OpFamily::pooling:
    case OpFamily::resize: return lower_pooling(graph, node, target);
    case OpFamily::embedding:
    case OpFamily::gather_scatter:
    case OpFamily::moe: return lower_embedding(graph, node, target);
    case OpFamily::view: return lower_view();
    case OpFamily::data_movement:
    case OpFamily::transfer: return lower_data_movement(graph, node, target);
    case OpFamily::loss: return lower_loss(graph, node, target);
    case OpFamily::optimizer: return lower_optimizer(graph, node, target);
    case OpFamily::sparse: return lower_sparse(graph, node, target);
    case OpFamily::collective:
      return unmodelled(graph, node, "collectives need a system of GPUs, which is not modelled yet");
  }
  return unmodelled(graph, node, "unknown family of operations");
}

}  // namespace voltaic::kernel
