// SPDX-License-Identifier: MIT
#include "sim/cost/attention_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/overlap.hpp"
#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

using kernel::AttentionKernel;
using kernel::AttentionLibrary;
using kernel::Bound;

namespace {

constexpr std::int64_t kBackwardKeys = 128;  ///< Keys of one CTA of the backward kernel [FA2].

double d(std::int64_t v) {
  return static_cast<double>(v);
}

AttentionTuning read_tuning(const arch::ParameterTree& tree, double clock_ratio) {
  AttentionTuning t;
  t.alone = tree.number("eff_alone");
  t.full = tree.number("eff_full");
  t.stream_rows = tree.number_or("stream_rows", 0);
  t.softmax_dims = tree.number_or("softmax_dims", 0);
  t.wait_s = tree.number("wait_s") * clock_ratio;
  t.merge_s = tree.number_or("merge_s", 0);
  t.bandwidth_share = tree.number("bandwidth_share");
  t.resident = std::clamp(static_cast<int>(tree.number("ctas_per_sm")), 1, 2);
  t.longest_first = tree.number_or("longest_first", 0) > 0;
  return t;
}

DecodeTuning read_decode(const arch::ParameterTree& tree, double clock_ratio) {
  DecodeTuning t;
  t.fixed_s = tree.number("fixed_s");
  t.group_s = tree.number_or("group_s", 0);
  t.transpose_s = tree.number_or("transpose_s", 0);
  t.merge_s = tree.number("merge_s");
  t.merge_per_split_s = tree.number("merge_per_split_s") * clock_ratio;
  t.alone_s = tree.number("alone_s") * clock_ratio;
  t.shared_s = tree.number("shared_s") * clock_ratio;
  t.cta_s = tree.number("cta_s") * clock_ratio;
  t.group_cta_s = tree.number("group_cta_s") * clock_ratio;
  t.dim_power = tree.number("dim_power");
  t.cta_dim_power = tree.number("cta_dim_power");
  t.bandwidth_share = tree.number("bandwidth_share");
  t.l2_bytes_per_cycle = tree.number("l2_bytes_per_cycle");
  t.resident_from = tree.number("resident_from");
  t.resident_to = tree.number("resident_to");
  t.power = tree.number("power");
  return t;
}

}  // namespace

AttentionCost::AttentionCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {
  const auto section = gpu.calibration.at("attention");
  // Latencies are cycles at heart: another clock scales them.
  const double ratio = section.number("clock_hz") / gpu_.clocks.boost.value;
  efficient_ = read_tuning(section.at("memory_efficient"), ratio);
  fma_ = read_tuning(section.at("fma"), ratio);
  flash_ = section.has("flash") ? read_tuning(section.at("flash"), ratio) : efficient_;
  backward_efficient_ = read_tuning(section.at("backward_memory_efficient"), ratio);
  backward_ = section.has("backward") ? read_tuning(section.at("backward"), ratio) : backward_efficient_;
  decode_ = read_decode(section.at("decode"), ratio);
}

double AttentionCost::sm_rate(const AttentionKernel& k) const {
  const bool tensor = gpu_.has_tensor_path(k.math);
  FlopsPerSecond peak = tensor ? gpu_.tensor_peak(k.math) : gpu_.cuda_core_peak(k.math);
  if (!(peak.value > 0)) peak = gpu_.cuda_core_peak(DataType::fp32);
  return peak.value / d(std::max<std::int64_t>(1, gpu_.sm.count));
}

const AttentionTuning& AttentionCost::tuning(const AttentionKernel& k, AttentionLibrary library) const {
  if (!gpu_.has_tensor_path(k.math)) return fma_;
  if (library == AttentionLibrary::memory_efficient) return k.backward ? backward_efficient_ : efficient_;
  return k.backward ? backward_ : flash_;
}

