// SPDX-License-Identifier: MIT
// How legs of one kernel overlap: a p-norm, between the sum (p = 1) and the largest (p = infinity).
#pragma once

#include <algorithm>
#include <cmath>

namespace voltaic::cost {

/// (a^p + b^p)^(1/p) for non-negative a, b; never below the larger.
inline double smooth_max2(double a, double b, double p) {
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  if (!(low > 0)) return high;
  const double ratio = low / high;
  return high * std::pow(1 + std::pow(ratio, p), 1 / p);
}

}  // namespace voltaic::cost
