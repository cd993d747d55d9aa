// SPDX-License-Identifier: MIT
#include "sim/kernel/attention_shape.hpp"

#include <algorithm>
#include <cmath>

#include "sim/kernel/conv_shape.hpp"

namespace voltaic::kernel {

namespace {

double d(std::int64_t v) {
  return static_cast<double>(v);
}

std::int64_t group_size(const AttentionKernel& k) {
  return std::max<std::int64_t>(1, k.heads / std::max<std::int64_t>(1, k.kv_heads));
}

/// Sum over r = 0 .. n-1 of clamp(r + first, 0, limit).
double clamped_sum(double n, double first, double limit) {
  const double begin = std::clamp(-first, 0.0, n);         // Rows below see nothing.
  const double end = std::clamp(limit - first, begin, n);  // Rows from here on see `limit`.
  const double rising = (end - begin) * (first + (begin + end - 1) / 2);
  return rising + (n - end) * std::max(limit, 0.0);
}

/// Least s whose wave efficiency is within 85 % of the best [FA2] [FA3].
std::int64_t best_split(std::int64_t blocks, std::int64_t slots, std::int64_t key_blocks, bool only_changes) {
  const std::int64_t most = std::min<std::int64_t>({128, slots, key_blocks});
  const auto efficiency = [&](std::int64_t s) {
    const double waves = d(blocks) * d(s) / d(slots);
    return waves / std::ceil(waves);
  };
  const auto eligible = [&](std::int64_t s) {
    return !only_changes || s == 1 || ceil_div(key_blocks, s) != ceil_div(key_blocks, s - 1);
  };
  double best = 0;
  for (std::int64_t s = 1; s <= most; ++s) {
    if (eligible(s)) best = std::max(best, efficiency(s));
  }
  for (std::int64_t s = 1; s <= most; ++s) {
    if (eligible(s) && efficiency(s) >= 0.85 * best) return s;
  }
  return 1;
}

}  // namespace

AttentionLibrary attention_library(const AttentionKernel& k, const arch::GpuSpec& gpu) {
  const bool sixteen = k.math == DataType::fp16 || k.math == DataType::bf16;
  const bool hopper = gpu.architecture == arch::Architecture::hopper;
  const bool type = sixteen || (hopper && k.math == DataType::fp8);
  const bool modern = hopper || gpu.architecture == arch::Architecture::ampere;
  if (!type || !modern || !gpu.has_tensor_path(k.math) || std::max(k.head_dim, k.value_dim) > 256) {
    return AttentionLibrary::memory_efficient;
  }
  return hopper ? AttentionLibrary::flash3 : AttentionLibrary::flash2;
}

AttentionTile attention_tile(const AttentionKernel& k, AttentionLibrary library) {
  const std::int64_t dim = std::max(k.head_dim, k.value_dim);
  if (library != AttentionLibrary::flash3) return {64, 128, 1};
  return {dim <= 64 ? 192 : 128, dim > 192 ? 64 : (dim > 128 ? 96 : 128), group_size(k)};
}

double padded_head_dim(const AttentionKernel& k) {
  const auto pad = [](std::int64_t dim) { return d(ceil_div(std::max<std::int64_t>(dim, 1), 32) * 32); };
  return (pad(k.head_dim) + pad(k.value_dim)) / 2;
}

double visible_pairs(const AttentionKernel& k) {
  const double keys = d(k.seq_kv);
  if (!k.causal && k.window <= 0) return d(k.seq_q) * keys;
  const double offset = d(k.seq_kv) - d(k.seq_q);  // Query r stands at key r + offset.
  if (!k.causal) {
    const double half = d(k.window);
    return clamped_sum(d(k.seq_q), offset + 1 + half, keys) - clamped_sum(d(k.seq_q), offset - half, keys);
  }
  const double seen = clamped_sum(d(k.seq_q), offset + 1, keys);
  return k.window > 0 ? seen - clamped_sum(d(k.seq_q), offset + 1 - d(k.window), keys) : seen;
}

std::int64_t decode_keys(const AttentionKernel& k) {
  return k.window > 0 ? std::min(k.seq_kv, k.window) : k.seq_kv;
}

double tile_keys(const AttentionKernel& k, const AttentionTile& tile, std::int64_t i) {
  const double offset = d(k.seq_kv) - d(k.seq_q);
  const double rows = d(tile.rows) / d(tile.pack);
  const double first = std::floor(d(i) * rows);
  const double last = std::min(std::ceil(d(i + 1) * rows), d(k.seq_q));
  const double end = k.causal
                         ? std::clamp(last + offset, 0.0, d(k.seq_kv))
                         : (k.window > 0 ? std::clamp(last + offset + d(k.window), 0.0, d(k.seq_kv)) : d(k.seq_kv));
  const double begin = k.window > 0 ? std::clamp(first + offset - d(k.window) + 1, 0.0, end) : 0.0;
  // Keys that fit into one step are computed in the multiples of an instruction only.
  const double step = k.seq_kv < tile.keys ? 16 : d(tile.keys);
  return std::ceil(std::max(end - begin, 1.0) / step) * step;
}

std::int64_t tiles_per_group(const AttentionKernel& k, const AttentionTile& tile) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(d(k.seq_q) * d(tile.pack) / d(tile.rows))));
}