/// t1 = (rows + m0) 4 (D + cs) / (e1 P) per key; the CTA of tile i works k_i t1 / splits after a wait.
///     T = merge + max(schedule, bytes / BW)
AttentionCost::Legs AttentionCost::prompt(const AttentionKernel& k, const kernel::Launch& launch) const {
  const AttentionLibrary library = kernel::attention_library(k, gpu_);
  const AttentionTuning& t = tuning(k, library);
  const auto tile = kernel::attention_tile(k, library);
  const double dim = kernel::padded_head_dim(k);
  const double per_key = (d(tile.rows) + t.stream_rows) * 4 * (dim + t.softmax_dims) / (t.alone * sm_rate(k));
  AttentionSchedule schedule;
  const std::int64_t tiles = kernel::tiles_per_group(k, tile);
  const double splits = d(std::max<std::int64_t>(1, k.splits));
  schedule.groups = d(kernel::attention_groups(k, tile)) * splits;
  schedule.wait = t.wait_s;
  schedule.rate = t.full / t.alone;
  schedule.resident = t.resident;
  schedule.sms = static_cast<int>(std::clamp<std::int64_t>(gpu_.sm.count, 1, 1 << 20));
  schedule.longest_first = t.longest_first;
  // Prompts of millions of tokens: every stride-th tile stands for its neighbours.
  constexpr std::int64_t kMostTiles = 8192;
  const std::int64_t stride = std::max<std::int64_t>(1, (tiles + kMostTiles - 1) / kMostTiles);
  schedule.groups *= d(stride);
  double keys = 0;
  const bool masked = k.causal || k.window > 0;
  const double every = masked ? 0 : kernel::tile_keys(k, tile, 0);
  schedule.work.reserve(static_cast<std::size_t>(tiles / stride + 1));
  for (std::int64_t i = stride / 2; i < tiles; i += stride) {
    const double length = masked ? kernel::tile_keys(k, tile, i) : every;
    keys += length;
    schedule.work.push_back(length / splits * per_key);
  }
  Legs legs;
  legs.bytes = launch.work.traffic().value;
  legs.dram = legs.bytes / (t.bandwidth_share * gpu_.dram.peak_bandwidth.value);
  double longest = schedule_time(schedule);
  if (masked) {
    AttentionKernel open = k;
    open.causal = false;
    open.window = 0;
    const double all = kernel::tile_keys(open, tile, 0) / splits * per_key;
    longest = std::min(longest, uniform_time(schedule, d(tiles) * schedule.groups / d(stride), all));
  }
  const double mean = per_key * keys / splits / (t.full / t.alone);
  legs.math = mean * schedule.groups / schedule.sms;
  legs.l2_bytes = keys * schedule.groups / splits * dim * 2 * k.element_bytes + legs.bytes;
  legs.time = std::max(longest, legs.dram) + (k.splits > 1 ? t.merge_s : 0);
  return legs;
}

/// One CTA per 128 keys and head runs over the queries that see them: five products instead of two.
AttentionCost::Legs AttentionCost::backward(const AttentionKernel& k, const kernel::Launch& launch) const {
  const AttentionTuning& t = tuning(k, kernel::attention_library(k, gpu_));
  const double dim = kernel::padded_head_dim(k);
  AttentionSchedule schedule;
  schedule.groups = d(k.batch) * d(k.heads);
  schedule.wait = t.wait_s;
  schedule.rate = t.full / t.alone;
  schedule.resident = t.resident;
  schedule.sms = static_cast<int>(std::clamp<std::int64_t>(gpu_.sm.count, 1, 1 << 20));
  const double per_pair = 10 * (dim + t.softmax_dims) / (t.alone * sm_rate(k));
  const double rows = d(k.seq_kv);
  const double blocks = std::max(1.0, std::ceil(rows / kBackwardKeys));
  const double pairs = kernel::visible_pairs(k);
  // Padding of the last block, and masks: key blocks see from all queries down to none.
  const double full = kBackwardKeys * std::ceil(d(k.seq_q) / 64) * 64 * per_pair;
  const double shown = std::clamp(pairs / (d(k.seq_q) * rows), 0.0, 1.0);
  const double kept = std::min(1.0, shown + 0.5 * kBackwardKeys / std::max(rows, 1.0) * (1 - shown));
  const int played_blocks = static_cast<int>(std::min(blocks, 2048.0));
  const double played = played_blocks;
  for (int i = 0; i < played_blocks; ++i) {
    const double ramp =
        k.causal && k.window <= 0 ? std::min(1.0, 2 * kept * (1 - (i + 0.5) / played) + 0.5 / played) : kept;
    schedule.work.push_back(full * ramp);
  }
  schedule.groups *= blocks / played;
  Legs legs;
  // dq is summed in fp32 across key blocks: written and read once beyond the compulsory traffic.
  const double sums = 8 * d(k.batch) * d(k.heads) * d(k.seq_q) * d(k.head_dim);
  legs.bytes = launch.work.traffic().value + sums;
  legs.dram = legs.bytes / (t.bandwidth_share * gpu_.dram.peak_bandwidth.value);
  double work = 0;
  for (const double w : schedule.work) work += w;
  legs.math = work / schedule.rate * schedule.groups / schedule.sms;
  legs.l2_bytes = legs.bytes + schedule.groups * blocks * d(k.seq_q) * dim * 4 * k.element_bytes * kept;
  const double open = uniform_time(schedule, blocks * d(k.batch) * d(k.heads), full);
  legs.time = std::max(std::min(schedule_time(schedule), open), legs.dram);
  return legs;
}

