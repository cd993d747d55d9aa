// SPDX-License-Identifier: MIT
// How fused attention kernels cut one layer into CTAs; shared by their launches and their cost.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/spec.hpp"
#include "sim/kernel/attention_library.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

struct AttentionTile {
  std::int64_t rows = 64;                ///< Query rows of one CTA.
  std::int64_t keys = 128;               ///< Keys of one step of its loop.
  std::int64_t pack = 1;                 ///< Query heads of one KV head whose rows share a tile.
  std::int64_t groups_per_sequence = 1;  ///< Heads, or KV heads where their query heads are packed.
  std::int64_t short_step = 64;          ///< Contexts below one step are computed in multiples of this.
  int resident = 1;                      ///< CTAs per SM.
};
AttentionTile attention_tile(const AttentionKernel& kernel, AttentionLibrary library);

/// Query heads of one KV head.
std::int64_t group_size(const AttentionKernel& kernel);

/// Mean of query and value head size, padded as kernels are compiled: multiples of 32.
double padded_head_dim(const AttentionKernel& kernel);

/// Query-key pairs that are not masked, over one head. With causal masks the last query sees all keys.
double visible_pairs(const AttentionKernel& kernel);
/// Keys that one CTA reads in decoding.
std::int64_t decode_keys(const AttentionKernel& kernel);
/// Keys that the CTA of tile `i` reads, a multiple of a step.
double tile_keys(const AttentionKernel& kernel, const AttentionTile& tile, std::int64_t i);
/// Tiles over the query rows of one (batch, head), or (batch, KV head) when rows are packed.
std::int64_t tiles_per_group(const AttentionKernel& kernel, const AttentionTile& tile);
std::int64_t attention_groups(const AttentionKernel& kernel, const AttentionTile& tile);

/// Queries that a block of `keys` keys from `first` on meets going backward, a multiple of `step`.
double block_queries(const AttentionKernel& kernel, double first, double keys, double step);

/// Keys of one block of the decoding kernel.
std::int64_t decode_block(const AttentionKernel& kernel, AttentionLibrary library);

Work attention_work(const AttentionKernel& kernel);

/// The launches of one fused attention layer; of the kernel that writes the cache where `append` is set.
std::vector<Launch> attention_launches(AttentionKernel kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::kernel
