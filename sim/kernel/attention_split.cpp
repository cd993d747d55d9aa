// SPDX-License-Identifier: MIT
// Into how many parts libraries cut the keys of one head, so that few sequences fill many SMs.
#include <algorithm>
#include <cmath>

#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::kernel {

namespace {

constexpr double kFull = 0.8;              ///< Share of the slots from which no split is worth its merge [FA2].
constexpr std::int64_t kMostSplits = 128;  ///< Room for partial results.
constexpr std::int64_t kFewBlocks = 4;     ///< Key blocks that are never split [FA3].
constexpr std::int64_t kConstantSplits = 32, kConstantBatch = 992;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

/// Least s whose wave efficiency is within 85 % of the best [FA2] [FA3].
std::int64_t best_split(std::int64_t blocks, std::int64_t slots, std::int64_t key_blocks, bool only_changes) {
  const std::int64_t most = std::min<std::int64_t>({kMostSplits, slots, key_blocks});
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

std::int64_t key_blocks(std::int64_t keys, std::int64_t block) {
  return std::max<std::int64_t>(1, ceil_div(keys, std::max<std::int64_t>(1, block)));
}

/// Two slots per SM; one KV head per query head is never split.
KeySplit by_waves(const AttentionKernel& k, AttentionLibrary library, std::int64_t sms) {
  const std::int64_t group = group_size(k);
  if (group == 1) return {};
  const double blocks = d(k.batch) * d(k.kv_heads) * d(ceil_div(group, 64));
  if (blocks >= kFull * d(2 * sms)) return {};
  const auto splits = best_split(static_cast<std::int64_t>(blocks), 2 * sms,
                                 key_blocks(decode_keys(k), decode_block(k, library)), true);
  return {splits, splits > 1};
}

/// The kernel is chosen on the host, which pretends one sequence since lengths may vary; the device then gives each SM
/// 1.1 times its share of all key blocks, computed in single precision.
KeySplit in_two_steps(AttentionKernel k, AttentionLibrary library, std::int64_t sms) {
  k.split_variant = false;
  const AttentionTile whole = attention_tile(k, library);
  const double heads = d(whole.groups_per_sequence);
  const double row_blocks = d(tiles_per_group(k, whole));
  const std::int64_t blocks = key_blocks(decode_keys(k), whole.keys);
  if (heads * row_blocks >= kFull * d(sms) || blocks <= kFewBlocks) return {};
  const auto most = best_split(static_cast<std::int64_t>(heads * row_blocks), sms, blocks, false);
  if (most <= 1) return {};
  k.split_variant = true;
  const std::int64_t parts = key_blocks(decode_keys(k), attention_tile(k, library).keys);
  const double all = static_cast<double>(static_cast<float>(d(k.batch) * row_blocks * d(parts)) * 1.1F);
  const double share = std::max(1.0, std::ceil(all * heads / d(sms)));
  const double splits = std::clamp(std::ceil(d(parts) / share), 1.0, d(most));
  return {static_cast<std::int64_t>(splits), true};
}

}  // namespace

KeySplit attention_splits(const AttentionKernel& k, AttentionLibrary library, const arch::GpuSpec& gpu) {
  const std::int64_t sms = std::max<std::int64_t>(1, gpu.sm.count);
  const AttentionRules& rules = attention_rules(library);
  if (k.backward || k.append) return {};
  switch (k.decode ? rules.decode_split : rules.prompt_split) {
    case SplitRule::none: return {};
    case SplitRule::waves: return by_waves(k, library, sms);
    case SplitRule::two_steps: return in_two_steps(k, library, sms);
    case SplitRule::constant: return k.batch <= kConstantBatch ? KeySplit{kConstantSplits, true} : KeySplit{};
  }
  return {};
}

}  // namespace voltaic::kernel
