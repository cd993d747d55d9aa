// SPDX-License-Identifier: MIT
#include "validation/fit/stack_spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace voltaic::validation {
namespace {

constexpr double kLowQuantile = 0.05, kHighQuantile = 0.95, kHalfWidth = 0.9;
constexpr double kLeastRatio = 0.01;
/// A call whose rows left out are further off than this on average, in the logarithm, is not described by the law.
constexpr double kHopeless = 0.4;
using Group = std::pair<std::size_t, std::string_view>;  ///< Place and call.

/// Half of the steps in which a call's times are stated.
double half_grid(const StackTimes& times, const arch::CalibrationDocument& document, const Group& group) {
  const auto tree = times.tree(group.first, document);
  const std::string entry = protocol_entry(tree, times.places()[group.first].protocol, group.second);
  return entry.empty() ? 0 : tree.number_or(entry + ".grid_s", 0) / 2;
}

/// Of the error beyond the grid, which an interval holds anyway.
double ratio(double measured, double predicted, double grid) {
  const double error = measured - predicted;
  const double beyond = std::copysign(std::max(0.0, std::abs(error) - grid), error);
  return std::max(kLeastRatio, 1 + beyond / predicted);
}

std::map<Group, std::vector<std::size_t>> groups_of(const std::vector<StackFitRow>& rows) {
  std::map<Group, std::vector<std::size_t>> out;
  for (std::size_t i = 0; i < rows.size(); ++i) out[{rows[i].place, rows[i].row->call}].push_back(i);
  return out;
}

void fill_quantiles(StackSpread& s) {
  std::sort(s.ratios.begin(), s.ratios.end());
  s.low = quantile(s.ratios, kLowQuantile);
  s.high = quantile(s.ratios, kHighQuantile);
}

bool is_hopeless(const StackSpread& s) {
  double sum = 0;
  for (const double r : s.ratios) sum += std::abs(std::log(r));
  return sum > kHopeless * static_cast<double>(s.ratios.size());
}

/// What the report rows of the group say.
void report(StackSpread& s, const std::vector<std::size_t>& members, double grid, const std::vector<StackFitRow>& rows,
            const StackTimings& timings, const StackTimings& before) {
  for (const std::size_t i : members) {
    const double measured = rows[i].row->measured_s;
    const double predicted = timings[i].time.value;
    s.report_mape += std::abs(predicted / measured - 1);
    s.report_bias += predicted / measured - 1;
    s.report_mape_prior += std::abs(before[i].time.value / measured - 1);
    const double r = ratio(measured, predicted, grid);
    s.report_covered += std::min(1.0, s.low) <= r && r <= std::max(1.0, s.high) ? 1 : 0;
  }
  const double n = static_cast<double>(std::max<std::size_t>(members.size(), 1));
  s.report_rows = static_cast<std::int64_t>(members.size());
  s.report_mape /= n;
  s.report_bias /= n;
  s.report_mape_prior /= n;
  s.report_covered /= n;
}

/// Families whose half widths the tables of single operations set.
bool set_elsewhere(std::string_view family) {
  constexpr std::array<std::string_view, 6> kFamilies{"elementwise", "softmax",           "layer_norm",
                                                      "gemm_simt",   "gemm_simt_batched", "conv_simt"};
  return std::find(kFamilies.begin(), kFamilies.end(), family) != kFamilies.end();
}

void set_quantiles(arch::CalibrationDocument& fitted, const std::string& head, const StackSpread& s) {
  const std::string path =
      fmt::format("{}protocols.{}.{}.measured_over_predicted", head, arch::calibration_key(s.stack), s.call);
  fitted.set(path + ".low", s.low);
  fitted.set(path + ".high", s.high);
}

}  // namespace

std::vector<StackSpread> stack_spread(const StackTimes& times, const arch::CalibrationDocument& document,
                                      const std::vector<StackFitRow>& rows, const StackTimings& timings,
                                      const StackTimings& before, const std::vector<StackFitRow>& report_rows,
                                      const StackTimings& report_timings, const StackTimings& report_before) {
  auto reported = groups_of(report_rows);
  std::vector<StackSpread> out;
  for (const auto& [group, members] : groups_of(rows)) {
    const StackPlace& place = times.places()[group.first];
    const double grid = half_grid(times, document, group);
    StackSpread s;
    s.gpu = place.name;
    s.stack = place.protocol.stack.empty() ? cost::to_string(place.protocol.timing) : place.protocol.stack;
    s.release = place.protocol.release;
    s.call = group.second;
    s.rows = static_cast<std::int64_t>(members.size());
    std::set<std::string_view> shapes;
    for (const std::size_t i : members) {
      const double measured = rows[i].row->measured_s;
      const double predicted = timings[i].time.value;
      s.mape += std::abs(predicted / measured - 1);
      s.bias += predicted / measured - 1;
      s.mape_prior += std::abs(before[i].time.value / measured - 1);
      s.ratios.push_back(ratio(measured, predicted, grid));
      shapes.insert(rows[i].row->key);
    }
    const double n = static_cast<double>(members.size());
    s.mape /= n;
    s.bias /= n;
    s.mape_prior /= n;
    s.shapes = static_cast<std::int64_t>(shapes.size());
    fill_quantiles(s);
    report(s, reported[group], grid, report_rows, report_timings, report_before);
    out.push_back(std::move(s));
  }
  return out;
}

