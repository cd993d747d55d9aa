// SPDX-License-Identifier: MIT
// Libraries of fused attention as data: tiles, CTAs per SM, grouping of heads, when keys are split.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "arch/spec.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// Query rows and keys of one step for heads up to `head_dim`; the last entry holds for larger ones too.
struct TileSize {
  std::int64_t head_dim, rows, keys;
};

enum class SplitRule : std::uint8_t {
  none,
  waves,      ///< Grouped heads, until a wave of CTAs is well filled [FA2].
  two_steps,  ///< As `waves` for one sequence alone; then each SM gets at most 1.1 times its share of key blocks [FA3].
  constant,   ///< A fixed number while batches are small; empty splits run too.
};

struct AttentionRules {
  std::string_view name;     ///< Member of calibration section "attention".
  std::string_view package;  ///< As launches name their library.
  std::string_view kernel_prefix;
  std::span<const TileSize> tiles, open_tiles, split_tiles;  ///< Causal; not causal and split if they differ.
  int resident = 1, split_resident = 1;                      ///< CTAs per SM.
  bool packs_groups = false;                                 ///< Rows of the query heads of one KV head share tiles.
  bool longest_first = false;    ///< Order of dispatch over all heads; else group by group in tile order.
  std::int64_t short_step = 64;  ///< Contexts below one step of keys are computed in multiples of this.
  SplitRule prompt_split = SplitRule::none, decode_split = SplitRule::none;
  bool persistent = false;  ///< CTAs stay and take one tile after another.
};
const AttentionRules& attention_rules(AttentionLibrary library);

std::string_view to_string(AttentionLibrary library);
std::optional<AttentionLibrary> parse_attention_library(std::string_view name);

/// Which library serves a problem: the one asked for where its kernels exist, else what frameworks fall back to; the
/// GPU's own where none was asked for.
AttentionLibrary attention_library(const AttentionKernel& kernel, const arch::GpuSpec& gpu);

struct KeySplit {
  std::int64_t splits = 1;
  bool variant = false;  ///< The splitting kernel was chosen, though one split may come out.
};
/// How the library splits the keys; 1 to 128 ways.
KeySplit attention_splits(const AttentionKernel& kernel, AttentionLibrary library, const arch::GpuSpec& gpu);

}  // namespace voltaic::kernel
