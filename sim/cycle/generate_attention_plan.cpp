// SPDX-License-Identifier: MIT
// How attention kernels cut a layer into CTAs, as far as programs must know.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/attention.hpp"
#include "sim/kernel/attention_shape.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr double kMostCtas = 1e15;
constexpr double kLargest = 65536;  ///< Head size that a program is written for.

double d(std::int64_t v) {
  return static_cast<double>(v);
}

double padded(std::int64_t dim) {
  return std::ceil(std::clamp(d(dim), 1.0, kLargest) / 32) * 32;
}

std::int64_t whole(double v) {
  return static_cast<std::int64_t>(std::clamp(std::ceil(v - 1e-9), 1.0, kMostCtas));
}

void common(const kernel::AttentionKernel& k, AttentionPlan& p) {
  p.head = padded(k.head_dim);
  p.value = padded(k.value_dim);
  p.element = k.element_bytes;
  p.kv_groups = std::max(1.0, d(k.batch) * d(k.kv_heads));
  p.queries = d(k.batch) * d(k.heads) * d(k.seq_q);
  p.splits = std::max(1.0, d(k.splits));
}

/// Mean over tiles; over evenly spaced ones where there are very many.
template <class F>
double mean_over(double tiles, F keys_of) {
  constexpr double kMost = 1024;
  const double stride = std::max(1.0, std::floor(tiles / kMost));
  double sum = 0, n = 0;
  for (double i = std::floor(stride / 2); i < tiles; i += stride, n += 1) sum += keys_of(static_cast<std::int64_t>(i));
  return n > 0 ? sum / n : 1;
}

void decode_steps(const kernel::AttentionKernel& k, kernel::AttentionLibrary library, AttentionPlan& p) {
  const double tokens = d(kernel::decode_keys(k));
  p.keys = d(kernel::decode_block(k, library));
  p.kv_tokens = tokens;
  p.mean = std::ceil(std::ceil(tokens / p.keys) / p.splits);
  const double rows = d(kernel::group_size(k)) * d(k.seq_q);
  const double blocks = std::ceil(rows / p.rows);
  p.valid_rows = rows / blocks;
  p.grid = {whole(blocks), whole(d(k.batch) * d(k.kv_heads)), whole(p.splits)};
  p.sharing = 1;
}

void prompt_steps(const kernel::AttentionKernel& k, const kernel::AttentionTile& tile, AttentionPlan& p) {
  const double tiles = d(kernel::tiles_per_group(k, tile));
  const double positions = p.rows / d(tile.pack);  // of one tile
  const double offset = d(k.seq_kv) - d(k.seq_q);
  p.kv_tokens = d(k.seq_kv);
  p.valid_rows = std::min(p.rows, d(k.seq_q) * d(tile.pack) / tiles);
  p.rising = k.causal && (k.window <= 0 || k.window >= k.seq_kv) && offset >= 0;
  p.first = (std::min(positions, d(k.seq_q)) + offset) / p.keys / p.splits;
  p.per_x = positions / p.keys / p.splits;
  p.mean = mean_over(tiles, [&](std::int64_t i) { return kernel::tile_keys(k, tile, i); }) / p.keys;
  if (k.seq_kv < tile.keys) p.mean = 1;
  p.mean = std::max(1.0, p.splits > 1 ? std::ceil(p.mean / p.splits) : p.mean);
  if (tiles < 2) p.rising = false;
  p.grid = {whole(tiles), whole(d(k.batch)), whole(d(tile.groups_per_sequence) * p.splits)};
  p.sharing = std::max(1.0, d(tile.groups_per_sequence) * p.splits / std::max(1.0, d(k.kv_heads)));
}

}  // namespace

AttentionPlan forward_plan(const kernel::Launch& launch, const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  const kernel::AttentionLibrary library = kernel::attention_library(k, gpu);
  const kernel::AttentionTile tile = kernel::attention_tile(k, library);
  AttentionPlan p;
  common(k, p);
  p.rows = d(tile.rows);
  p.keys = d(tile.keys);
  // A step is compiled whole, however few keys there are; TensorRT-LLM has kernels for short prompts.
  if (library == kernel::AttentionLibrary::tensorrt && k.seq_kv < tile.keys) {
    p.keys = std::ceil(d(k.seq_kv) / d(tile.short_step)) * d(tile.short_step);
  }
  p.resident = tile.resident;
  p.warps = std::max(1, launch.cta.threads / 32);
  p.paged = library == kernel::AttentionLibrary::flash2_paged;
  if (k.decode) {
    decode_steps(k, library, p);
  } else {
    prompt_steps(k, tile, p);
  }
  return p;
}

AttentionPlan backward_plan(const kernel::Launch&, const kernel::AttentionKernel& k, const arch::GpuSpec&) {
  constexpr double kKeys = 128;  ///< Keys of one CTA [FA2].
  AttentionPlan p;
  common(k, p);
  p.keys = kKeys;
  p.rows = std::max(k.head_dim, k.value_dim) <= 64 ? 128 : 64;
  p.valid_rows = p.rows;
  p.warps = 8;
  p.kv_tokens = d(k.seq_kv);
  const double blocks = std::ceil(d(k.seq_kv) / kKeys);
  const double steps = std::ceil(d(k.seq_q) / p.rows);
  p.rising = k.causal && k.window <= 0 && k.seq_q == k.seq_kv && blocks > 1;
  p.first = steps;
  p.per_x = -kKeys / p.rows;
  p.mean =
      mean_over(blocks, [&](std::int64_t i) { return kernel::block_queries(k, d(i) * kKeys, kKeys, p.rows); }) / p.rows;
  p.grid = {whole(blocks), whole(d(k.batch)), whole(d(k.heads))};
  p.sharing = d(kernel::group_size(k));
  return p;
}

void set_steps(Emitter& e, const AttentionPlan& p) {
  if (p.rising) {
    e.rising_trips(p.first, p.per_x);
  } else {
    e.mean_trips(p.mean, d(p.grid[0]));
  }
}

/// CTAs run x first. A wave of them covers so many groups of tiles, or a part of one; each touches its cache once.
Tensor streamed_tensor(std::string name, const AttentionPlan& p, double width, double resident_ctas, bool cold) {
  Tensor t;
  t.name = std::move(name);
  t.cold = cold;
  const double group = p.kv_tokens * width * p.element;
  t.unique_bytes = p.kv_groups * group;
  const double x = d(p.grid[0]), y = d(p.grid[1]), z = d(p.grid[2]);
  const double waves = std::max(1.0, x * y * z / std::max(resident_ctas, 1.0));
  const double tiles = std::max(1.0, std::min(resident_ctas, x * y * z) / x);  // groups of tiles in a wave
  const double distinct = std::min(tiles, y) * std::max(1.0, std::max(1.0, tiles / y) / p.sharing);
  t.wave_bytes = std::max(t.unique_bytes, waves * std::min(distinct, p.kv_groups) * group);
  return t;
}

Tensor whole_tensor(std::string name, double bytes, bool cold, bool written) {
  Tensor t;
  t.name = std::move(name);
  t.unique_bytes = t.wave_bytes = bytes;
  t.cold = cold;
  t.written = written;
  return t;
}

}  // namespace voltaic::cycle::detail
