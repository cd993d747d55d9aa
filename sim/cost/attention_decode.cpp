// SPDX-License-Identifier: MIT
// One decoding step over a cache: how long its CTAs wait, and what the cache costs to read.
#include <algorithm>
#include <cmath>

#include "sim/cost/attention_cost.hpp"
#include "sim/cost/overlap.hpp"

namespace voltaic::cost {

using kernel::AttentionKernel;
using kernel::AttentionLibrary;

namespace {

double d(std::int64_t v) {
  return static_cast<double>(v);
}

double cache_bytes(const AttentionKernel& k) {
  return k.element_bytes * d(k.batch) * d(k.kv_heads) * d(kernel::decode_keys(k)) * (d(k.head_dim) + d(k.value_dim));
}

/// Query rows of one KV head that one CTA takes.
double row_blocks(const AttentionKernel& k, AttentionLibrary library) {
  constexpr double kPagedRows = 64;
  const auto tile = kernel::attention_tile(k, library);
  return std::ceil(d(kernel::group_size(k)) / (tile.pack > 1 ? d(tile.rows) : kPagedRows));
}

struct Ctas {
  double count = 1;  ///< That have keys.
  double keys = 1;   ///< Of each, whole steps.
};
Ctas ctas_of(const AttentionKernel& k, AttentionLibrary library) {
  const double block = d(kernel::decode_block(k, library));
  const double blocks = std::max(1.0, std::ceil(d(kernel::decode_keys(k)) / block));
  const double each = std::ceil(blocks / d(std::max<std::int64_t>(1, k.splits)));
  return {d(k.batch) * d(k.kv_heads) * row_blocks(k, library) * std::ceil(blocks / each), block * each};
}

}  // namespace

/// With w the time of one CTA alone, a its wait, c = ceil(CTAs / SMs), R the speed of a full SM:
///     resident CTAs   a + w max(1, min(c, resident) / R) + (c - resident) mean(w, a + w)
///     persistent      a + w + (c - 1) (w0 + keys t2)
///     constant splits a + (c - 1) w0 + c' keys t1, c over all splits, c' over those with keys
double AttentionCost::decode_latency(const DecodeTuning& t, const AttentionKernel& k) const {
  const AttentionLibrary chosen = kernel::attention_library(k, gpu_);
  const auto& rules = kernel::attention_rules(chosen);
  const DecodeTuning::Cta& cta = k.split_variant ? t.split : t.whole;
  const double size = kernel::padded_head_dim(k) / 128 * k.element_bytes / 2;
  const double stretch = std::pow(size, t.dim_power);
  const double start = cta.work_s * std::pow(size, t.cta_dim_power);
  const Ctas ctas = ctas_of(k, chosen);
  if (rules.decode_split == kernel::SplitRule::constant) {
    const double launched = d(k.batch) * d(k.kv_heads) * row_blocks(k, chosen) * d(k.splits);
    return cta.wait_s + (std::max(1.0, launched / sms()) - 1) * start +
           std::max(1.0, ctas.count / sms()) * ctas.keys * cta.key_s * stretch;
  }
  const double work = start + ctas.keys * cta.key_s * stretch;
  const double rounds = std::max(1.0, std::ceil(ctas.count / sms()));
  if (rules.persistent) {
    const double next = start + std::min(ctas.keys, d(kernel::decode_keys(k))) * t.next_key_s * stretch;
    return cta.wait_s + work + (rounds - 1) * next;
  }
  const double resident = k.split_variant ? rules.split_resident : rules.resident;
  const double rate = resident > 1 ? t.pair_rate : 1;
  const double together = std::min(rounds, resident);
  const double mean = smooth_max2(work / std::min(resident, rate), (cta.wait_s + work) / resident, t.wave_power);
  return cta.wait_s + work * std::max(1.0, together / rate) + (rounds - together) * mean;
}

double AttentionCost::decode_miss(const DecodeTuning& t, const AttentionKernel& k) const {
  if (!k.warm) return 1;
  const double share = cache_bytes(k) / std::max(gpu_.l2.capacity.value, 1.0);
  return std::clamp((share - t.resident_from) / (t.resident_to - t.resident_from), 0.0, 1.0);
}

/// T = fixed + merge + copies of grouped heads + (latency^p + memory^p)^(1/p),
///     memory = cache (miss / BW + (1 - miss) / L2) + queries and results / BW
AttentionCost::Legs AttentionCost::decode(const AttentionKernel& k) const {
  const DecodeTuning& t = known(library(k).decode, k);
  const double cache = cache_bytes(k);
  const double miss = decode_miss(t, k);
  const double rows = k.element_bytes * d(k.batch) * d(k.heads) * (d(k.head_dim) + d(k.value_dim));
  Legs legs;
  legs.bytes = cache * miss + rows;
  legs.l2_bytes = cache + rows;
  legs.dram = dram_seconds(legs.bytes, t.bandwidth_share);
  const double memory = legs.dram + per_cycle(cache * (1 - miss), t.l2_bytes_per_cycle);
  legs.time = t.fixed_s + smooth_max2(decode_latency(t, k), memory, t.power);
  if (k.split_variant) {
    const double splits = d(std::max<std::int64_t>(1, k.splits));
    const double partial = 8 * d(k.batch) * d(k.heads) * d(k.value_dim) * splits;
    legs.time += t.merge_s + t.merge_per_split_s * splits + per_cycle(partial, t.merge_bytes_per_cycle);
  }
  if (kernel::group_size(k) > 1) {
    legs.time += t.group_s;
    if (k.kv_heads > 1 && k.batch > 1) legs.time += t.transpose_s + per_cycle(rows, t.transpose_bytes_per_cycle);
  }
  return legs;
}

}  // namespace voltaic::cost
