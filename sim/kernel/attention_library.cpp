// SPDX-License-Identifier: MIT
#include "sim/kernel/attention_library.hpp"

#include <algorithm>
#include <array>

namespace voltaic::kernel {

namespace {

constexpr std::int64_t kAny = INT64_MAX;
constexpr std::array<TileSize, 3> kPaged2{{{64, 64, 256}, {128, 64, 128}, {kAny, 64, 64}}};
constexpr std::array<TileSize, 2> kDense2{{{64, 128, 128}, {kAny, 128, 64}}};
constexpr std::array<TileSize, 1> kAmpere3{{{kAny, 128, 64}}};
constexpr std::array<TileSize, 1> kAmpere3Split{{{kAny, 128, 128}}};
constexpr std::array<TileSize, 4> kPaged3{{{96, 192, 128}, {128, 128, 128}, {192, 128, 96}, {kAny, 128, 64}}};
constexpr std::array<TileSize, 3> kDense3{{{64, 192, 192}, {96, 192, 144}, {kAny, 128, 176}}};
constexpr std::array<TileSize, 3> kFirst3{{{64, 192, 128}, {128, 128, 128}, {kAny, 128, 80}}};
constexpr std::array<TileSize, 3> kFirst3Open{{{64, 192, 128}, {128, 128, 176}, {kAny, 128, 80}}};
constexpr std::array<TileSize, 1> kSquare{{{kAny, 64, 64}}};
constexpr std::array<TileSize, 1> kEfficient{{{kAny, 64, 128}}};

constexpr auto kNone = SplitRule::none;
constexpr auto kWaves = SplitRule::waves;
constexpr auto kTwoSteps = SplitRule::two_steps;

/// In the order of AttentionLibrary after `automatic`. Tiles and rules are the libraries' own as far as published
/// [FA2] [FA3]; where only timings tell, validation/DEVIATIONS.md D25 says so.
constexpr std::array<AttentionRules, 9> kRules{{
    {"flash2_paged", "flash-attn", "", kPaged2, kPaged2, kPaged2, 2, 2, false, false, 64, kNone, kWaves, false},
    {"flash2_dense", "flash-attn", "", kDense2, kDense2, kDense2, 2, 2, false, false, 64, kNone, kNone, false},
    {"flash3_sm80", "flash-attn", "", kAmpere3, kAmpere3, kAmpere3Split, 2, 1, true, false, 64, kTwoSteps, kTwoSteps,
     false},
    {"flash3", "flash-attn", "hopper::", kPaged3, kPaged3, kPaged3, 1, 1, true, true, 64, kTwoSteps, kTwoSteps, true},
    {"flash3_dense", "flash-attn", "hopper::", kDense3, kDense3, kDense3, 1, 1, false, false, 64, kTwoSteps, kNone,
     true},
    {"flash3_first", "flash-attn", "hopper::", kFirst3, kFirst3Open, kFirst3, 1, 1, false, true, 64, kNone, kNone,
     true},
    {"flash4_512", "flash-attn", "cute::", kSquare, kSquare, kSquare, 1, 1, true, false, 64, kTwoSteps,
     SplitRule::constant, true},
    {"tensorrt", "TensorRT-LLM", "trtllm::", kSquare, kSquare, kSquare, 2, 2, false, false, 16, kNone, kNone, false},
    {"memory_efficient", "CUTLASS", "", kEfficient, kEfficient, kEfficient, 2, 2, false, false, 16, kNone, kWaves,
     false},
}};

constexpr std::int64_t kLargestFlashHead = 256;

AttentionLibrary own_library(const AttentionKernel& k, const arch::GpuSpec& gpu) {
  const bool sixteen = k.math == DataType::fp16 || k.math == DataType::bf16;
  const bool hopper = gpu.architecture == arch::Architecture::hopper;
  const bool type = sixteen || (hopper && k.math == DataType::fp8);
  const bool modern = hopper || gpu.architecture == arch::Architecture::ampere;
  if (!type || !modern || !gpu.has_tensor_path(k.math) || std::max(k.head_dim, k.value_dim) > kLargestFlashHead) {
    return AttentionLibrary::memory_efficient;
  }
  return hopper ? AttentionLibrary::flash3 : AttentionLibrary::flash2_paged;
}

}  // namespace

const AttentionRules& attention_rules(AttentionLibrary library) {
  const auto i = static_cast<std::size_t>(library);
  return kRules[i == 0 ? kRules.size() - 1 : i - 1];
}

std::string_view to_string(AttentionLibrary library) {
  return library == AttentionLibrary::automatic ? "automatic" : attention_rules(library).name;
}

std::optional<AttentionLibrary> parse_attention_library(std::string_view name) {
  if (name == "automatic") return AttentionLibrary::automatic;
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i].name == name) return static_cast<AttentionLibrary>(i + 1);
  }
  return std::nullopt;
}

AttentionLibrary attention_library(const AttentionKernel& k, const arch::GpuSpec& gpu) {
  const AttentionLibrary own = own_library(k, gpu);
  const bool large = std::max(k.head_dim, k.value_dim) > kLargestFlashHead;
  switch (k.library) {
    case AttentionLibrary::automatic:
    case AttentionLibrary::memory_efficient: return k.library == AttentionLibrary::automatic ? own : k.library;
    case AttentionLibrary::flash4_512:
      if (large && gpu.architecture == arch::Architecture::hopper) return k.library;
      return own;
    // Without a cache of pages these decode as the GPU's own does.
    case AttentionLibrary::flash2_dense:
    case AttentionLibrary::flash3_dense:
    case AttentionLibrary::flash3_first:
    case AttentionLibrary::tensorrt: return own == AttentionLibrary::memory_efficient || k.decode ? own : k.library;
    default: return own == AttentionLibrary::memory_efficient ? own : k.library;
  }
}

}  // namespace voltaic::kernel
