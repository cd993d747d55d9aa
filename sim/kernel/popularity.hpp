// SPDX-License-Identifier: MIT
// Which rows of a table lookups meet, from their popularity alone: how many are distinct, how often a cache holds them.
#pragma once

namespace voltaic::kernel {

/// `count` independent lookups into `rows` rows, row i (from 1) chosen with probability p_i = i^-exponent / sum of
/// those (Zipf); exponent 0 is uniform.
struct Lookups {
  double rows = 1;
  double count = 1;
  double exponent = 0;
};

struct RowTraffic {
  double distinct = 0;  ///< Rows met at least once: sum of 1 - (1 - p_i)^count.
  double fetched = 0;   ///< Rows that come from beyond the cache, first meetings included.
};

/// Expected traffic through an LRU cache of `cached_rows`, empty at first. By Che's approximation [Che02] a row stays
/// cached for T lookups, with T from cached_rows = sum of 1 - exp(-p_i T):
///     fetched = distinct(min(count, T)) + max(0, count - T) * sum of p_i exp(-p_i T)
/// Sums run over single ranks at first, then over ranges of ranks that grow by a tenth.
RowTraffic row_traffic(const Lookups& lookups, double cached_rows);

}  // namespace voltaic::kernel
