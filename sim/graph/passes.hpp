// SPDX-License-Identifier: MIT
// Passes over a layer graph: each is one idea, in a file of its own (pass_*.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/memory_plan.hpp"
#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

enum class Precision : std::uint8_t {
  fp64,
  fp32,
  tf32,
  fp16,
  bf16,
  int8,
  int4,
  w8a16,
  w4a16,
  fp8,
  mixed_fp16,
  mixed_bf16
};
std::string_view to_string(Precision precision);
std::optional<Precision> parse_precision(std::string_view name);
const std::vector<Precision>& all_precisions();

/// Weights stored in 8 or 4 bits and multiplied in fp16: w8a16, w4a16.
bool is_weight_only(Precision precision);

/// Sets the type of every floating tensor and the compute type of every node. Plain precisions convert everything
/// (int8, int4, fp8: matrix products and convolutions only, the rest runs in fp16). `mixed-*` follow the autocast lists
/// of PyTorch: products in 16 bit with cast nodes for fp32 parameters, softmax, norms and losses in fp32, others by
/// widest input. Weight-only ones run in fp16 and store the weights of dense layers in integers with fp16 scales.
void assign_precision(OpGraph& graph, Precision precision);

/// Weights along k that share one fp16 scale: a whole row of 8-bit weights, 128 of 4 bits (the usual group of GPTQ and
/// AWQ checkpoints).
std::int64_t scale_group(DataType stored, std::int64_t k);

/// Stores the weights of dense layers 2:4 sparse (Tensor::sparse) where the type they multiply in has a sparse path and
/// the shape allows it. Every other product and convolution gets its reason as attribute `dense`. Comes after
/// assign_precision().
using SparsePaths = std::array<bool, kDataTypes.size()>;  ///< By type: true where it has a sparse path.
void sparsify_weights(OpGraph& graph, const SparsePaths& paths);
/// The parameter behind input 1 of a product, through views; nothing where that is no parameter.
std::optional<TensorId> weight_of(const OpGraph& graph, const Node& node);

struct BackwardOptions {
  /// Add every parameter's gradient to a gradient kept from earlier micro-steps. Otherwise backward's tensor becomes
  /// the gradient itself, which costs no kernel.
  bool accumulate_gradients = false;
};
/// Appends the reverse-mode gradient of `graph.loss` (or of the sum of its outputs when there is no loss): one or more
/// nodes per differentiable forward node, in reverse program order, phase backward, ids "FORWARD.backward.ROLE". A
/// graph without trainable parameters is differentiated with respect to its floating inputs. The gradient of parameter
/// P is a tensor "P.grad" of role parameter_gradient. Dense layers give flattened matmul nodes with attribute linear
/// = 1. Gradients meeting at a tensor used twice are added by explicit `add` nodes. Operations without a rule throw
/// UnsupportedError.
void append_backward(OpGraph& graph, const BackwardOptions& options = {});

enum class Recompute : std::uint8_t { none, selective, full };
std::string_view to_string(Recompute recompute);
std::optional<Recompute> parse_recompute(std::string_view name);
/// Trades time for memory after append_backward(): backward reads copies, made anew by nodes "ID.recompute" of phase
/// backward in front of their first reader, so that the originals die in the forward phase. `full`: each repeated layer
/// ("encoder.layer.3", "layer2.0") keeps its inputs alone; `selective`: unfused attention from its scores to the
/// dropped-out probabilities [Korthikanti22]. Returns how many nodes run again; 0 where the graph has nothing of the
/// kind.
std::int64_t recompute_activations(OpGraph& graph, Recompute recompute);

/// Marks convolutions over two and three spatial dims, and their gradients, `channels_last`: tensors lie in memory as
/// [N, spatial, C], which tensor cores read as it is.
void set_channels_last(OpGraph& graph);

/// The inputs of the graph come from host memory: one `host_to_device` node each, in front of everything.
void copy_inputs(OpGraph& graph, bool pinned);

enum class Optimizer : std::uint8_t { sgd, momentum, adam, adamw, lamb };
std::string_view to_string(Optimizer optimizer);
std::optional<Optimizer> parse_optimizer(std::string_view name);
/// Bytes of optimizer state per parameter element beyond weights and gradients: 0, 4, 8, 8, 8 beside fp32 parameters;
/// state has the parameters' own type (2 bytes in fp16 and bf16). Under mixed precision the parameters themselves are
/// the fp32 masters, so Adam's model states are 4 (weights) + 4 (gradients) + 8 = 16 bytes; the 16-bit copies are
/// activations of the step.
double optimizer_state_bytes(Optimizer optimizer, Precision precision);
/// Appends the optimizer phase: multi-tensor updates as the framework's fused kernels do them, one `optimizer_step`
/// node per launch. Attributes: optimizer, elements, tensors, read_bytes, written_bytes, state_bytes. mixed-fp16
/// unscales the gradients first
/// (`grad_scale`). Nothing is appended to a graph without parameter gradients, so append_backward() comes before.
/// `per_tensor`: the framework's plain loop over parameters instead, which launches each step of the rule for each
/// tensor.
void append_optimizer(OpGraph& graph, Optimizer optimizer, Precision precision, bool per_tensor = false);

/// Batch norms with known statistics behind a convolution that they alone read become its bias: weights are scaled
/// when the network is compiled. Inference only. Returns how many nodes disappeared.
std::int64_t fold_batch_norms(OpGraph& graph);

/// Fuses as graph compilers do: connected pointwise operations (casts, dropout, packing copies, lookups, batch norms
/// with known statistics) over the same elements and of one phase become `fused_pointwise` nodes; a softmax over the
/// last axis, a layer norm or an RMS norm (and their gradients) takes in the chain that makes its rows and the one that
/// reads them, as `fused_softmax` or `fused_norm`. A result that others read is still written, once. Views inside a
/// kernel vanish. Tensors inside a fused node lose their producer; forward_of follows. Returns how many nodes
/// disappeared. `rows`: without it reductions stay alone.
std::int64_t fuse_pointwise(OpGraph& graph, bool rows = true);

}  // namespace voltaic::graph
