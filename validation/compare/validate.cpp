// SPDX-License-Identifier: MIT
#include "validation/compare/validate.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "arch/units/error.hpp"

namespace voltaic::validation {
namespace {

constexpr std::size_t kWorst = 10;

/// The q-quantile of sorted values, interpolated between neighbours.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

auto key(const Pair& p) {
  return std::tie(p.gpu, p.op, p.dtype, p.mode, p.origin);
}

Group summarise(std::vector<Pair> pairs) {
  Group g;
  const Pair& first = pairs.front();
  g.gpu = first.gpu;
  g.op = first.op;
  g.dtype = first.dtype;
  g.mode = first.mode;
  g.origin = first.origin;
  g.rows = static_cast<std::int64_t>(pairs.size());
  const double n = static_cast<double>(pairs.size());
  std::vector<double> errors;
  for (const auto& p : pairs) {
    errors.push_back(std::abs(p.error()));
    g.mape += errors.back() / n;
    g.bias += p.error() / n;
    g.interval_coverage += (p.low_s <= p.measured_s && p.measured_s <= p.high_s ? 1 : 0) / n;
    if (p.predicted_s > 0) g.interval_width += (p.high_s - p.low_s) / p.predicted_s / n;
  }
  std::sort(errors.begin(), errors.end());
  g.median_ape = quantile(errors, 0.5);
  g.p90_ape = quantile(errors, 0.9);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return std::abs(a.error()) > std::abs(b.error()); });
  if (pairs.size() > kWorst) pairs.resize(kWorst);
  g.worst = std::move(pairs);
  return g;
}

}  // namespace

void skip(Validation& out, const std::string& reason, std::int64_t rows) {
  const auto at = std::lower_bound(out.skipped.begin(), out.skipped.end(), reason,
                                   [](const auto& entry, const std::string& r) { return entry.first < r; });
  if (at != out.skipped.end() && at->first == reason) {
    at->second += rows;
  } else {
    out.skipped.insert(at, {reason, rows});
  }
}

std::vector<Group> group(const std::vector<Pair>& pairs) {
  std::vector<std::vector<Pair>> buckets;
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, std::size_t> index;
  for (const auto& p : pairs) {
    const auto [at, fresh] = index.emplace(key(p), buckets.size());
    if (fresh) buckets.emplace_back();
    buckets[at->second].push_back(p);
  }
  std::vector<Group> groups;
  groups.reserve(buckets.size());
  for (auto& bucket : buckets) groups.push_back(summarise(std::move(bucket)));
  return groups;
}

Validation validate(Runner& runner, const std::vector<std::string>& files, const std::string& split) {
  Validation out;
  out.files = files;
  for (const auto& file : files) {
    const CsvTable table = CsvTable::read(file);
    if (is_network_table(table) && split == "fit") {
      skip(out, "report row", static_cast<std::int64_t>(table.rows()));
    } else if (is_network_table(table)) {
      predict_network_rows(runner, table, out);
    } else {
      throw UnsupportedError(
          file +
          ": this kind of table is not read yet; end-to-end tables (model,gpu,n_gpus,mode,seq,batch,...,e2e_ms) are");
    }
  }
  out.groups = group(out.pairs);
  return out;
}

}  // namespace voltaic::validation