std::vector<KernelSpread> stack_kernels(const StackTimes& times, const arch::CalibrationDocument& document,
                                        const std::vector<StackFitRow>& rows, const StackTimings& timings,
                                        const std::vector<StackSpread>& spread) {
  struct Family {
    std::map<std::string, std::vector<double>> by_kernel;
    double longest = 0;
  };
  std::map<std::string, Family> families;
  std::size_t at = 0;
  for (const auto& [group, members] : groups_of(rows)) {
    if (is_hopeless(spread[at++])) continue;  // in the same order
    const double grid = half_grid(times, document, group);
    for (const std::size_t i : members) {
      const kernel::Launch* launch = main_launch(rows[i]);
      if (launch == nullptr || set_elsewhere(launch->family)) continue;
      const double time = timings[i].time.value, kernels = timings[i].kernel.value;
      constexpr double kMost = 0.5;
      if (kernels < kMost * time) continue;
      const double measured = rows[i].row->measured_s;
      const double r = ratio(std::max(kLeastRatio * kernels, kernels + measured - time), kernels, grid);
      Family& family = families[std::string(launch->family)];
      family.by_kernel[fmt::format("{} {}", group.first, launch->name)].push_back(std::log(r));
      family.longest = std::max(family.longest, measured);
    }
  }
  std::vector<KernelSpread> out;
  for (const auto& [name, family] : families) {
    KernelSpread s;
    s.family = name;
    std::vector<double> sizes;
    for (const auto& [kernel, values] : family.by_kernel) {
      for (const double v : values) sizes.push_back(std::abs(v));
    }
    std::sort(sizes.begin(), sizes.end());
    s.rows = static_cast<std::int64_t>(sizes.size());
    s.half_width = quantile(sizes, kHalfWidth);
    s.correlation = intraclass(family.by_kernel);
    s.longest_s = family.longest;
    out.push_back(std::move(s));
  }
  return out;
}

void keep_stack_spread(const std::vector<StackSpread>& spread, const std::vector<KernelSpread>& kernels,
                       arch::CalibrationDocument& fitted) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const StackSpread*>> calls;
  for (const auto& s : spread) calls[{s.gpu, s.stack, s.call}].push_back(&s);
  std::set<std::pair<std::string, std::string>> general;
  for (const auto& first : spread) {
    const auto& releases = calls[{first.gpu, first.stack, first.call}];
    const std::string board = fmt::format("boards.{}.", first.gpu);
    if (first.with_quantiles() && releases.size() > 1 && !first.release.empty()) {
      set_quantiles(fitted, fmt::format("{}sessions.{}.", board, arch::calibration_key(first.release)), first);
    }
    if (releases.front() != &first) continue;
    StackSpread pooled = first;
    for (std::size_t r = 1; r < releases.size(); ++r) {
      const auto& more = releases[r]->ratios;
      pooled.ratios.insert(pooled.ratios.end(), more.begin(), more.end());
      pooled.shapes = std::max(pooled.shapes, releases[r]->shapes);
    }
    if (!pooled.with_quantiles()) continue;
    fill_quantiles(pooled);
    set_quantiles(fitted, board, pooled);
    const bool named = !first.release.empty();  // what timed alike is not alike on every board
    if (named && general.emplace(first.stack, first.call).second) set_quantiles(fitted, "", pooled);
  }
  constexpr double kWidest = 1;
  for (const KernelSpread& k : kernels) {
    if (k.rows < kLeastShapes || k.half_width > kWidest) continue;
    const std::string path = "intervals." + k.family;
    fitted.set(path + ".half_width", k.half_width);
    fitted.set(path + ".correlation", k.correlation);
    fitted.set(path + ".longest_s", k.longest_s);
  }
}

}  // namespace voltaic::validation
