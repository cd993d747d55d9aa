// SPDX-License-Identifier: MIT
// Published inference times: which engine, which figure, which request.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "arch/units/error.hpp"
#include "validation/compare/llm_models.hpp"
#include "validation/compare/llm_rows.hpp"

namespace voltaic::validation {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::int64_t count_of(const CsvTable& table, std::size_t row, const char* column, std::int64_t fallback) {
  const auto value = table.integer(row, column);
  if (!value) return fallback;
  constexpr std::int64_t kMost = 1 << 24;
  if (*value < 1 || *value > kMost) {
    throw ConfigError(table.place(row), column, fmt::format("expected a count from 1 to {}, got {}", kMost, *value));
  }
  return *value;
}

/// Two headings whose rows leave padding out without a word: one repeats the times of the EFF-FT rows, the other would
/// pass the peak of its GPU at the padded length.
bool removes_padding(const CsvTable& table, std::size_t row) {
  const auto heading = table.text(row, "heading");
  return holds(heading, "comparison between T4, V100, A100") || holds(heading, "Multi-GPU BERT-6B");
}

/// PyTorch and TorchScript dispatch operation by operation; engines written for transformers launch fused kernels, one
/// by one from native code or recorded.
std::string set_framework(std::string_view implementation, Request& request) {
  if (implementation.starts_with("TF") || holds(implementation, "Tensorflow"))
    return "TensorFlow's kernels are not modelled";
  if (holds(implementation, "EFF-FT") || holds(implementation, "remove padding") ||
      implementation.starts_with("ByteTransformer")) {
    return "padding removed: the lengths are not stated";
  }
  if (holds(implementation, "gpt-fast")) {
    request.framework = kernel::Framework::compiled_graph;
  } else if (holds(implementation, "orch") && !holds(implementation, "torch op")) {  // torch, PyTorch, TorchScript
    request.framework = kernel::Framework::eager;
    request.attention = workloads::AttentionForm::unfused;
  } else if (implementation.starts_with("TensorRT") || holds(implementation, "trt plugin")) {
    request.framework = kernel::Framework::tensorrt;
  } else {
    request.framework = kernel::Framework::compiled;
  }
  return "";
}

std::string set_precision(const CsvTable& table, std::size_t row, Request& request) {
  const std::string word(table.text(row, "precision"));
  std::string name;
  for (const char c : word) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "int8 weight-only") name = "w8a16";
  if (name == "int4 weight-only") name = "w4a16";
  if (name.starts_with("int8")) name = "int8";
  if (name.empty() || name == "fp16/bf16") return "precision not stated";
  if (name == "fp32" && (request.gpu.starts_with("a") || request.gpu.starts_with("h"))) {
    return "FP32 that may be TF32";
  }
  // A heading that says FP32 over rows that a reader called TF32: some of them run at the rate of CUDA cores.
  const auto heading = table.text(row, "heading");
  if (name == "tf32" && holds(heading, "FP32") && !holds(heading, "TF32")) return "FP32 that may be TF32";
  const auto precision = graph::parse_precision(name);
  if (!precision) return fmt::format("precision {} is not built yet", one_line(word, 40));
  request.precision = *precision;
  return "";
}

/// "NVIDIA/FasterTransformer: docs/bert_guide.md" and "FT" give "FasterTransformer FT".
std::string origin_of(std::string_view source, std::string_view implementation) {
  const std::size_t slash = source.find('/');
  std::string_view project = source.substr(0, source.find(':'));
  if (slash < project.size()) project.remove_prefix(slash + 1);
  std::string_view engine = implementation.substr(0, implementation.find(" ("));
  while (engine.ends_with(' ')) engine.remove_suffix(1);
  return one_line(fmt::format("{} {}", project, engine), 80);
}

bool has_sparse_weights(const CsvTable& table, std::size_t row) {
  return holds(table.text(row, "notes"), "structured-sparse (2:4)") || holds(table.text(row, "heading"), "Sparsity");
}

constexpr std::int64_t kPatch = 16, kFusedTokens = 384;

struct Row {
  LlmShape shape;
  std::int64_t batch = 0, input = 0, output = 0, tp = 1;
};

/// Boards that the source ran below their own power limit.
void set_power(const CsvTable& table, std::size_t row, Request& request) {
  if (holds(table.text(row, "clocks_or_host"), "330 W power limit")) request.operating.power_cap = Watts{330};
}

