// SPDX-License-Identifier: MIT
// Runs of a serving engine on a tensor-parallel group, and single operations of one layer of such a model.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "arch/units/error.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/llm_models.hpp"
#include "validation/compare/llm_rows.hpp"

namespace voltaic::validation {
namespace {

struct Run {
  std::string model, gpu;
  std::int64_t prompt = 0, batch = 0, tokens = 0, tp = 0;
  auto key() const { return std::tie(model, gpu, prompt, batch, tokens, tp); }
  friend bool operator<(const Run& a, const Run& b) { return a.key() < b.key(); }
};

struct Times {
  std::vector<double> prompt_s, token_s;
};

std::int64_t size_of(const CsvTable& table, std::size_t row, const char* column) {
  const auto value = table.integer(row, column);
  if (!value || *value < 1 || *value > (1 << 24)) {
    throw ConfigError(table.place(row), column, "expected a size from 1 to 16777216");
  }
  return *value;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

constexpr std::string_view kPrefill = "prefill", kDecode = "decode";

LlmAsk ask_of(const Run& run, const LlmShape& shape, std::string_view mode) {
  LlmAsk ask;
  ask.request.workload = llm_config(shape, run.tp);
  ask.request.gpu = llm_gpu(run.gpu);
  ask.request.framework = kernel::Framework::compiled;  // an engine of 2023: fused kernels, no graphs
  ask.request.precision = graph::Precision::fp16;
  ask.request.batch = run.batch;
  ask.request.seq = run.prompt;
  const HostProfile host = serving_host(ask.request.gpu);
  ask.host_least_s = static_cast<double>(shape.layers) * host.layer_s;
  ask.host_added_s = static_cast<double>(run.batch) * host.sequence_s;
  ask.pair.gpu = run.gpu;
  ask.pair.op = "network";
  ask.pair.dtype = "fp16";
  ask.pair.mode = mode;
  ask.pair.fit = mode == kDecode && is_fit_key(fmt::format("{}|{}|fp16|{}", run.model, mode, run.batch));
  ask.pair.label = fmt::format("{} batch {} in {} out {} tp {}", run.model, run.batch, run.prompt, run.tokens, run.tp);
  return ask;
}

/// Empty, or why the run cannot be predicted.
std::string refusal(const Run& run) {
  if (run.gpu.ends_with("-pcap")) return "power-capped rows that were computed from others";
  const auto shape = llm_shape(run.model);
  if (!shape) return fmt::format("model {} is none that can be built", run.model);
  if (llm_gpu(run.gpu).empty()) return fmt::format("GPU {} is unknown", run.gpu);
  if (llm_config(*shape, run.tp).empty()) return fmt::format("{} is not split over {} GPUs", run.model, run.tp);
  return "";
}

}  // namespace

std::vector<LlmAsk> read_serving_rows(const CsvTable& table, Validation& out) {
  std::map<Run, Times> runs;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Run run{one_line(table.text(row, "model"), 40), one_line(table.text(row, "hardware"), 40),
                  size_of(table, row, "prompt_size"),     size_of(table, row, "batch_size"),
                  size_of(table, row, "token_size"),      size_of(table, row, "tensor_parallel")};
    if (std::string reason = refusal(run); !reason.empty()) {
      skip(out, reason);
      continue;
    }
    const auto prompt = measured_time(table, row, "prompt_time_ms", 1e-3);
    const auto token = measured_time(table, row, "token_time_ms", 1e-3);
    if (!prompt || !token) {
      skip(out, std::string(kNoTime));
      continue;
    }
    Times& times = runs[run];
    if (times.prompt_s.empty() && table.number(row, "avg_power_frac_tdp").value_or(0) > 0) {
      skip(out, "watts of a group of GPUs: what its links draw is not modelled");
    }
    if (!times.prompt_s.empty()) skip(out, "repeat of a run, in its median");
    times.prompt_s.push_back(*prompt);
    times.token_s.push_back(*token);
  }
  std::vector<LlmAsk> asks;
  for (const auto& [run, times] : runs) {
    const LlmShape shape = *llm_shape(run.model);
    const double batch = static_cast<double>(run.batch);
    LlmAsk prefill = ask_of(run, shape, kPrefill);
    prefill.request.phase = workloads::RunPhase::prefill;
    prefill.pair.measured = median(times.prompt_s);
    prefill.communication_s =
        pass_all_reduce_s(shape, batch * static_cast<double>(run.prompt), run.tp, prefill.request);
    prefill.pair.origin = "serving runs";
    asks.push_back(std::move(prefill));
    if (run.tokens < 2) continue;
    LlmAsk decode = ask_of(run, shape, kDecode);
    decode.request.generate = run.tokens;
    decode.figure = LlmAsk::Figure::per_token;
    decode.pair.measured = median(times.token_s);
    decode.communication_s = pass_all_reduce_s(shape, batch, run.tp, decode.request);
    decode.pair.origin = "serving runs";
    asks.push_back(std::move(decode));
  }
  return asks;
}

std::string read_layer_row(const CsvTable& table, std::size_t row, LlmAsk& ask) {
  // One layer of GPT-3 175B over four GPUs, eight sequences: 12288 wide, 24 heads of 128 on each GPU.
  constexpr std::int64_t kBatch = 8, kWidth = 12288, kPart = 3072, kHeads = 24, kHeadDim = 128, kPrompt = 2048,
                         kCache = 3072;
  const auto workload = table.text(row, "workload");
  if (workload.find("GPT3-175B") == std::string_view::npos || workload.find("TP4, batch 8") == std::string_view::npos)
    return fmt::format("layer of {} is unknown", one_line(workload, 60));
  const auto phase = table.text(row, "phase");
  const bool prefill = phase == "prefill(seq=2048)";
  if (!prefill && phase != "decode(kv~3072)") return fmt::format("phase {} is unknown", one_line(phase, 40));
  const auto us = measured_time(table, row, "latency_us", 1e-6);
  if (!us) return std::string(kNoTime);
  const std::int64_t queries = prefill ? kPrompt : 1, keys = prefill ? kPrompt : kCache, tokens = kBatch * queries;
  const auto matmul = [](std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
    return fmt::format("op:matmul,batch={},m={},n={},k={}", batch, m, n, k);
  };
  const auto op = table.text(row, "op");
  if (op == "Q_K_V") {
    ask.request.workload = matmul(1, tokens, kPart, kWidth);
    ask.times = 3;
  } else if (op == "Q_mul_K") {
    ask.request.workload = matmul(kBatch * kHeads, queries, keys, kHeadDim);
  } else if (op == "A_mul_V") {
    ask.request.workload = matmul(kBatch * kHeads, queries, kHeadDim, keys);
  } else if (op == "Wo_proj") {
    ask.request.workload = matmul(1, tokens, kWidth, kPart);
  } else if (op == "W1_proj" || op == "W2_proj") {
    ask.request.workload = matmul(1, tokens, kWidth, kWidth);
  } else if (op == "Softmax") {
    ask.request.workload = fmt::format("op:softmax,rows={},cols={}", kBatch * kHeads * queries, keys);
  } else if (op.starts_with("LayerNorm")) {
    ask.request.workload = fmt::format("op:layer_norm,rows={},cols={}", tokens, kWidth);
  } else if (op == "GeLU") {
    ask.request.workload = fmt::format("op:gelu,rows={},cols={}", tokens, kWidth);
  } else {
    return fmt::format("collectives are not modelled yet: {}", one_line(op.substr(0, op.find('_')), 40));
  }
  ask.request.gpu = llm_gpu(table.text(row, "gpu"));
  if (ask.request.gpu.empty()) return fmt::format("GPU {} is unknown", one_line(table.text(row, "gpu"), 40));
  ask.request.precision = graph::Precision::fp16;
  ask.pair.gpu = one_line(table.text(row, "gpu"));
  ask.pair.op = one_line(op, 40);
  ask.pair.dtype = "fp16";
  ask.pair.mode = prefill ? "prefill" : "decode";
  ask.pair.origin = one_line(table.text(row, "source"), 40);
  ask.pair.label = ask.request.workload;
  ask.pair.measured = *us;
  return "";
}

}  // namespace voltaic::validation
