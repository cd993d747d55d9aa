// SPDX-License-Identifier: MIT
// Operations of transformer layers as serving stacks run them: products by token count, vector kernels, experts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "arch/units/error.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

using graph::OpType;

/// The trace's clock ticks in microseconds: shorter kernels are known to a tick, which is no accuracy of a model.
constexpr double kTenTicks = 10e-6;

std::string vector_family(double measured_s, const std::string& dtype) {
  return fmt::format("{}, {}", family_name("serving vectors", dtype),
                     measured_s >= kTenTicks ? "10 us and more" : "below 10 us");
}

/// Tensors of `rows` x `cols` that a vector operation reads and writes.
double passes(OpType op) {
  return op == OpType::add || op == OpType::silu_mul ? 3 : 2;
}

void set_vector(const CsvTable& table, std::size_t row, const VectorCall& call, std::string_view key, StackRow& out) {
  double bytes = 0;
  for (const std::int64_t cols : call.widths) {
    check_elements(table, row, {call.rows, cols});
    bytes += passes(call.op) * static_cast<double>(call.rows) * static_cast<double>(cols);
  }
  out.size = bytes * bytes_per_element(call.type);
  out.key = fmt::format("{}|{}|{}", key, call.rows, call.widths.front());
  // Rows of one label share an answer, so it tells apart all that sets the kernel.
  out.label = fmt::format("{} x {} {}", call.rows, call.widths.front(), graph::to_string(call.op));
  if (call.query_cols > 0) out.label += fmt::format(" of {} query columns", call.query_cols);
  if (call.widths.size() > 1) out.label += " twice";
  out.work = call;
}

/// Empty where the stack's word is none of ours. Norms of the phi models have a mean, those of the others none.
std::optional<OpType> operation_of(std::string_view kind, std::string_view model, bool gated) {
  if (kind == "add") return OpType::add;
  if (kind == "layernorm") return model.starts_with("phi") ? OpType::layer_norm : OpType::rms_norm;
  if (kind == "attn_rope" || kind == "rope") return OpType::rope;
  if (kind == "mlp_act" || kind == "activation") return gated ? OpType::silu_mul : OpType::gelu;
  if (kind == "emb" || kind == "embedding") return OpType::embedding;
  return std::nullopt;
}

/// Query columns of all heads, as published; 0: unknown.
std::int64_t query_columns(std::string_view model) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kHidden{{
      {"CodeLlama-34b", 8192},
      {"Llama-2-70b", 8192},
      {"Llama-2-7b", 4096},
      {"Meta-Llama-3-70B", 8192},
      {"Meta-Llama-3-8B", 4096},
      {"Qwen-72B", 8192},
      {"internlm-20b", 5120},
      {"phi-2", 2560},
  }};
  const auto at =
      std::find_if(kHidden.begin(), kHidden.end(), [&](const auto& m) { return model.starts_with(m.first); });
  return at == kHidden.end() ? 0 : at->second;
}

/// One kernel of the stack's own each, as an inference engine has them. The phi models' layers add the results of
/// attention and feed-forward, which run side by side, in two kernels.
VectorCall serving_call(OpType op, std::int64_t tokens, std::int64_t n, DataType type, std::string_view model,
                        std::int64_t gpus) {
  VectorCall call{op, tokens, {n}, type, kernel::Framework::tensorrt};
  if (op == OpType::add && model.starts_with("phi")) call.widths.push_back(n);
  if (op == OpType::rope) call.query_cols = std::min(n, query_columns(model) / gpus);
  return call;
}

kernel::GemmProblem layer_product(std::int64_t m, std::int64_t n, std::int64_t k, DataType type) {
  kernel::GemmProblem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.transpose_b = true;
  p.math = type;
  p.a_bytes = p.b_bytes = p.c_bytes = bytes_per_element(type);
  return p;
}

void set_product(const CsvTable& table, std::size_t row, const kernel::GemmProblem& p, StackRow& out) {
  check_product(table, row, p);
  describe_product(p, p.m, p.n, out);
  out.call = "gemm";
  out.work = ProductCall{p};
}

/// Kernels as tables name them, and how the table's maker dealt out what rounding left of a power law: seen in how many
/// experts few tokens read.
void set_stack(std::string_view kernels, MoeCall& call) {
  struct Stack {
    std::string_view source, name;
    kernel::Leftover leftover;
  };
  constexpr std::array<Stack, 4> kStacks{{
      {"sglang_fused_moe_triton", "sglang_triton", kernel::Leftover::spread_idle},
      {"sglang_marlin_moe", "sglang_marlin", kernel::Leftover::spread_idle},
      {"vllm_fused_moe", "vllm_triton", kernel::Leftover::first_idle},
      {"moe_torch_flow", "trtllm_cutlass", kernel::Leftover::largest},
  }};
  call.stack = is_floating(call.weights) ? "vllm_triton" : "sglang_marlin";
  for (const Stack& s : kStacks) {
    if (s.source != kernels) continue;
    call.stack = s.name;
    call.leftover = s.leftover;
  }
}

}  // namespace

