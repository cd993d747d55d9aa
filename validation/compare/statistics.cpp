// SPDX-License-Identifier: MIT
// Figures over many pairs: groups, pooled lines, and small errors that are none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>

#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

constexpr std::size_t kWorst = 10;
using Members = std::vector<const Pair*>;

/// The q-quantile of sorted values, interpolated between neighbours.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Fills the figures that groups and pooled lines share; `members` is not empty.
template <class Line>
void fill(Line& line, const Members& members) {
  line.rows = static_cast<std::int64_t>(members.size());
  const double n = static_cast<double>(members.size());
  std::vector<double> errors;
  errors.reserve(members.size());
  double inside = 0;
  for (const Pair* p : members) {
    errors.push_back(std::abs(p->error()));
    line.mape += errors.back();
    line.bias += p->error();
    inside += p->low <= p->measured && p->measured <= p->high ? 1 : 0;
    if (p->predicted > 0) line.interval_width += (p->high - p->low) / p->predicted;
  }
  line.mape /= n;
  line.bias /= n;
  line.interval_width /= n;
  line.interval_coverage = inside / n;
  std::sort(errors.begin(), errors.end());
  line.median_ape = quantile(errors, 0.5);
  line.p90_ape = quantile(errors, 0.9);
  if constexpr (requires { line.max_ape; }) line.max_ape = errors.back();
}

Group summarise(Members members) {
  Group g;
  const Pair& first = *members.front();
  g.gpu = first.gpu;
  g.op = first.op;
  g.dtype = first.dtype;
  g.mode = first.mode;
  g.origin = first.origin;
  g.unit = first.unit;
  fill(g, members);
  std::stable_sort(members.begin(), members.end(),
                   [](const Pair* a, const Pair* b) { return std::abs(a->error()) > std::abs(b->error()); });
  if (members.size() > kWorst) members.resize(kWorst);
  for (const Pair* p : members) g.worst.push_back(*p);
  return g;
}

/// A whole run, not one pass of it.
bool is_whole_network(const Pair& p) {
  return p.op == "network" && p.unit == Unit::seconds && !p.mode.ends_with(" forward") &&
         !p.mode.ends_with(" backward");
}

/// Buckets by a key, in order of first appearance.
template <class Key>
class Buckets {
 public:
  void add(Key key, const Pair& pair) {
    const auto [at, fresh] = index_.emplace(key, buckets_.size());
    if (fresh) buckets_.emplace_back(std::move(key), Members{});
    buckets_[at->second].second.push_back(&pair);
  }
  std::vector<std::pair<Key, Members>> take() { return std::move(buckets_); }

 private:
  std::map<Key, std::size_t> index_;
  std::vector<std::pair<Key, Members>> buckets_;
};

constexpr std::string_view kWholeNetworks = "whole networks";

constexpr std::size_t kOthers = 7;
/// The order in which families stand; others follow by name.
std::size_t rank(std::string_view family) {
  constexpr std::array<std::string_view, kOthers> kOrder{"pointwise",   "softmax and layer norm", "products",
                                                         "convolution", "network inference",      "network training",
                                                         kWholeNetworks};
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), family) - kOrder.begin());
}

}  // namespace

std::string_view to_string(Unit unit) {
  constexpr std::array<std::string_view, 3> kNames{"s", "w", "ratio"};
  return kNames[static_cast<std::size_t>(unit)];
}

std::vector<Group> group(const std::vector<Pair>& pairs) {
  Buckets<std::tuple<std::string, std::string, std::string, std::string, std::string, Unit>> buckets;
  for (const Pair& p : pairs) buckets.add({p.gpu, p.op, p.dtype, p.mode, p.origin, p.unit}, p);
  std::vector<Group> groups;
  for (auto& [key, members] : buckets.take()) groups.push_back(summarise(std::move(members)));
  return groups;
}

std::vector<Pooled> pool(const Validation& v) {
  using Key = std::pair<std::string, std::string>;
  Buckets<Key> buckets;
  for (const Pair& p : v.pairs) {
    if (!p.family.empty()) buckets.add({p.family, p.gpu}, p);
    if (is_whole_network(p)) buckets.add({std::string(kWholeNetworks), p.gpu}, p);
  }
  for (const Pair& p : v.pairs) {
    if (is_whole_network(p)) buckets.add({std::string(kWholeNetworks), "all"}, p);
  }
  // Published networks: over all GPUs too.
  for (const Pair& p : v.pairs) {
    if (is_whole_network(p) && !p.family.empty() && rank(p.family) == kOthers) buckets.add({p.family, "all"}, p);
  }
  auto filled = buckets.take();
  std::stable_sort(filled.begin(), filled.end(), [](const auto& a, const auto& b) {
    const auto ra = rank(a.first.first);
    const auto rb = rank(b.first.first);
    return ra != rb ? ra < rb : (ra == kOthers && a.first.first < b.first.first);
  });
  std::vector<Pooled> lines;
  for (const auto& [key, members] : filled) {
    Pooled line;
    line.name = key.first;
    line.gpu = key.second;
    fill(line, members);
    const auto missed = v.missed.find(key);
    line.rows_total = line.rows + (missed != v.missed.end() ? missed->second : 0);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<Ratio> ratios(const std::vector<RatioPair>& pairs) {
  std::vector<Ratio> lines;
  std::vector<std::vector<double>> errors;
  for (const RatioPair& p : pairs) {
    auto at = std::find_if(lines.begin(), lines.end(), [&](const Ratio& r) { return r.kind == p.kind; });
    if (at == lines.end()) {
      lines.push_back({p.kind});
      errors.emplace_back();
      at = lines.end() - 1;
    }
    errors[static_cast<std::size_t>(at - lines.begin())].push_back(std::abs(p.error()));
    ++at->pairs;
    at->mape += std::abs(p.error());
    at->bias += p.error();
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::sort(errors[i].begin(), errors[i].end());
    lines[i].mape /= static_cast<double>(lines[i].pairs);
    lines[i].bias /= static_cast<double>(lines[i].pairs);
    lines[i].median_ape = quantile(errors[i], 0.5);
    lines[i].p90_ape = quantile(errors[i], 0.9);
  }
  return lines;
}

std::vector<std::string> cancellations(const Validation& v) {
  constexpr double kSmall = 0.05;     // a network's error that would pass for a success
  constexpr double kLayers = 0.10;    // while its operations are wrong by this much of the time
  constexpr double kCancelled = 0.5;  // and more than half of that cancels
  std::vector<std::string> lines;
  for (const OpsError& e : v.ops_errors) {
    if (!(e.measured_s > 0)) continue;
    const double layers = e.absolute_s / e.measured_s;
    if (layers < kLayers || std::abs(e.signed_s) > kCancelled * e.absolute_s) continue;
    const std::string mode = e.mode == "train" ? "training" : "inference";
    const std::string label = network_label(e.model, e.seq, e.batch);
    for (const Pair& p : v.pairs) {
      if (p.op != "network" || p.gpu != e.gpu || p.mode != mode || p.label != label) continue;
      if (std::abs(p.error()) >= kSmall) continue;
      lines.push_back(fmt::format(
          "{} {} {}: error {:+.1f} % only because errors of its operations cancel: they add up to {:.1f} % of its time",
          p.gpu, p.mode, p.label, 100 * p.error(), 100 * layers));
    }
  }
  return lines;
}

}  // namespace voltaic::validation
