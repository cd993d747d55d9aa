// SPDX-License-Identifier: MIT
// Tables of kernels from serving stacks and benchmark suites; docs/calibration.md lists their columns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/graph/operation.hpp"
#include "sim/kernel/launch.hpp"
#include "sim/kernel/lowering.hpp"
#include "validation/compare/csv_table.hpp"
#include "validation/compare/stack_protocol.hpp"

namespace voltaic::validation {

enum class StackTable : std::uint8_t {
  gemm,        ///< gpu, dtype, m, n, k, batch, latency_us, source
  attention,   ///< gpu, dtype, phase, batch, heads, kv_heads, seq_q, seq_kv, head_dim, causal, latency_us, source
  operations,  ///< gpu, op, kind, num_tokens, n, k, latency_us, source
  vectors,     ///< gpu, op, rows, cols, dtype, latency_us, source
  moe,         ///< gpu, dtype, num_tokens, hidden_size, inter_size, topk, num_experts, ..., distribution, latency_us
  layers,      ///< gpu, model, tp_size, layer_name, num_tokens, latency_us, source
  suite_gemm,  ///< gpu, precision, M, N, K, a_trans, b_trans, time_us
  suite_conv,  ///< gpu, precision, W, H, C, N, K, ..., fwd_us, bwd_data_us, bwd_weights_us
  recurrent,   ///< gpu, precision, cell, hidden, batch_N, timesteps, fwd_us, bwd_inputs_us, bwd_weights_us
  sparse_product,  ///< gpu, precision, M, N, K, sparsity, sparse_time_us
  collective,      ///< size_bytes, num_gpus, time_us and the like: not predicted
};
/// Nullopt where the columns are those of none.
std::optional<StackTable> stack_table(const CsvTable& table);

struct ProductCall {
  kernel::GemmProblem problem;
};
/// Fused attention, forward; with its gradient where the table times both together; the cache written first.
struct AttentionCall {
  kernel::AttentionKernel kernel;
  bool with_backward = false;
  bool appends = false;
};
/// Operations on `rows` rows, one after another: a rotary embedding of queries and of keys.
struct VectorCall {
  graph::OpType op{};
  std::int64_t rows = 1;
  std::vector<std::int64_t> widths;
  DataType type = DataType::fp16;
  kernel::Framework framework = kernel::Framework::eager;
  std::int64_t query_cols = 0;  ///< Of a rotary embedding: columns that are queries, the rest being keys; 0: all.
};
/// The feed-forward block of a mixture of experts on one GPU of its group.
struct MoeCall {
  std::int64_t tokens = 1, hidden = 1, inner = 1, top_k = 1, experts = 1;
  std::int64_t tensor_parallel = 1, expert_parallel = 1;
  kernel::Routing routing = kernel::Routing::balanced;
  double skew = 0;  ///< Exponent of the power law of expert loads.
  kernel::Leftover leftover = kernel::Leftover::largest;
  std::string stack;   ///< Whose kernels: "vllm_triton".
  DataType weights{};  ///< As stored; multiplied as `math`.
  DataType math = DataType::bf16;
};
/// A recurrent kernel stands for its call: weight gradients are one product and what surrounds it.
using StackWork = std::variant<ProductCall, kernel::ConvProblem, AttentionCall, VectorCall, MoeCall,
                               kernel::RecurrentKernel, kernel::SparseKernel>;

struct StackRow {
  std::string table_gpu;  ///< The table's spelling.
  std::string gpu;        ///< Our name, or a GPU file.
  std::string op, dtype, mode, origin;
  std::string family;  ///< Of the pooled line.
  std::string label;   ///< The shape in words.
  std::string key;     ///< What the split is drawn from.
  std::string call;    ///< Name under the protocol's numbers: "gemm", "prefill".
  StackProtocol protocol;
  bool fit = false;
  std::size_t line = 0;
  double measured_s = 0;
  std::optional<double> measured_w;  ///< Of the board while calls follow each other.
  double size = 0;                   ///< FLOP, or bytes of vector operations.
  StackWork work;
};

struct StackRows {
  std::vector<StackRow> rows;                                 ///< In table order.
  std::vector<std::pair<std::string, std::int64_t>> skipped;  ///< Reason and times.
  /// Family and GPU of the pooled line that lacks rows which the model could not take.
  std::vector<std::pair<std::pair<std::string, std::string>, std::int64_t>> missed;
};

/// Rows that are nothing to hold a model of one call against; the reasons say nothing about the model.
inline constexpr std::string_view kSuspect = "marked suspect", kSuperseded = "superseded by a later upload",
                                  kCeiling = "a ceiling over a search, not the time of one call",
                                  kIdleInside = "watts averaged over idle time",
                                  kUnknownOperands = "watts of products of k from 30000, operands not known";

/// Rows that can be predicted; throws ConfigError naming file, line and column for values that make no sense.
StackRows read_stack_rows(const CsvTable& table, StackTable kind, const std::vector<std::string>& gpu_files = {});

}  // namespace voltaic::validation
