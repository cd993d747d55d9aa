// SPDX-License-Identifier: MIT
#include "sim/cost/attention_cost.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "arch/units/error.hpp"
#include "sim/cost/overlap.hpp"
#include "sim/cost/roofline.hpp"

namespace voltaic::cost {

using kernel::AttentionKernel;
using kernel::AttentionLibrary;
using kernel::Bound;

namespace {

constexpr double kBackwardKeys = 128;  ///< Keys of one CTA of the backward kernel [FA2].
/// Prompts of millions of tokens: every stride-th tile stands for its neighbours.
constexpr std::int64_t kMostTiles = 8192;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

double kv_bytes(const AttentionKernel& k, double tokens) {
  return k.element_bytes * d(k.batch) * d(k.kv_heads) * tokens * (d(k.head_dim) + d(k.value_dim));
}

double qo_bytes(const AttentionKernel& k) {
  return k.element_bytes * d(k.batch) * d(k.heads) * d(k.seq_q) * (d(k.head_dim) + d(k.value_dim));
}

/// Every split's result and its row sums, in fp32, written and read.
double partial_bytes(const AttentionKernel& k) {
  return 8 * d(k.batch) * d(k.heads) * d(k.seq_q) * d(k.value_dim) * d(k.splits);
}

std::int64_t stride_over(double tiles) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(tiles / d(kMostTiles))));
}

}  // namespace

AttentionCost::AttentionCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {
  const auto section = gpu.calibration.at("attention");
  // Latencies are cycles at heart: another clock scales them.
  const double ratio = section.number("clock_hz") / gpu_.clocks.boost.value;
  const auto read = [&](const std::string& name) {
    Library out;
    if (section.has(name + ".prompt")) out.prompt = read_prompt_tuning(section.at(name + ".prompt"), ratio);
    if (section.has(name + ".backward")) out.backward = read_prompt_tuning(section.at(name + ".backward"), ratio);
    if (section.has(name + ".decode")) out.decode = read_decode_tuning(section.at(name + ".decode"), ratio);
    if (section.has(name + ".append")) out.append = read_append_tuning(section.at(name + ".append"), ratio);
    return out;
  };
  for (std::size_t i = 1; i <= static_cast<std::size_t>(AttentionLibrary::memory_efficient); ++i) {
    libraries_[i] = read(std::string(kernel::to_string(static_cast<AttentionLibrary>(i))));
  }
  lanes_ = read("fma");
}

double AttentionCost::sms() const {
  return d(std::max<std::int64_t>(1, gpu_.sm.count));
}

double AttentionCost::sm_rate(const AttentionKernel& k) const {
  const bool tensor = gpu_.has_tensor_path(k.math);
  FlopsPerSecond peak = tensor ? gpu_.tensor_peak(k.math) : gpu_.cuda_core_peak(k.math);
  if (!(peak.value > 0)) peak = gpu_.cuda_core_peak(DataType::fp32);
  return peak.value / sms();
}

double AttentionCost::per_cycle(double bytes, double bytes_per_cycle_per_sm) const {
  const double rate = bytes_per_cycle_per_sm * sms() * gpu_.clocks.boost.value;
  return rate > 0 ? bytes / rate : 0;
}

double AttentionCost::dram_seconds(double bytes, double share) const {
  return bytes / (share * gpu_.dram.peak_bandwidth.value);
}

const AttentionCost::Library& AttentionCost::library(const AttentionKernel& k) const {
  if (!gpu_.has_tensor_path(k.math)) return lanes_;
  return libraries_[static_cast<std::size_t>(kernel::attention_library(k, gpu_))];
}

void AttentionCost::refuse(const AttentionKernel& k) const {
  const char* phase = k.append ? " writing a cache" : (k.backward ? " backward" : (k.decode ? " decoding" : ""));
  throw UnsupportedError(fmt::format("attention by {}{} is not known on {}",
                                     kernel::to_string(kernel::attention_library(k, gpu_)), phase, gpu_.name));
}

AttentionSchedule AttentionCost::schedule(const PromptTuning& t, bool split_variant, int resident) const {
  AttentionSchedule s;
  s.wait = split_variant ? t.split.wait_s : t.whole.wait_s;
  s.rate = t.pair_rate;
  s.resident = std::clamp(resident, 1, 2);
  s.sms = static_cast<int>(std::clamp<std::int64_t>(gpu_.sm.count, 1, 1 << 20));
  s.overlap_power = t.overlap_power;
  return s;
}

double AttentionCost::prompt_miss(const PromptTuning& t, const AttentionKernel& k) const {
  if (!k.warm || !(t.resident_share > 0)) return 1;
  const double held = t.resident_kv * kv_bytes(k, d(k.seq_kv)) + qo_bytes(k);
  return std::clamp(held / (t.resident_share * std::max(gpu_.l2.capacity.value, 1.0)), 0.0, 1.0);
}

