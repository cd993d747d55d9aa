// SPDX-License-Identifier: MIT
// Checks between fields of a GPU, and the fields that follow others when a user changes one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "arch/detail/description.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPeakTolerance = 0.02;

/// "tensor_fp16_flop_per_s" -> the derived rate per cycle and SM, or nothing for an unknown key.
std::optional<double> rate_of(const std::string& key, const SmSpec& sm) {
  std::string_view word = key;
  if (!word.ends_with("_flop_per_s")) return std::nullopt;
  word.remove_suffix(std::string_view("_flop_per_s").size());
  const RateTable* table = &sm.cuda_core;
  if (word.starts_with("tensor_")) {
    word.remove_prefix(std::string_view("tensor_").size());
    table = &sm.tensor;
  }
  const auto type = parse_data_type(word);
  return type ? std::optional<double>((*table)[*type]) : std::nullopt;
}

double positive_number(const Json& object, const char* key, const std::string& file, const std::string& pointer) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number() || !rule_problem(Rule::positive, it->get<double>()).empty()) {
    throw ConfigError(file, pointer + '/' + key,
                      "expected a number above 0, got " + (it == object.end() ? "none" : describe(*it)));
  }
  return it->get<double>();
}

void check_peak(const std::string& key, const Json& stated, const std::string& file, const GpuSpec& spec) {
  const std::string pointer = "/peak/" + pointer_token(key);
  const auto rate = rate_of(key, spec.sm);
  if (!rate)
    throw ConfigError(file, pointer, "unknown key; expected names like fp32_flop_per_s or tensor_fp16_flop_per_s");
  if (!stated.is_object() || !stated.contains("source")) {
    throw ConfigError(file, pointer, "expected {\"value\", \"source\"}, got " + describe(stated));
  }
  const double value = positive_number(stated, "value", file, pointer);
  const double clock =
      stated.contains("clock_hz") ? positive_number(stated, "clock_hz", file, pointer) : spec.clocks.boost.value;
  const double derived = 2 * *rate * static_cast<double>(spec.sm.count) * clock;
  const double apart = std::fabs(derived / value - 1);
  if (apart <= kPeakTolerance) return;
  throw ConfigError(
      file, pointer,
      fmt::format(
          "expected the stated peak within 2 % of lanes x clock x 2, got {:.4g} against {:.4g} ({:.1f} % apart)", value,
          derived, 100 * apart));
}

bool has(const std::vector<std::string>& paths, std::string_view path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

void scale(RateTable& table, double factor) {
  for (double& rate : table.fma_per_cycle) rate *= factor;
}

void settle_clocks(const GpuSpec& before, const std::vector<std::string>& changed, Description& d) {
  if (!has(changed, "clocks.boost")) return;
  ClockSpec& now = d.spec.clocks;
  if (!has(changed, "clocks.base")) now.base = std::min(now.base, now.boost);
  if (has(changed, "clocks.sustained")) return;
  // A board that holds its boost clock holds the new one too; a power-limited one only goes down.
  now.sustained = before.clocks.sustained >= before.clocks.boost ? now.boost : std::min(now.sustained, now.boost);
}

void settle_lanes(const GpuSpec& before, const std::vector<std::string>& changed, Description& d) {
  SmSpec& sm = d.spec.sm;
  const bool rate_set = has(changed, "sm.cuda_core.fp32");
  if (has(changed, "sm.fp32_lanes") && !rate_set) sm.cuda_core[DataType::fp32] = sm.fp32_lanes;
  if (rate_set && !has(changed, "sm.fp32_lanes")) sm.fp32_lanes = sm.cuda_core[DataType::fp32];
  if (!has(changed, "sm.tensor_cores") || sm.tensor_cores <= 0 || before.sm.tensor_cores <= 0) return;
  const bool rates_set = std::any_of(changed.begin(), changed.end(), [](const std::string& p) {
    return p.starts_with("sm.tensor.") || p.starts_with("sm.tensor_sparse.");
  });
  if (rates_set) return;
  const double factor = sm.tensor_cores / before.sm.tensor_cores;
  scale(sm.tensor, factor);
  scale(sm.tensor_sparse, factor);
}

void settle_memory(const GpuSpec& before, const std::vector<std::string>& changed, Description& d) {
  DramSpec& dram = d.spec.dram;
  if (has(changed, "dram.capacity") && !has(changed, "dram.usable")) {
    dram.usable = before.dram.usable * (dram.capacity / before.dram.capacity);
  }
  if (has(changed, "dram.usable") && !has(changed, "dram.capacity"))
    dram.capacity = std::max(dram.capacity, dram.usable);
  SmSpec& sm = d.spec.sm;
  if (has(changed, "sm.shared_memory") && !has(changed, "sm.shared_memory_per_cta")) {
    sm.shared_memory_per_cta = std::min(before.sm.shared_memory_per_cta * (sm.shared_memory / before.sm.shared_memory),
                                        sm.shared_memory - sm.shared_reserved_per_cta);
  }
  if (has(changed, "sm.shared_memory") && !has(changed, "l1.capacity")) {
    d.spec.l1.capacity = std::max(d.spec.l1.capacity, sm.shared_memory);
  }
  L2Spec& l2 = d.spec.l2;
  if (has(changed, "l2.latency") && !has(changed, "l2.far_latency")) {
    l2.far_latency = before.l2.far_latency * (l2.latency / before.l2.latency);
  }
  if (has(changed, "power.limit") && !has(changed, "power.idle"))
    d.spec.power.idle = std::min(d.spec.power.idle, d.spec.power.limit);
}

}  // namespace

