// SPDX-License-Identifier: MIT
// How legs of one kernel overlap: a p-norm, between the sum (p = 1) and the largest (p = infinity).
#pragma once

#include <algorithm>
#include <cmath>

namespace voltaic::cost {

/// (a^p + b^p)^(1/p) for non-negative a, b; never below the larger. Single precision serves: legs are known to a per cent.
inline double smooth_max2(double a, double b, double p) {
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  if (!(low > 0)) return high;
  const auto power = static_cast<float>(p);
  const float excess = std::pow(static_cast<float>(low / high), power);
  return high * std::max(1.0F, std::pow(1 + excess, 1 / power));
}

}  // namespace voltaic::cost