/// lat = ln t1 + u1 (ac + cg g/64 + ln t2),  mem = KV / BW,  T = fixed + merge + copies + (lat^p + mem^p)^(1/p), where
/// each of n CTAs reads ln keys and u1 counts the CTAs that share an SM with another.
AttentionCost::Legs AttentionCost::decode(const AttentionKernel& k, double miss) const {
  const AttentionLibrary library = kernel::attention_library(k, gpu_);
  const DecodeTuning& t = decode_;
  const std::int64_t group = std::max<std::int64_t>(1, k.heads / std::max<std::int64_t>(1, k.kv_heads));
  const double splits = d(std::max<std::int64_t>(1, k.splits));
  const double block = d(kernel::decode_block(k, library));
  const double key_blocks = std::max(1.0, std::ceil(d(kernel::decode_keys(k)) / block));
  const double keys = block * std::ceil(key_blocks / splits);
  const double row_blocks = std::ceil(d(group) / (library == AttentionLibrary::flash3 && k.head_dim > 128 ? 128 : 64));
  const double per_sm = d(k.batch) * d(k.kv_heads) * row_blocks * splits / d(std::max<std::int64_t>(1, gpu_.sm.count));
  const double others = std::max(0.0, (std::ceil(per_sm) + per_sm) / 2 - 1);
  const double size = kernel::padded_head_dim(k) / 128 * k.element_bytes / 2;
  const double stretch = std::pow(size, t.dim_power);
  const double latency =
      keys * t.alone_s * stretch +
      others * (t.cta_s * std::pow(size, t.cta_dim_power) + t.group_cta_s * std::min(d(group), 64.0) / 64 +
                std::min(keys, d(kernel::decode_keys(k))) * t.shared_s * stretch);
  const double cache =
      d(k.batch) * d(k.kv_heads) * d(kernel::decode_keys(k)) * d(k.head_dim + k.value_dim) * k.element_bytes;
  const double l2 = t.l2_bytes_per_cycle * d(std::max<std::int64_t>(1, gpu_.sm.count)) * gpu_.clocks.boost.value;
  Legs legs;
  legs.bytes = cache * miss;
  legs.l2_bytes = cache;
  legs.dram = legs.bytes / (t.bandwidth_share * gpu_.dram.peak_bandwidth.value);
  legs.time = t.fixed_s + smooth_max2(latency, legs.dram + cache * (1 - miss) / l2, t.power);
  if (k.splits > 1) legs.time += t.merge_s + t.merge_per_split_s * splits;
  if (group > 1) legs.time += t.group_s + (k.kv_heads > 1 && k.batch > 1 ? t.transpose_s : 0);
  return legs;
}

Seconds AttentionCost::warm_decode_time(const AttentionKernel& k) const {
  const double cache =
      d(k.batch) * d(k.kv_heads) * d(kernel::decode_keys(k)) * d(k.head_dim + k.value_dim) * k.element_bytes;
  const double share = cache / std::max(gpu_.l2.capacity.value, 1.0);
  const double miss =
      std::clamp((share - decode_.resident_from) / (decode_.resident_to - decode_.resident_from), 0.0, 1.0);
  return Seconds{decode(k, miss).time};
}

kernel::KernelCost AttentionCost::operator()(const kernel::Launch& launch, const AttentionKernel& k) const {
  const Legs legs = k.decode ? decode(k, 1) : (k.backward ? backward(k, launch) : prompt(k, launch));
  kernel::KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.time = Seconds{legs.time};
  cost.dram_traffic = Bytes{k.decode ? std::max(legs.bytes, launch.work.traffic().value) : legs.bytes};
  cost.l2_traffic = Bytes{legs.l2_bytes};
  cost.shared_traffic = Bytes{legs.l2_bytes};
  cost.leg(launch.tensor_cores ? Bound::tensor : Bound::fma) = Seconds{legs.math};
  cost.leg(Bound::dram) = Seconds{legs.dram};
  const double l2_rate = gpu_.l2.bytes_per_cycle_per_sm * d(gpu_.sm.count) * gpu_.clocks.boost.value;
  if (l2_rate > 0) cost.leg(Bound::l2) = Seconds{legs.l2_bytes / l2_rate};
  cost.leg(Bound::latency) = Seconds{std::max(0.0, legs.time - std::max(legs.math, legs.dram))};
  respect_roofline(launch, gpu_, cost);
  return cost;
}

}  // namespace voltaic::cost