std::int64_t attention_groups(const AttentionKernel& k, const AttentionTile& tile) {
  const double groups = d(k.batch) * d(tile.pack > 1 ? k.kv_heads : k.heads);
  return static_cast<std::int64_t>(std::clamp(groups, 1.0, 9e15));
}

std::int64_t decode_block(const AttentionKernel& k, AttentionLibrary library) {
  const std::int64_t dim = std::max(k.head_dim, k.value_dim);
  if (library == AttentionLibrary::flash3) return attention_tile(k, library).keys;
  return dim <= 64 ? 256 : (dim <= 128 ? 128 : 64);
}

std::int64_t attention_splits(const AttentionKernel& k, AttentionLibrary library, const arch::GpuSpec& gpu) {
  const std::int64_t group = group_size(k);
  const std::int64_t sms = std::max<std::int64_t>(1, gpu.sm.count);
  const std::int64_t key_blocks = std::max<std::int64_t>(1, ceil_div(decode_keys(k), decode_block(k, library)));
  const double sequences = d(k.batch) * d(k.kv_heads);
  if (library != AttentionLibrary::flash3) {
    if (!k.decode || group == 1) return 1;  // These libraries split the keys of grouped heads only.
    const double blocks = sequences * d(ceil_div(group, 64));
    if (blocks >= 0.8 * d(2 * sms)) return 1;
    return best_split(static_cast<std::int64_t>(blocks), 2 * sms, key_blocks, true);
  }
  const std::int64_t rows = std::max(k.head_dim, k.value_dim) > 128 ? 128 : 64;
  const double row_blocks = k.decode ? d(ceil_div(group, rows)) : d(tiles_per_group(k, attention_tile(k, library)));
  const double blocks = sequences * row_blocks;
  if (blocks >= 0.8 * d(sms) || key_blocks <= 4) return 1;
  const std::int64_t split = best_split(static_cast<std::int64_t>(blocks), sms, key_blocks, false);
  const double fair = std::max(1.0, std::ceil(1.1 * d(key_blocks) * blocks / d(sms)));
  return std::max<std::int64_t>(1, std::min(split, static_cast<std::int64_t>(std::ceil(d(key_blocks) / fair))));
}

Work attention_work(const AttentionKernel& k) {
  const double e = k.element_bytes;
  const double heads = d(k.batch) * d(k.heads);
  const double kv_heads = d(k.batch) * d(k.kv_heads);
  const double dims = d(k.head_dim) + d(k.value_dim);
  const double keys = k.decode ? d(decode_keys(k)) : d(k.seq_kv);
  const double pairs = k.decode ? d(k.seq_q) * keys : visible_pairs(k);
  const double query = e * heads * d(k.seq_q) * d(k.head_dim);
  const double result = e * heads * d(k.seq_q) * d(k.value_dim);
  const double cache = e * kv_heads * keys * dims;
  Work work;
  work.mac = heads * pairs * dims;
  work.special = heads * pairs;
  work.other_flop = 4 * heads * pairs;  // Scale, maximum, subtraction and sum.
  work.read = Bytes{query + cache};
  work.written = Bytes{result};
  if (k.backward) {
    // Five products instead of two; reads q, k, v, y and dy, writes dq, dk and dv.
    work.mac *= 2.5;
    work.read = Bytes{query + cache + 2 * result};
    work.written = Bytes{query + cache};
  }
  return work;
}

}  // namespace voltaic::kernel
