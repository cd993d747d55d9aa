// SPDX-License-Identifier: MIT
// One kernel launch as the library would issue it: grid, CTA resources, work. A kernel is where a graph, which knows
// operations only, meets the engines, which know time only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arch/units/data_type.hpp"
#include "arch/units/quantity.hpp"
#include "sim/kernel/routing.hpp"

namespace voltaic::kernel {

/// What one CTA occupies on an SM.
struct CtaResources {
  int threads = 128;
  int registers_per_thread = 32;
  Bytes shared_memory;
};

/// Work of a launch, from its arguments alone. Bytes are compulsory: each operand once.
struct Work {
  double mac = 0;         ///< Multiply-adds that the operation needs (not those of padding).
  double other_flop = 0;  ///< Operations outside products.
  double special = 0;     ///< Special-function calls (exp, tanh, rsqrt).
  Bytes read;
  Bytes written;
  Bytes traffic() const { return read + written; }
  Flops flop() const { return {2 * mac + other_flop}; }
};

/// C[b,m,n] = A[b,m,k] x B[b,k,n], row-major; m are samples or tokens, n the output width.
struct GemmProblem {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transpose_a = false;
  bool transpose_b = false;  ///< B stored [n,k]: a linear layer with weights [out,in].
  bool linear = true;        ///< One 2-d product of a dense layer; false: (strided) batched product.
  bool bias = false;
  DataType math = DataType::fp32;                ///< Type multiplied: fp64, fp32 (SIMT), tf32, fp16, bf16, int8, ...
  double a_bytes = 4, b_bytes = 4, c_bytes = 4;  ///< Per element; of B with its scales or places.
  bool dequantise = false;                       ///< B is stored in integers and expanded to `math` inside the kernel.
  bool sparse = false;  ///< B is 2:4 sparse: multiplied at the sparse rate, `k` counts the dense rows.
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};

/// A matrix kernel: which tile, how the k loop is split.
struct GemmTile {
  std::string name;  ///< Calibration key: "64x128", "32x32s".
  int tile_m = 128, tile_n = 128, tile_k = 8;
  int warps = 8, stages = 2;
  int ctas_per_sm = 2;
  std::int64_t split_k = 1;
  bool tensor_cores = false;
  double time_scale = 1;  ///< Expected time over this kernel's own: the library may take others for the problem.
};
struct GemmKernel {
  GemmProblem problem;
  GemmTile tile;
};

enum class ConvPass : std::uint8_t { forward, dgrad, wgrad };
/// N x C x spatial input, K filters; 1-d and 2-d have leading spatial sizes of 1.
struct ConvProblem {
  ConvPass pass = ConvPass::forward;
  std::int64_t n = 1, c = 1, k = 1, groups = 1;
  std::int64_t in[3] = {1, 1, 1}, filter[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  DataType math = DataType::fp32;
  double element_bytes = 4;
  bool bias = false;
  bool channels_last = false;
  double epilogue_bytes = 0;  ///< Moved beside the operands: a residual that the epilogue adds, a wider result.
  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;
};
enum class ConvAlgorithm : std::uint8_t {
  implicit_gemm,
  implicit_precomp_gemm,
  winograd_fused,
  winograd_nonfused,
  fft,
  direct_depthwise
};
std::string_view to_string(ConvAlgorithm algorithm);
struct ConvKernel {
  ConvProblem problem;
  ConvAlgorithm algorithm = ConvAlgorithm::implicit_precomp_gemm;
  GemmTile tile;
};

/// Which bandwidth, floor and latency law a memory-bound kernel follows: the key of its calibration.
enum class VectorKind : std::uint8_t {
  elementwise,            ///< Contiguous pointwise, vectorised.
  elementwise_broadcast,  ///< Pointwise with a broadcast or strided operand.
  softmax_warp,           ///< Rows of up to 1024 columns held in registers.
  softmax_block,          ///< Longer rows, read three times.
  layer_norm,             ///< One CTA per row, input read twice.
  norm_backward,
  norm_param_grad,
  batch_norm,
  reduction,
  copy,          ///< Contiguous.
  copy_strided,  ///< Transposing or gathering copies.
  embedding,
  scatter,
  dropout,
  pooling,
  cross_entropy,
  optimizer,
  fill,
  // Two-byte types, as serving stacks run them: calibration section "serving".
  half_elementwise,    ///< Contiguous pointwise, vectorised.
  half_activation,     ///< The same with a function that takes its time: gelu, silu.
  half_layer_norm,     ///< ATen's, vectorised by four.
  serving_norm,        ///< One CTA per token, scalar loads.
  serving_rope,        ///< Queries and keys of a token rotated in place.
  serving_gate,        ///< act(gate) * up of a token.
  index_select_small,  ///< Few indices: every CTA walks over all of them.
  index_select_large,  ///< Many indices, a capped grid.
};
inline constexpr bool is_serving(VectorKind kind) {
  return kind >= VectorKind::half_elementwise;
}
std::string_view to_string(VectorKind kind);
struct VectorKernel {
  VectorKind kind = VectorKind::elementwise;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  int tensor_inputs = 1;
  double reread_bytes = 0;    ///< Bytes read again beyond the compulsory ones; L1 and L2 may serve them.
  double reuse_bytes = 0;     ///< Bytes that pass on the whole GPU between two reads; 0: rows open at once decide.
  double far_bytes = -1;      ///< Part of reread_bytes that L2 no longer holds, from popularity; below 0: not known.
  double cold_bytes = 0;      ///< Part of the compulsory bytes that no kernel before can have left in L2.
  std::string_view function;  ///< Pointwise function ("pow", "gelu"); chooses compute cost per element.
  std::vector<std::string_view> fused;  ///< Functions of a fused chain (static names); empty for a single one.
  double element_bytes = 4;
  bool backward = false;
  double passes = 0;       ///< Steps in which the CTA's threads cover a row; 0: columns over threads.
  double warp_passes = 0;  ///< Warp-wide loads of a row, each with its store.
};

/// Whose fused attention kernels; what each does is data, see attention_library.hpp.
enum class AttentionLibrary : std::uint8_t {
  automatic,         ///< The GPU's own.
  flash2_paged,      ///< FlashAttention-2 over a paged cache, as vLLM runs it on Ampere.
  flash2_dense,      ///< FlashAttention-2 of training and encoders.
  flash3_sm80,       ///< FlashAttention-3's kernels for Ampere, as SGLang runs them.
  flash3,            ///< FlashAttention-3 over a paged cache, as vLLM runs it on Hopper.
  flash3_dense,      ///< FlashAttention-3 of encoders.
  flash3_first,      ///< FlashAttention-3 as first published, dense.
  flash4_512,        ///< The next generation's kernels for heads above 256, on Hopper.
  tensorrt,          ///< TensorRT-LLM's fused prompts on Ampere.
  memory_efficient,  ///< CUTLASS fused attention: every GPU and type, also without tensor cores.
};

/// Fused attention of one layer (flash), one decode step over a cache, or the writing of that cache.
struct AttentionKernel {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, seq_q = 1, seq_kv = 1, head_dim = 64, value_dim = 64;
  bool causal = false;
  bool decode = false;
  bool backward = false;
  std::int64_t window = 0;  ///< 0: none.
  DataType math = DataType::fp16;
  double element_bytes = 2;
  std::int64_t splits = 1;     ///< KV splits, merged by a second kernel.
  bool split_variant = false;  ///< The kernel that may split keys: the merge runs even where one split came out.
  bool append = false;         ///< Writes keys and values of `seq_q` tokens to a paged cache, nothing else.
  bool warm = false;           ///< Just ran on the same tensors: L2 still holds what fits.
  AttentionLibrary library = AttentionLibrary::automatic;
};

/// The parts of a serving stack's fused mixture of experts, in order.
enum class ExpertPart : std::uint8_t {
  route,    ///< Scores to expert and position, rows sorted by expert; the small kernels of the block.
  up,       ///< Grouped product: gate and up projection side by side.
  down,     ///< Grouped product back to the hidden width.
  combine,  ///< Activation between the products, and the sum of a token's rows.
};
struct ExpertKernel {
  ExpertPart part = ExpertPart::route;
  std::string stack;  ///< Whose kernels: member of calibration section "moe.stacks".
  std::int64_t tokens = 1, hidden = 1, inner = 1, top_k = 1;
  std::int64_t local_experts = 1;
  std::int64_t gate_width = 2;  ///< Results of the first product over `inner`: 2 with a gate.
  bool gathered = false;        ///< Rows of one expert lie together, as a drawn table of loads hands them out.
  bool with_activation = true;  ///< The activation is part of `combine` rather than a launch of its own.
  double weight_bytes = 2;      ///< Per element, scales included.
  double share = 1;             ///< Of the kernel, where nodes of a graph have a part of it each.
  RoutedLoad load;
};

enum class RecurrentCell : std::uint8_t { vanilla, lstm, gru };
enum class RecurrentPass : std::uint8_t {
  forward,
  backward_data,
  backward_weights,  ///< What surrounds the products of weight gradients: bias gradients, additions to sums.
};
std::string_view to_string(RecurrentCell cell);
std::string_view to_string(RecurrentPass pass);
/// All dependent steps of a recurrent layer, or of a stack of layers and directions as the library overlaps them; the
/// products with the input and those of weight gradients are products of their own.
struct RecurrentKernel {
  RecurrentCell cell = RecurrentCell::lstm;
  RecurrentPass pass = RecurrentPass::forward;
  std::int64_t hidden = 1, batch = 1, steps = 1;
  std::int64_t layers = 1, directions = 1;
  DataType math = DataType::fp32;  ///< Type multiplied.
  double element_bytes = 4;        ///< Of weights, states and gates.
  bool persistent = false;         ///< Weights stay in registers over all steps, one launch.
  bool captured = false;           ///< Steps are nodes of a recorded graph: no host between them.
  friend bool operator==(const RecurrentKernel&, const RecurrentKernel&) = default;
};

/// C[rows, features] = A[rows, cols] B[cols, features] with A sparse, in rows of compressed indices.
struct SparseKernel {
  std::int64_t rows = 1, cols = 1, features = 1;
  std::int64_t nnz = 1;            ///< Stored elements of A.
  DataType math = DataType::fp32;  ///< Type multiplied.
  double value_bytes = 4;          ///< Of one stored element; 0: A is a pattern of ones.
  double index_bytes = 4;
  double element_bytes = 4;   ///< Of B and C.
  bool transposed = false;    ///< A is stored by columns: partial sums are scattered with atomics.
  bool sampled = false;       ///< The other way round (SDDMM): a value per stored element, from two dense operands.
  bool column_major = false;  ///< B and C by columns, as cuSPARSE's csrmm takes pruned weights.
};

/// Copies between host and device.
struct TransferKernel {
  Bytes bytes;
  bool to_device = true;
  bool pinned = true;
};

using KernelDetail = std::variant<GemmKernel, ConvKernel, VectorKernel, AttentionKernel, ExpertKernel, TransferKernel,
                                  RecurrentKernel, SparseKernel>;

struct Launch {
  std::string name;  ///< As the library names it: "ampere_sgemm_128x64_tn".
  std::string_view
      library;  ///< "cuBLAS", "cuDNN", "CUTLASS", "cuSPARSE", "cuSPARSELt", "ATen", "flash-attn", "apex", "driver".
  std::string_view family;  ///< Calibration and interval family: "gemm_simt", "gemm_tensor", "elementwise", ...
  std::int64_t grid[3] = {1, 1, 1};
  CtaResources cta;
  DataType math = DataType::fp32;  ///< Type in which `work.mac` multiplies.
  bool tensor_cores = false;
  bool sparse = false;  ///< On the 2:4 path of the tensor cores, where `work.mac` counts the dense product.
  Work work;
  KernelDetail detail;
  double ctas() const {
    return static_cast<double>(grid[0]) * static_cast<double>(grid[1]) * static_cast<double>(grid[2]);
  }
};

}  // namespace voltaic::kernel
