// SPDX-License-Identifier: MIT
// Shapes of the models that tables of whole-model times name, and what one GPU of a tensor-parallel group holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/request.hpp"

namespace voltaic::validation {

struct LlmShape {
  enum class Family : std::uint8_t { bert, gpt, llama, vit } family = Family::llama;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  std::int64_t experts = 0, top_k = 0;
  std::int64_t image = 0;  ///< Edge, for image models.
};

/// The shape of a model as tables spell it ("Llama-3.1-8B", "llama2-70b"); nullopt when it is none that the builders
/// can express.
std::optional<LlmShape> llm_shape(std::string_view table_name);

/// A configuration text that load_workload() reads: heads, feed-forward width, experts' width and vocabulary divided by
/// `tp`, the hidden width kept, as each GPU of the group computes it. Empty when `tp` does not divide the heads.
std::string llm_config(const LlmShape& shape, std::int64_t tp);

/// All-reduce of one message over `gpus` GPUs that an NVLink switch joins:
///     t = latency(gpus) + 2 (gpus - 1) / gpus * bytes / bandwidth
/// Latency and bus bandwidth as nccl-tests show them on 8xA100 and 8xH100 boards (10, 14, 22 us and 215 GB/s; 6, 10,
/// 16 us and 380 GB/s); launched by the host one by one it takes at least the 42 and 21 us that serving engines show
/// there without graphs. Beyond a board of eight each doubling of nodes adds 20 us (assumed). Simplification: one line
/// for all sizes; rows between 64 KiB and 1 MiB lie up to 30 % off it.
double all_reduce_s(double bytes, std::int64_t gpus, std::string_view gpu, bool recorded);

/// What a serving engine's host needs for a pass, where Python dispatches every operation and prepares every sequence:
///     t = max(GPU and all-reduces, layers * layer_s) + sequences * sequence_s
struct HostProfile {
  double layer_s = 0, sequence_s = 0;
};
/// Of the hosts of the serving runs, DGX A100 and DGX H100: the one profile that is fitted on a table of whole models,
/// decode steps of groups model|mode|precision|batch whose crc32 modulo 10 is 0 to 5 (18 of 116 runs).
HostProfile serving_host(std::string_view gpu);

/// All-reduces of one pass: two a layer, each of the activations of all its tokens in 16 bits.
double pass_all_reduce_s(const LlmShape& shape, double tokens, std::int64_t tp, const Request& request);

}  // namespace voltaic::validation
