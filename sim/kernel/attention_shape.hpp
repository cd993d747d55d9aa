// SPDX-License-Identifier: MIT
// How fused attention kernels cut one layer into CTAs; shared by their launches and their cost.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/spec.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// Which library serves a problem on a GPU.
enum class AttentionLibrary : std::uint8_t {
  flash2,            ///< FlashAttention-2: Ampere and Ada, 16-bit, heads up to 256 [FA2].
  flash3,            ///< FlashAttention-3: Hopper, 16-bit and FP8, heads up to 256 [FA3].
  memory_efficient,  ///< CUTLASS fused attention: every GPU and type, also without tensor cores.
};
AttentionLibrary attention_library(const AttentionKernel& kernel, const arch::GpuSpec& gpu);

struct AttentionTile {
  std::int64_t rows = 64;   ///< Query rows of one CTA.
  std::int64_t keys = 128;  ///< Keys of one step of its loop.
  std::int64_t pack = 1;    ///< Query heads of one KV head whose rows share a tile.
};
AttentionTile attention_tile(const AttentionKernel& kernel, AttentionLibrary library);

/// Mean of query and value head size, padded as kernels are compiled: multiples of 32.
double padded_head_dim(const AttentionKernel& kernel);

/// Query-key pairs that are not masked, over one head. With causal masks the last query sees all keys.
double visible_pairs(const AttentionKernel& kernel);
/// Keys that one CTA reads in decoding.
std::int64_t decode_keys(const AttentionKernel& kernel);
/// Keys that the CTA of tile `i` reads, a multiple of `tile.keys`.
double tile_keys(const AttentionKernel& kernel, const AttentionTile& tile, std::int64_t i);
/// Tiles over the query rows of one (batch, head), or (batch, KV head) when rows are packed.
std::int64_t tiles_per_group(const AttentionKernel& kernel, const AttentionTile& tile);
std::int64_t attention_groups(const AttentionKernel& kernel, const AttentionTile& tile);

/// KV splits as the libraries choose them, for decoding and for short prompts on Hopper.
std::int64_t attention_splits(const AttentionKernel& kernel, AttentionLibrary library, const arch::GpuSpec& gpu);
/// Keys of one block of the decoding kernel.
std::int64_t decode_block(const AttentionKernel& kernel, AttentionLibrary library);

Work attention_work(const AttentionKernel& kernel);

/// The launches of one fused attention layer.
std::vector<Launch> attention_launches(AttentionKernel kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::kernel
