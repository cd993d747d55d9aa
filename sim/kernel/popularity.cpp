// SPDX-License-Identifier: MIT
#include "sim/kernel/popularity.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace voltaic::kernel {

namespace {

/// Rows of about the same popularity.
struct Class {
  double rows = 0;
  double probability = 0;  ///< Of each row.
};

/// Integral of x^-s.
double mass_between(double from, double to, double s) {
  if (std::abs(s - 1) < 1e-9) return std::log(to / from);
  return (std::pow(to, 1 - s) - std::pow(from, 1 - s)) / (1 - s);
}

std::vector<Class> classes_of(const Lookups& l) {
  if (!(l.exponent > 0)) return {{l.rows, 1 / l.rows}};
  constexpr double kSingle = 64;
  constexpr double kGrowth = 1.1;
  std::vector<Class> classes;
  double total = 0;
  for (double rank = 1; rank <= std::min(kSingle, l.rows); ++rank) {
    classes.push_back({1, std::pow(rank, -l.exponent)});
    total += classes.back().probability;
  }
  for (double last = kSingle; last < l.rows;) {
    const double before = last;
    last = std::min(l.rows, std::floor(last * kGrowth));
    const double mass = mass_between(before + 0.5, last + 0.5, l.exponent);
    classes.push_back({last - before, mass / (last - before)});
    total += mass;
  }
  for (Class& c : classes) c.probability /= total;
  return classes;
}

/// Rows met in `count` lookups.
double distinct_rows(const std::vector<Class>& classes, double count) {
  double rows = 0;
  for (const Class& c : classes) {
    rows += c.probability < 1 ? c.rows * -std::expm1(count * std::log1p(-c.probability)) : c.rows;
  }
  return rows;
}

/// Rows met at Poisson times of rate p for as long as `count` lookups take.
double resident_rows(const std::vector<Class>& classes, double count) {
  double rows = 0;
  for (const Class& c : classes) rows += c.rows * -std::expm1(-c.probability * count);
  return rows;
}

/// The lookups for which a row stays cached.
double residence(const std::vector<Class>& classes, double cached, double most) {
  if (resident_rows(classes, most) <= cached) return most;
  double low = 0;
  double high = most;
  for (int i = 0; i < 60 && high - low > 1e-9 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (resident_rows(classes, middle) > cached ? high : low) = middle;
  }
  return low;
}

}  // namespace

RowTraffic row_traffic(const Lookups& lookups, double cached_rows) {
  if (!(lookups.rows >= 1) || !(lookups.count > 0)) return {};
  const std::vector<Class> classes = classes_of(lookups);
  const auto at_most = [&](double rows) { return std::min({rows, lookups.rows, lookups.count}); };
  RowTraffic t;
  t.distinct = at_most(distinct_rows(classes, lookups.count));
  const double stay = residence(classes, std::max(0.0, cached_rows), lookups.count);
  double missing = 0;
  for (const Class& c : classes) missing += c.rows * c.probability * std::exp(-c.probability * stay);
  t.fetched = distinct_rows(classes, stay) + std::max(0.0, lookups.count - stay) * missing;
  t.fetched = std::clamp(t.fetched, t.distinct, lookups.count);
  return t;
}

}  // namespace voltaic::kernel
