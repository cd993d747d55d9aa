// SPDX-License-Identifier: MIT
#include "validation/compare/llm_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

namespace voltaic::validation {
namespace {

using Family = LlmShape::Family;

/// Letters and digits in lower case: tables write Llama2 13B, llama2-13b and Llama-2-13B.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, name.find('('))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

constexpr std::pair<std::string_view, LlmShape> kShapes[] = {
    {"bertbase", {Family::bert, 12, 768, 12, 12, 3072, 30522}},
    {"bertlarge", {Family::bert, 24, 1024, 16, 16, 4096, 30522}},
    {"bertmegatron", {Family::bert, 24, 1024, 16, 16, 4096, 30522}},
    {"bert6b", {Family::bert, 32, 4096, 32, 32, 16384, 30522}},
    {"gpt13b", {Family::gpt, 24, 2048, 32, 32, 8192, 51200}},
    {"gpt67b", {Family::gpt, 32, 4096, 32, 32, 16384, 51200}},
    {"gpt20b", {Family::gpt, 44, 6144, 48, 48, 24576, 51200}},
    {"gpt175b", {Family::gpt, 96, 12288, 96, 96, 49152, 51200}},
    {"megatron530b", {Family::gpt, 105, 20480, 128, 128, 81920, 51200}},
    {"gpt530b", {Family::gpt, 105, 20480, 128, 128, 81920, 51200}},
    {"bloom176b", {Family::gpt, 70, 14336, 112, 112, 57344, 250880}},
    {"gptj6b", {Family::gpt, 28, 4096, 16, 16, 16384, 50400}},
    {"llama27b", {Family::llama, 32, 4096, 32, 32, 11008, 32000}},
    {"llama7b", {Family::llama, 32, 4096, 32, 32, 11008, 32000}},
    {"llama213b", {Family::llama, 40, 5120, 40, 40, 13824, 32000}},
    {"llama270b", {Family::llama, 80, 8192, 64, 8, 28672, 32000}},
    {"llama70b", {Family::llama, 80, 8192, 64, 8, 28672, 32000}},
    {"llama318b", {Family::llama, 32, 4096, 32, 8, 14336, 128256}},
    {"llama3170b", {Family::llama, 80, 8192, 64, 8, 28672, 128256}},
    {"llama3370b", {Family::llama, 80, 8192, 64, 8, 28672, 128256}},
    {"llama31405b", {Family::llama, 126, 16384, 128, 8, 53248, 128256}},
    {"mixtral8x7b", {Family::llama, 32, 4096, 32, 8, 14336, 32000, 8, 2}},
    {"vitb16224", {Family::vit, 12, 768, 12, 12, 3072, 1000, 0, 0, 224}},
    {"vitl16224", {Family::vit, 24, 1024, 16, 16, 4096, 1000, 0, 0, 224}},
    {"vitb16", {Family::vit, 12, 768, 12, 12, 3072, 1000, 0, 0, 384}},
    {"vitl16", {Family::vit, 24, 1024, 16, 16, 4096, 1000, 0, 0, 384}},
    {"vit", {Family::vit, 12, 768, 12, 12, 3072, 1000, 0, 0, 384}},
};

constexpr std::int64_t kPositions = 32768;  // longer than any row

struct Fabric {
  std::array<double, 3> latency_s;  ///< Of 2, 4 and 8 GPUs.
  double bus_bytes_per_s;
  double host_s;  ///< Least time of one that the host launches by itself.
};
constexpr double kGpusPerNode = 8;
constexpr double kBetweenNodes = 20e-6;  ///< Assumed, for each doubling of nodes; over EFA two nodes add 53 us.
constexpr Fabric kAmpere{{10e-6, 14e-6, 22e-6}, 215e9, 42e-6};
constexpr Fabric kHopper{{6e-6, 10e-6, 16e-6}, 380e9, 21e-6};

}  // namespace

std::optional<LlmShape> llm_shape(std::string_view table_name) {
  const std::string name = plain(table_name);
  for (const auto& [known, shape] : kShapes) {
    if (known == name) return shape;
  }
  return std::nullopt;
}

std::string llm_config(const LlmShape& s, std::int64_t tp) {
  if (tp < 1 || s.heads % tp != 0 || s.ffn % tp != 0) return {};
  const std::int64_t head_dim = s.hidden / s.heads;
  const std::int64_t heads = s.heads / tp;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, s.kv_heads / tp);
  const std::int64_t vocab = (s.vocab + tp - 1) / tp;
  switch (s.family) {
    case Family::bert:
      if (tp > 1) return {};
      return fmt::format(
          R"({{"model_type":"bert","hidden_size":{},"num_hidden_layers":{},"num_attention_heads":{},"intermediate_size":{},"vocab_size":{},"max_position_embeddings":{}}})",
          s.hidden, s.layers, s.heads, s.ffn, s.vocab, kPositions);
    case Family::vit:
      if (tp > 1) return {};
      return fmt::format(
          R"({{"model_type":"vit","hidden_size":{},"num_hidden_layers":{},"num_attention_heads":{},"intermediate_size":{},"image_size":{},"patch_size":16,"num_labels":{}}})",
          s.hidden, s.layers, s.heads, s.ffn, s.image, s.vocab);
    case Family::gpt:
      return fmt::format(
          R"({{"model_type":"gpt2","n_embd":{},"n_layer":{},"n_head":{},"head_dim":{},"n_inner":{},"vocab_size":{},"n_positions":{},"activation_function":"gelu_pytorch_tanh"}})",
          s.hidden, s.layers, heads, head_dim, s.ffn / tp, vocab, kPositions);
    case Family::llama: break;
  }
  const std::string experts =
      s.experts > 0 ? fmt::format(R"(,"num_local_experts":{},"num_experts_per_tok":{})", s.experts, s.top_k) : "";
  return fmt::format(
      R"({{"model_type":"{}","hidden_size":{},"num_hidden_layers":{},"num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},"intermediate_size":{},"vocab_size":{},"max_position_embeddings":{}{}}})",
      s.experts > 0 ? "mixtral" : "llama", s.hidden, s.layers, heads, kv_heads, head_dim, s.ffn / tp, vocab, kPositions,
      experts);
}

double all_reduce_s(double bytes, std::int64_t gpus, std::string_view gpu, bool recorded) {
  if (gpus < 2) return 0;
  const Fabric& fabric = gpu.starts_with("h") ? kHopper : kAmpere;
  const double n = static_cast<double>(gpus);
  const double nodes = std::max(1.0, std::ceil(n / kGpusPerNode));
  const double latency = fabric.latency_s[gpus <= 2 ? 0 : gpus <= 4 ? 1 : 2] + kBetweenNodes * std::log2(nodes);
  const double device = latency + 2 * (n - 1) / n * bytes / fabric.bus_bytes_per_s;
  return recorded ? device : std::max(device, fabric.host_s);
}

HostProfile serving_host(std::string_view gpu) {
  constexpr double kSequence = 0.47e-3;
  return gpu.starts_with("h") ? HostProfile{0.375e-3, kSequence} : HostProfile{0.54e-3, kSequence};
}

double pass_all_reduce_s(const LlmShape& shape, double tokens, std::int64_t tp, const Request& request) {
  constexpr double kBytes = 2;  // 16-bit activations
  const bool recorded =
      request.framework != kernel::Framework::eager && request.framework != kernel::Framework::compiled;
  return 2 * static_cast<double>(shape.layers) *
         all_reduce_s(kBytes * tokens * static_cast<double>(shape.hidden), tp, request.gpu, recorded);
}

}  // namespace voltaic::validation