/// t1 = (rows + m0) 4 (D + cs) / (e1 P) per key; the CTA of tile i works w0 + k_i t1 / splits after a wait.
///     T = pad + merge + (schedule^p + (miss bytes / BW)^p)^(1/p)
AttentionCost::Legs AttentionCost::prompt(const AttentionKernel& k) const {
  const AttentionLibrary chosen = kernel::attention_library(k, gpu_);
  const PromptTuning& t = known(library(k).prompt, k);
  const auto tile = kernel::attention_tile(k, chosen);
  const PromptTuning::Cta& cta = k.split_variant ? t.split : t.whole;
  const double dim = kernel::padded_head_dim(k);
  const double per_key = (d(tile.rows) + t.stream_rows) * 4 * (dim + t.softmax_dims) / (cta.alone * sm_rate(k));
  AttentionSchedule s = schedule(t, k.split_variant, tile.resident);
  s.longest_first = kernel::attention_rules(chosen).longest_first;
  if (!k.split_variant && kernel::group_size(k) == 1) s.wait = t.wait_ungrouped_s;
  const std::int64_t tiles = kernel::tiles_per_group(k, tile);
  const double splits = d(std::max<std::int64_t>(1, k.splits));
  const std::int64_t stride = stride_over(d(tiles));
  const double groups = d(kernel::attention_groups(k, tile)) * splits;
  s.groups = groups * d(stride);
  const double step = d(k.seq_kv < tile.keys ? tile.short_step : tile.keys);
  const auto work_of = [&](double keys) {
    return cta.work_s + (splits > 1 ? std::max(step, keys / splits) : keys) * per_key;
  };
  double keys = 0;
  const bool masked = k.causal || k.window > 0;
  AttentionKernel open = k;
  open.causal = false;
  open.window = 0;
  const double every = kernel::tile_keys(open, tile, 0);
  s.work.reserve(static_cast<std::size_t>(tiles / stride + 1));
  for (std::int64_t i = stride / 2; i < tiles; i += stride) {
    const double length = masked ? kernel::tile_keys(k, tile, i) : every;
    keys += length;
    s.work.push_back(work_of(length));
  }
  double longest = schedule_time(s);
  if (masked) longest = std::min(longest, uniform_time(s, d(tiles) * groups, work_of(every)));
  Legs legs;
  const double compulsory = kv_bytes(k, d(k.seq_kv)) + qo_bytes(k);
  legs.bytes = compulsory * prompt_miss(t, k);
  legs.dram = dram_seconds(legs.bytes, t.bandwidth_share);
  legs.math = per_key * keys / t.pair_rate * s.groups / splits / s.sms;
  legs.l2_bytes = keys * s.groups / splits * dim * 2 * k.element_bytes + compulsory;
  legs.time = smooth_max2(longest, legs.dram, t.memory_power);
  if (dim * 2 > d(k.head_dim) + d(k.value_dim)) legs.time += t.pad_s;
  if (k.split_variant) legs.time += t.merge_s + per_cycle(partial_bytes(k), t.merge_bytes_per_cycle);
  return legs;
}

/// One CTA per 128 keys and head runs over the queries that see them: five products instead of two.
AttentionCost::Legs AttentionCost::backward(const AttentionKernel& k, const kernel::Launch& launch) const {
  const PromptTuning& t = known(library(k).backward, k);
  const double dim = kernel::padded_head_dim(k);
  AttentionSchedule s = schedule(t, false, 1);
  const double per_query = kBackwardKeys * 10 * (dim + t.softmax_dims) / (t.whole.alone * sm_rate(k));
  const double step = std::max(k.head_dim, k.value_dim) <= 64 ? 128 : 64;
  const double blocks = std::max(1.0, std::ceil(d(k.seq_kv) / kBackwardKeys));
  const std::int64_t stride = stride_over(blocks);
  const double heads = d(k.batch) * d(k.heads);
  s.groups = heads * d(stride);
  double queries = 0;
  for (std::int64_t i = stride / 2; d(i) < blocks; i += stride) {
    const double rows = kernel::block_queries(k, d(i) * kBackwardKeys, kBackwardKeys, step);
    queries += rows;
    s.work.push_back(t.whole.work_s + rows * per_query);
  }
  const double all = t.whole.work_s + std::ceil(d(k.seq_q) / step) * step * per_query;
  Legs legs;
  legs.bytes = launch.work.traffic().value;
  legs.dram = dram_seconds(legs.bytes, t.bandwidth_share);
  legs.math = queries * per_query * s.groups / s.sms;
  legs.l2_bytes = legs.bytes + queries * s.groups * dim * 4 * k.element_bytes;
  legs.time = smooth_max2(std::min(schedule_time(s), uniform_time(s, blocks * heads, all)), legs.dram, t.memory_power);
  return legs;
}

/// (rounds^p + bytes^p)^(1/p): one CTA per token waits for its loads while others' threads fill the SM.
AttentionCost::Legs AttentionCost::append(const AttentionKernel& k) const {
  const AppendTuning& t = known(library(k).append, k);
  const double tokens = d(k.batch) * d(k.seq_q);
  const double threads = std::min(d(k.kv_heads) * d(k.head_dim), 512.0);
  const double resident = 32.0 * std::max(1, gpu_.sm.max_warps) * sms();
  const double rounds = tokens * (t.round_s * threads / resident + t.token_s + t.token_kv_head_s * d(k.kv_heads) +
                                  t.token_head_s * d(k.heads));
  const PromptTuning& prompt = known(library(k).prompt, k);
  Legs legs;
  legs.bytes = (2 * kv_bytes(k, d(k.seq_q)) + t.query_share * qo_bytes(k)) * prompt_miss(prompt, k);
  legs.dram = dram_seconds(legs.bytes, t.bandwidth_share);
  legs.l2_bytes = 2 * kv_bytes(k, d(k.seq_q));
  legs.time = smooth_max2(rounds, legs.dram, t.power);
  return legs;
}

AttentionCost::Legs AttentionCost::legs(const AttentionKernel& k, const kernel::Launch& launch) const {
  if (k.append) return append(k);
  if (k.decode) return decode(k);
  return k.backward ? backward(k, launch) : prompt(k);
}

kernel::KernelCost AttentionCost::operator()(const kernel::Launch& launch, const AttentionKernel& k) const {
  const Legs legs = this->legs(k, launch);
  kernel::KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.time = Seconds{legs.time};
  cost.dram_traffic = Bytes{k.warm ? legs.bytes : std::max(legs.bytes, launch.work.traffic().value)};
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