/// An encoder's pass.
std::string encoder(const CsvTable& table, std::size_t row, const Row& r, LlmAsk& ask) {
  const auto seconds = measured_time(table, row, "latency_ms", 1e-3);
  if (!seconds) return std::string(kNoTime);
  if (r.shape.family == LlmShape::Family::bert) {
    if (r.input == 0) return "sequence length not stated";
    ask.request.seq = r.input;
  }
  // Their fused attention holds one head's keys in shared memory: 384 tokens at most.
  const std::int64_t tokens = r.shape.image > 0 ? (r.shape.image / kPatch) * (r.shape.image / kPatch) + 1 : r.input;
  if (tokens > kFusedTokens) ask.request.attention = workloads::AttentionForm::unfused;
  ask.pair.mode = ask.request.sparsity ? "encoder 2:4" : "encoder";
  ask.pair.measured = *seconds;
  return "";
}

/// A completion's time, or its time per token where the source gives a rate.
std::string completion(const CsvTable& table, std::size_t row, const Row& r, LlmAsk& ask) {
  const auto seconds = measured_time(table, row, "latency_ms", 1e-3);
  const auto kind = table.text(row, "latency_kind");
  if (r.input == 0) return "prompt length not stated";
  ask.request.seq = r.input;
  const double tokens = static_cast<double>(r.batch);
  const auto reduce = [&](double rows) { return pass_all_reduce_s(r.shape, rows, r.tp, ask.request); };
  const double prompt_reduce = reduce(tokens * static_cast<double>(r.input));
  if (kind == "first token") {
    if (!seconds) return std::string(kNoTime);
    ask.request.phase = workloads::RunPhase::prefill;
    ask.pair.mode = "prefill";
    ask.pair.measured = *seconds;
    ask.communication_s = prompt_reduce;
    return "";
  }
  if (r.output < 2) return "number of generated tokens not stated";
  ask.request.generate = r.output;
  ask.pair.mode = "generate";
  const double out = static_cast<double>(r.output);
  ask.communication_s = prompt_reduce + (out - 1) * reduce(tokens);
  if (kind.starts_with("per output token")) {
    if (!seconds) return std::string(kNoTime);
    ask.pair.mode = "decode";  // the rate counts the short prompt in
    ask.pair.measured = *seconds;
    ask.times = 1 / out;
    ask.communication_s /= out;
    return "";
  }
  if (seconds && !kind.starts_with("percentiles")) {
    ask.pair.measured = *seconds;
    return "";
  }
  const auto rate = table.number(row, "throughput");
  const auto unit = table.text(row, "throughput_unit");
  if (!rate || !(*rate > 0) || !unit.starts_with("output tokens/s")) return std::string(kNoTime);
  const double gpus = holds(unit, "per GPU") ? static_cast<double>(r.tp) : 1;
  ask.pair.measured = tokens * out / (*rate * gpus);
  return "";
}

}  // namespace

std::string read_inference_row(const CsvTable& table, std::size_t row, LlmAsk& ask) {
  const auto model = table.text(row, "model");
  const auto shape = llm_shape(model);
  if (!shape) return fmt::format("model {} is none that can be built", one_line(model, 40));
  if (count_of(table, row, "pp", 1) > 1) return "pipeline parallel";
  ask.request.gpu = llm_gpu(table.text(row, "gpu"));
  if (ask.request.gpu.empty()) return fmt::format("GPU {} is unknown", one_line(table.text(row, "gpu"), 40));
  const auto implementation = table.text(row, "implementation");
  if (std::string reason = set_framework(implementation, ask.request); !reason.empty()) return reason;
  if (std::string reason = set_precision(table, row, ask.request); !reason.empty()) return reason;
  ask.request.sparsity = has_sparse_weights(table, row);
  if (removes_padding(table, row)) return "padding removed: the lengths are not stated";
  Row r;
  r.shape = *shape;
  r.batch = count_of(table, row, "batch", 0);
  r.input = count_of(table, row, "input_len", 0);
  r.output = count_of(table, row, "output_len", 0);
  r.tp = count_of(table, row, "tp", 1);
  if (r.batch == 0) return "batch not stated";
  if (table.text(row, "beam_or_topk").starts_with("beam")) return "beam search";
  ask.request.workload = llm_config(*shape, r.tp);
  if (ask.request.workload.empty()) return fmt::format("{} is not split over {} GPUs", one_line(model, 40), r.tp);
  ask.request.batch = r.batch;
  set_power(table, row, ask.request);
  ask.pair.gpu = one_line(table.text(row, "gpu"));
  ask.pair.op = "network";
  ask.pair.dtype = one_line(table.text(row, "precision"), 40);
  ask.pair.origin = origin_of(table.text(row, "source"), implementation);
  const bool encodes = shape->family == LlmShape::Family::bert || shape->family == LlmShape::Family::vit;
  std::string reason = encodes ? encoder(table, row, r, ask) : completion(table, row, r, ask);
  ask.pair.label = fmt::format("{} batch {} in {} out {} tp {}", one_line(model, 40), r.batch, r.input, r.output, r.tp);
  return reason;
}

}  // namespace voltaic::validation