void read_operation_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  StackRow out;
  const auto kind = reader.text(row, "kind");
  out.op = out.call = one_line(kind);
  out.mode = "forward";
  out.dtype = table.has("dtype") ? one_line(reader.text(row, "dtype")) : "fp16";
  out.family = family_name(kind == "gemm" ? "products" : "serving vectors", out.dtype);
  if (!reader.begin(row, "latency_us", reader.text(row, "source"), out)) return;
  const auto type = parse_data_type(out.dtype);
  if (!type || !is_floating(*type)) {
    return reader.miss(fmt::format("dtype {} is unknown for {}", out.dtype, out.op), out);
  }
  const std::int64_t tokens = size_cell(table, row, "num_tokens");
  const std::int64_t n = size_cell(table, row, "n");
  if (kind == "gemm") {
    set_product(table, row, layer_product(tokens, n, size_cell(table, row, "k"), *type), out);
    return reader.take(std::move(out));
  }
  out.family = vector_family(out.measured_s, out.dtype);
  const auto op = operation_of(kind, reader.text(row, "model"), reader.text(row, "gated") != "0");
  if (!op) return reader.miss(fmt::format("op {} is unknown", out.op), out);
  const auto call = serving_call(*op, tokens, n, *type, reader.text(row, "model"), size_cell_or(table, row, "tp", 1));
  set_vector(table, row, call, out.op, out);
  reader.take(std::move(out));
}

void read_vector_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  StackRow out;
  out.op = out.call = one_line(reader.text(row, "op"));
  out.mode = "forward";
  out.dtype = one_line(reader.text(row, "dtype"));
  const bool rowwise = out.op == "softmax" || out.op == "layernorm";
  out.family = family_name(rowwise ? "softmax and layer norm" : "pointwise", out.dtype);
  if (!reader.begin(row, "latency_us", reader.text(row, "source"), out)) return;
  const auto type = parse_data_type(out.dtype);
  if (!type || !is_floating(*type)) {
    return reader.miss(fmt::format("dtype {} is unknown for {}", out.dtype, out.op), out);
  }
  const auto op = out.op == "layernorm" ? OpType::layer_norm : graph::parse_op(out.op).value_or(OpType::copy);
  constexpr std::array kKnown{OpType::softmax, OpType::layer_norm, OpType::gelu, OpType::relu,
                              OpType::silu,    OpType::tanh,       OpType::add,  OpType::mul};
  if (std::find(kKnown.begin(), kKnown.end(), op) == kKnown.end()) {
    return reader.miss(fmt::format("op {} is unknown", out.op), out);
  }
  const std::int64_t rows = size_cell(table, row, "rows");
  set_vector(table, row, {op, rows, {size_cell(table, row, "cols")}, *type, kernel::Framework::eager}, out.op, out);
  reader.take(std::move(out));
}

void read_moe_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  StackRow out;
  out.op = out.call = "moe";
  out.dtype = one_line(reader.text(row, "dtype"));
  const auto distribution = reader.text(row, "distribution");
  out.mode = one_line(distribution);
  out.family = family_name("mixture of experts", out.dtype);
  if (!reader.begin(row, "latency_us", reader.text(row, "source"), out)) return;
  MoeCall call;
  const auto type = parse_data_type(out.dtype);
  if (type && is_floating(*type)) {
    call.weights = call.math = *type;
  } else if (out.dtype == "int4_wo" || out.dtype == "w4a16" || out.dtype == "int8_wo" || out.dtype == "w8a16") {
    call.weights = out.dtype == "int4_wo" || out.dtype == "w4a16" ? DataType::int4 : DataType::int8;
  } else {
    return reader.miss(fmt::format("dtype {} is unknown for moe", out.dtype), out);
  }
  constexpr std::string_view kPowerLaw = "power_law_";
  if (distribution.starts_with(kPowerLaw)) {
    const auto exponent = distribution.substr(kPowerLaw.size());
    const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), call.skew);
    call.routing = kernel::Routing::power_law;
    if (error != std::errc{} || end != exponent.data() + exponent.size() || !(call.skew >= 0 && call.skew <= 10)) {
      throw ConfigError(table.place(row), "distribution",
                        fmt::format("expected an exponent from 0 to 10, got '{}'", one_line(exponent)));
    }
  } else if (distribution != "balanced") {
    return reader.miss(fmt::format("routing {} is unknown", out.mode), out);
  }
  set_stack(reader.table().has("kernel_source") ? reader.text(row, "kernel_source") : "", call);
  call.tokens = size_cell(table, row, "num_tokens");
  call.hidden = size_cell(table, row, "hidden_size");
  call.inner = size_cell(table, row, "inter_size");
  call.top_k = size_cell(table, row, "topk");
  call.experts = size_cell(table, row, "num_experts");
  call.tensor_parallel = size_cell_or(table, row, "moe_tp_size", 1);
  call.expert_parallel = size_cell_or(table, row, "moe_ep_size", 1);
  if (call.top_k > call.experts) {
    throw ConfigError(table.place(row), "topk",
                      fmt::format("expected at most {} experts, got {}", call.experts, call.top_k));
  }
  if (call.inner % call.tensor_parallel != 0 || call.experts % call.expert_parallel != 0) {
    return reader.miss("experts or their width do not divide among the GPUs", out);
  }
  check_elements(table, row, {call.tokens, call.top_k, std::max(call.hidden, call.inner)});
  check_elements(table, row, {call.experts, call.hidden, call.inner});
  out.key = fmt::format("moe|{}|{}|{}|{}|{}|{}|{}|{}", call.tokens, call.hidden, call.inner, call.top_k, call.experts,
                        call.tensor_parallel, call.expert_parallel, distribution);
  out.label = fmt::format("{} tokens, {} of {} experts {} x {}, tp {} ep {}, {}", call.tokens, call.top_k, call.experts,
                          call.hidden, call.inner, call.tensor_parallel, call.expert_parallel, call.stack);
  out.size = 6 * static_cast<double>(call.tokens) * static_cast<double>(call.top_k) * static_cast<double>(call.hidden) *
             static_cast<double>(call.inner) / static_cast<double>(call.tensor_parallel * call.expert_parallel);
  out.work = call;
  reader.take(std::move(out));
}

}  // namespace voltaic::validation
