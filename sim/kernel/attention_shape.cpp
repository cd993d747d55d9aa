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

/// Sum over r = 0 .. n-1 of clamp(r + first, 0, limit).
double clamped_sum(double n, double first, double limit) {
  const double begin = std::clamp(-first, 0.0, n);         // Rows below see nothing.
  const double end = std::clamp(limit - first, begin, n);  // Rows from here on see `limit`.
  const double rising = (end - begin) * (first + (begin + end - 1) / 2);
  return rising + (n - end) * std::max(limit, 0.0);
}

}  // namespace

std::int64_t group_size(const AttentionKernel& k) {
  return std::max<std::int64_t>(1, k.heads / std::max<std::int64_t>(1, k.kv_heads));
}

AttentionTile attention_tile(const AttentionKernel& k, AttentionLibrary library) {
  const AttentionRules& rules = attention_rules(library);
  const auto& tiles = k.split_variant ? rules.split_tiles : (k.causal ? rules.tiles : rules.open_tiles);
  const std::int64_t dim = std::max(k.head_dim, k.value_dim);
  const TileSize& size =
      *std::find_if(tiles.begin(), tiles.end() - 1, [&](const TileSize& t) { return dim <= t.head_dim; });
  AttentionTile tile;
  tile.rows = size.rows;
  tile.keys = size.keys;
  tile.pack = rules.packs_groups ? group_size(k) : 1;
  tile.groups_per_sequence = rules.packs_groups ? k.kv_heads : k.heads;
  tile.short_step = rules.short_step;
  tile.resident = k.split_variant ? rules.split_resident : rules.resident;
  return tile;
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
  const double last = std::min(std::ceil(d(i + 1) * rows - 1e-9), d(k.seq_q));
  const double end = k.causal
                         ? std::clamp(last + offset, 0.0, d(k.seq_kv))
                         : (k.window > 0 ? std::clamp(last + offset + d(k.window), 0.0, d(k.seq_kv)) : d(k.seq_kv));
  const double begin = k.window > 0 ? std::clamp(first + offset - d(k.window) + 1, 0.0, end) : 0.0;
  const double step = d(k.seq_kv < tile.keys ? tile.short_step : tile.keys);
  return std::ceil(std::max(end - begin, 1.0) / step) * step;
}

double block_queries(const AttentionKernel& k, double first, double keys, double step) {
  const double offset = d(k.seq_kv) - d(k.seq_q);
  const double window = d(k.window);
  double begin = 0, end = d(k.seq_q);
  if (k.causal) begin = first - offset;
  if (k.window > 0) {
    end = std::min(end, first + keys - offset + window);
    if (!k.causal) begin = first - offset - window;
  }
  const double rows = std::max(1.0, end - std::clamp(begin, 0.0, d(k.seq_q)));
  return std::ceil(rows / step) * step;
}

std::int64_t tiles_per_group(const AttentionKernel& k, const AttentionTile& tile) {
  const double tiles = std::ceil(d(k.seq_q) * d(tile.pack) / d(tile.rows));
  return static_cast<std::int64_t>(std::clamp(tiles, 1.0, 9e15));
}

std::int64_t attention_groups(const AttentionKernel& k, const AttentionTile& tile) {
  return static_cast<std::int64_t>(std::clamp(d(k.batch) * d(tile.groups_per_sequence), 1.0, 9e15));
}

std::int64_t decode_block(const AttentionKernel& k, AttentionLibrary library) {
  // The fallback decodes with the paged kernel's steps.
  if (library == AttentionLibrary::memory_efficient) library = AttentionLibrary::flash2_paged;
  return attention_tile(k, library).keys;
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
  if (k.append) {
    const double tokens = e * kv_heads * d(k.seq_q) * dims;
    work.read = work.written = Bytes{tokens};
    return work;
  }
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