void check_stated_peaks(const Json& root, const std::string& file, const GpuSpec& spec, bool required) {
  const auto peak = root.find("peak");
  if (peak == root.end() || !peak->is_object()) {
    if (required || peak != root.end())
      throw ConfigError(file, "/peak", "expected the stated peaks, fp32_flop_per_s at least");
    return;
  }
  if (required && !peak->contains("fp32_flop_per_s")) throw ConfigError(file, "/peak/fp32_flop_per_s", "missing");
  for (const auto& [key, stated] : peak->items()) check_peak(key, stated, file, spec);
}

void settle(const GpuSpec& before, const std::vector<std::string>& changed, Description& d) {
  settle_clocks(before, changed, d);
  settle_lanes(before, changed, d);
  settle_memory(before, changed, d);
}

std::string consistency_problem(const GpuSpec& g) {
  const auto at_most = [](std::string_view path, double value, std::string_view other, double limit,
                          std::string_view unit) {
    if (value <= limit) return std::string{};
    return fmt::format("{}: expected at most {} ({}), got {}", path, other, format_field(limit, unit),
                       format_field(value, unit));
  };
  const SmSpec& sm = g.sm;
  std::vector<std::string> found{
      at_most("clocks.base", g.clocks.base.value, "the boost clock", g.clocks.boost.value, "hz"),
      at_most("clocks.sustained", g.clocks.sustained.value, "the boost clock", g.clocks.boost.value, "hz"),
      at_most("dram.usable", g.dram.usable.value, "the capacity", g.dram.capacity.value, "bytes"),
      at_most("sm.shared_memory", sm.shared_memory.value, "the L1 capacity", g.l1.capacity.value, "bytes"),
      at_most("sm.shared_memory_per_cta", sm.shared_memory_per_cta.value, "the SM's shared memory",
              sm.shared_memory.value, "bytes"),
      at_most("sm.max_threads_per_cta", sm.max_threads_per_cta, "32 times the warps of an SM", 32.0 * sm.max_warps, ""),
      at_most("l2.latency", g.l2.latency.value, "the far latency", g.l2.far_latency.value, "cycles"),
      at_most("power.idle", g.power.idle.value, "the power limit", g.power.limit.value, "w")};
  if (std::fabs(sm.cuda_core[DataType::fp32] - sm.fp32_lanes) > 1e-9 * sm.fp32_lanes) {
    found.push_back(fmt::format("sm.cuda_core.fp32: expected the FP32 lanes ({}), got {}", sm.fp32_lanes,
                                sm.cuda_core[DataType::fp32]));
  }
  const auto first = std::find_if(found.begin(), found.end(), [](const std::string& s) { return !s.empty(); });
  return first == found.end() ? "" : *first;
}

}  // namespace voltaic::arch::detail
