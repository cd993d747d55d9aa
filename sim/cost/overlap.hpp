// SPDX-License-Identifier: MIT
// How legs of one kernel overlap: a p-norm, between the sum (p = 1) and the largest (p = infinity).
#pragma once

#include <algorithm>
#include <cmath>

namespace voltaic::cost {

/// (a^p + b^p)^(1/p) for non-negative a, b; never below the larger. Single precision serves: legs are known to a per
/// cent.
inline double smooth_max2(double a, double b, double p) {
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  if (!(low > 0)) return high;
  const auto power = static_cast<float>(p);
  const float excess = std::pow(static_cast<float>(low / high), power);
  return high * std::max(1.0F, std::pow(1 + excess, 1 / power));
}

inline double fourth(double x) {
  return x * x * x * x;
}
inline double fourth_root(double x) {
  return std::sqrt(std::sqrt(x));
}
/// The same for p = 4, in double precision: laws that are inverted.
inline double norm4(double a, double b) {
  return fourth_root(fourth(a) + fourth(b));
}

/// The same for p = 6, without a power where one leg hides the other.
inline double smooth_max6(double a, double b) {
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  if (!(low > 0)) return high;
  const double ratio = low / high;
  const double sixth = ratio * ratio * ratio * ratio * ratio * ratio;
  return sixth < 1e-6 ? high : high * static_cast<double>(std::pow(static_cast<float>(1 + sixth), 1.0F / 6));
}

}  // namespace voltaic::cost
