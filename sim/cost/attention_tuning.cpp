// SPDX-License-Identifier: MIT
#include "sim/cost/attention_tuning.hpp"

#include <algorithm>

namespace voltaic::cost {

namespace {

/// Exponents of smooth maxima: below 1 they would be none.
double power_of(const arch::ParameterTree& tree, const char* name, double otherwise) {
  return std::clamp(tree.number_or(name, otherwise), 1.0, 64.0);
}

double positive(const arch::ParameterTree& tree, const char* name) {
  return std::max(tree.number(name), 1e-6);
}

}  // namespace

PromptTuning read_prompt_tuning(const arch::ParameterTree& tree, double clock_ratio) {
  PromptTuning t;
  t.whole.alone = positive(tree, "eff_alone");
  t.whole.wait_s = tree.number("wait_s") * clock_ratio;
  t.whole.work_s = tree.number_or("cta_work_s", 0) * clock_ratio;
  t.wait_ungrouped_s = tree.number_or("wait_ungrouped_s", tree.number("wait_s")) * clock_ratio;
  t.pair_rate = std::max(1e-3, tree.number_or("eff_full", t.whole.alone) / t.whole.alone);
  t.split = t.whole;
  if (tree.has("split")) {
    t.split.alone = positive(tree, "split.eff_alone");
    t.split.wait_s = tree.number("split.wait_s") * clock_ratio;
    t.split.work_s = tree.number("split.cta_work_s") * clock_ratio;
  }
  t.stream_rows = tree.number_or("stream_rows", 0);
  t.softmax_dims = tree.number_or("softmax_dims", 0);
  t.pad_s = tree.number_or("pad_s", 0) * clock_ratio;
  t.merge_s = tree.number_or("merge_s", 0) * clock_ratio;
  t.merge_bytes_per_cycle = tree.number_or("merge_bytes_per_cycle", 0);
  t.bandwidth_share = positive(tree, "bandwidth_share");
  t.resident_share = tree.number_or("resident_share", 0);
  t.resident_kv = tree.number_or("resident_kv", 1);
  t.overlap_power = power_of(tree, "overlap_power", 6);
  t.memory_power = power_of(tree, "memory_power", 64);
  return t;
}

DecodeTuning read_decode_tuning(const arch::ParameterTree& tree, double clock_ratio) {
  DecodeTuning t;
  t.fixed_s = tree.number("fixed_s") * clock_ratio;
  t.group_s = tree.number_or("group_s", 0) * clock_ratio;
  t.transpose_s = tree.number_or("transpose_s", 0) * clock_ratio;
  t.transpose_bytes_per_cycle = tree.number_or("transpose_bytes_per_cycle", 0);
  t.merge_s = tree.number("merge_s") * clock_ratio;
  t.merge_per_split_s = tree.number_or("merge_per_split_s", 0) * clock_ratio;
  t.merge_bytes_per_cycle = tree.number_or("merge_bytes_per_cycle", 0);
  t.whole.key_s = tree.number("key_s") * clock_ratio;
  t.whole.wait_s = tree.number_or("wait_s", 0) * clock_ratio;
  t.whole.work_s = tree.number("cta_s") * clock_ratio;
  t.split = t.whole;
  if (tree.has("split")) {
    t.split.key_s = tree.number("split.key_s") * clock_ratio;
    t.split.wait_s = tree.number("split.wait_s") * clock_ratio;
    t.split.work_s = tree.number("split.cta_s") * clock_ratio;
  }
  t.next_key_s = tree.number_or("next_key_s", 0) * clock_ratio;
  t.pair_rate = std::max(1.0, tree.number_or("pair_rate", 1));
  t.wave_power = power_of(tree, "wave_power", 6);
  t.dim_power = tree.number_or("dim_power", 1);
  t.cta_dim_power = tree.number_or("cta_dim_power", 0);
  t.bandwidth_share = positive(tree, "bandwidth_share");
  t.l2_bytes_per_cycle = positive(tree, "l2_bytes_per_cycle");
  t.resident_from = tree.number("resident_from");
  t.resident_to = std::max(tree.number("resident_to"), t.resident_from + 1e-6);
  t.power = power_of(tree, "power", 2);
  return t;
}

AppendTuning read_append_tuning(const arch::ParameterTree& tree, double clock_ratio) {
  AppendTuning t;
  t.round_s = tree.number_or("round_s", 0) * clock_ratio;
  t.token_s = tree.number_or("token_s", 0) * clock_ratio;
  t.token_kv_head_s = tree.number_or("token_kv_head_s", 0) * clock_ratio;
  t.token_head_s = tree.number_or("token_head_s", 0) * clock_ratio;
  t.bandwidth_share = positive(tree, "bandwidth_share");
  t.query_share = tree.number_or("query_share", 0);
  t.power = power_of(tree, "power", 1);
  return t;
}

}  // namespace voltaic::cost
