// SPDX-License-Identifier: MIT
#include "validation/fit/residual_spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace voltaic::validation {
namespace {

constexpr double kLowQuantile = 0.05, kHighQuantile = 0.95;
constexpr double kLeastRatio = 0.01;

/// Measured over predicted; where a row holds an unknown host delay, of the kernel alone: what beyond the delay's own
/// spread the kernel must be off by.
double measured_over_predicted(const cost::SingleOp::Timing& timing, double measured) {
  const double error = measured - timing.time.value;
  if (timing.delay_above.value <= 0) return measured / timing.time.value;
  const double delay = (error < 0 ? timing.delay_below : timing.delay_above).value;
  const double beyond = std::sqrt(std::max(0.0, error * error - delay * delay));
  return 1 + std::copysign(beyond, error) / timing.kernel.value;
}

}  // namespace

double intraclass(const std::map<std::string, std::vector<double>>& groups) {
  double n = 0, sum = 0, squares = 0;
  for (const auto& [name, values] : groups) {
    n += static_cast<double>(values.size());
    squares += static_cast<double>(values.size() * values.size());
    for (const double v : values) sum += v;
  }
  const double g = static_cast<double>(groups.size());
  if (g < 2 || n <= g) return 0;
  double between = 0, within = 0;
  for (const auto& [name, values] : groups) {
    double mean = 0;
    for (const double v : values) mean += v / static_cast<double>(values.size());
    between += static_cast<double>(values.size()) * (mean - sum / n) * (mean - sum / n);
    for (const double v : values) within += (v - mean) * (v - mean);
  }
  between /= g - 1;
  within /= n - g;
  const double typical = (n - squares / n) / (g - 1);
  const double total = between + (typical - 1) * within;
  return total > 0 ? std::clamp((between - within) / total, 0.0, 1.0) : 0;
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 1;
  // Of n observations the i-th splits the next one at i/(n+1).
  const double n = static_cast<double>(sorted.size());
  const double at = std::clamp(q * (n + 1) - 1, 0.0, n - 1);
  const auto i = static_cast<std::size_t>(at);
  const double t = at - static_cast<double>(i);
  return i + 1 < sorted.size() ? sorted[i] * (1 - t) + sorted[i + 1] * t : sorted[i];
}

std::vector<ResidualSpread> spread_of(const std::vector<FitRow>& rows, const Timings& predicted, const Timings& before,
                                      const RowTimes& times) {
  std::map<std::pair<std::size_t, std::string_view>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].launches.empty()) continue;
    std::string_view key;
    for (const auto& launch : rows[i].launches) {
      if (key.empty()) key = cost::SingleOp::key(launch);
    }
    if (!key.empty()) groups[{rows[i].place, key}].push_back(i);
  }
  std::vector<ResidualSpread> out;
  for (const auto& [key, members] : groups) {
    ResidualSpread s;
    s.gpu = times.places()[key.first].name;
    s.session = times.places()[key.first].session;
    s.op = key.second;
    s.rows = static_cast<std::int64_t>(members.size());
    std::vector<double> ratios;
    for (const std::size_t i : members) {
      const double measured = rows[i].row->measured_s;
      const double error = predicted[i].time.value / measured - 1;
      s.mape += std::abs(error);
      s.bias += error;
      s.mape_prior += std::abs(before[i].time.value / measured - 1);
      ratios.push_back(measured_over_predicted(predicted[i], measured));
    }
    const double n = static_cast<double>(members.size());
    s.mape /= n;
    s.bias /= n;
    s.mape_prior /= n;
    std::sort(ratios.begin(), ratios.end());
    s.low = std::max(kLeastRatio, quantile(ratios, kLowQuantile));
    s.high = quantile(ratios, kHighQuantile);
    std::set<std::string_view> shapes;
    for (const std::size_t i : members) shapes.insert(rows[i].row->key);
    s.shapes = static_cast<std::int64_t>(shapes.size());
    out.push_back(std::move(s));
  }
  return out;
}

std::vector<KernelSpread> kernels_of(const std::vector<FitRow>& rows, const Timings& predicted) {
  constexpr double kBeyondFloor = 1.5, kBeyondDelay = 5;
  std::map<std::string, std::map<std::string, std::vector<double>>> families;
  std::map<std::string, double> longest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].launches.empty() || predicted[i].time.value < kBeyondFloor * predicted[i].floor.value) continue;
    const kernel::Launch& launch = rows[i].launches.front();
    // Where a row holds an unknown delay, only a kernel that dwarfs it shows its own error.
    const cost::SingleOp::Timing& t = predicted[i];
    if (t.kernel < kBeyondDelay * (t.delay_below + t.delay_above)) continue;
    const double ratio = std::max(0.01, 1 + (rows[i].row->measured_s - t.time.value) / t.kernel.value);
    const std::string family(launch.family);
    families[family][fmt::format("{} {}", rows[i].place, launch.name)].push_back(std::log(ratio));
    longest[family] = std::max(longest[family], rows[i].row->measured_s);
  }
  std::vector<KernelSpread> out;
  for (const auto& [family, groups] : families) {
    KernelSpread s;
    s.family = family;
    std::vector<double> sizes;
    for (const auto& [name, values] : groups) {
      for (const double v : values) sizes.push_back(std::abs(v));
    }
    std::sort(sizes.begin(), sizes.end());
    s.rows = static_cast<std::int64_t>(sizes.size());
    s.half_width = quantile(sizes, 0.9);
    s.correlation = intraclass(groups);
    s.longest_s = longest[family];
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace voltaic::validation
