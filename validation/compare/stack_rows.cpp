// SPDX-License-Identifier: MIT
// Which of the serving-stack and suite tables a file is, and its rows.
#include "validation/compare/stack_rows.hpp"

#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

/// What no row of such a table can be predicted for; empty where rows are read.
std::string_view whole_table_reason(StackTable kind) {
  switch (kind) {
    case StackTable::collective: return "collectives between GPUs are not held against tables yet";
    default: return "";
  }
}

void read_row(StackReader& reader, StackTable kind, std::size_t row) {
  switch (kind) {
    case StackTable::gemm: return read_gemm_row(reader, row);
    case StackTable::attention: return read_attention_row(reader, row);
    case StackTable::operations: return read_operation_row(reader, row);
    case StackTable::vectors: return read_vector_row(reader, row);
    case StackTable::moe: return read_moe_row(reader, row);
    case StackTable::layers: return read_layer_row(reader, row);
    case StackTable::suite_gemm: return read_suite_gemm_row(reader, row);
    case StackTable::suite_conv: return read_suite_conv_row(reader, row);
    case StackTable::recurrent: return read_recurrent_row(reader, row);
    case StackTable::sparse_product: return read_sparse_row(reader, row);
    default: return;
  }
}

}  // namespace

std::optional<StackTable> stack_table(const CsvTable& table) {
  const auto has = [&](std::initializer_list<const char*> columns) { return has_all(table, columns); };
  if (has({"gpu", "dtype", "m", "n", "k", "batch", "latency_us", "source"})) return StackTable::gemm;
  if (has({"gpu", "dtype", "phase", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim", "causal", "latency_us",
           "source"})) {
    return StackTable::attention;
  }
  if (has({"gpu", "op", "kind", "num_tokens", "n", "k", "latency_us", "source"})) return StackTable::operations;
  if (has({"gpu", "op", "rows", "cols", "dtype", "latency_us", "source"}) && !table.has("origin")) {
    return StackTable::vectors;
  }
  if (has({"gpu", "dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "distribution",
           "latency_us", "source"})) {
    return StackTable::moe;
  }
  if (has({"gpu", "model", "tp_size", "layer_name", "num_tokens", "latency_us", "source"})) return StackTable::layers;
  if (has({"gpu", "precision", "M", "N", "K", "sparsity"})) return StackTable::sparse_product;
  if (has({"gpu", "precision", "M", "N", "K", "a_trans", "b_trans", "time_us"})) return StackTable::suite_gemm;
  if (has({"gpu", "precision", "W", "H", "C", "N", "K", "S_filter_w", "R_filter_h", "pad_w", "pad_h", "stride_w",
           "stride_h", "fwd_us", "bwd_data_us", "bwd_weights_us"})) {
    return StackTable::suite_conv;
  }
  if (has({"gpu", "precision", "cell", "hidden", "timesteps"})) return StackTable::recurrent;
  if (has({"gpu", "num_gpus", "size_bytes", "time_us"}) || has({"config", "size_bytes", "fraction_of_line_rate"}) ||
      has({"gpu", "system", "peak_allreduce_busbw_gbps"})) {
    return StackTable::collective;
  }
  return std::nullopt;
}

StackRows read_stack_rows(const CsvTable& table, StackTable kind, const std::vector<std::string>& gpu_files) {
  StackReader reader(table, gpu_files);
  const auto reason = whole_table_reason(kind);
  if (!reason.empty()) {
    if (table.rows() > 0) reader.leave_out(reason, static_cast<std::int64_t>(table.rows()));
    return reader.finish();
  }
  for (std::size_t row = 0; row < table.rows(); ++row) read_row(reader, kind, row);
  return reader.finish();
}

}  // namespace voltaic::validation
