// SPDX-License-Identifier: MIT
#include "sim/report/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace voltaic::report {
namespace {

/// Three significant digits without an exponent for 1 <= |v| < 1000.
std::string three_digits(double v) {
  const double a = std::fabs(v);
  if (a >= 99.95) return fmt::format("{:.0f}", v);
  if (a >= 9.995) return fmt::format("{:.1f}", v);
  return fmt::format("{:.2f}", v);
}

struct Scaled {
  double value;
  const char* prefix;
};

/// Picks the prefix after rounding, so that 999.7 reads "1.00 k".
Scaled scale_up(double value) {
  static constexpr std::array<const char*, 9> kPrefixes{"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  std::size_t i = 0;
  while (std::fabs(value) >= 999.5 && i + 1 < kPrefixes.size()) {
    value /= 1000;
    ++i;
  }
  return {value, kPrefixes[i]};
}

}  // namespace

std::string format_time(Seconds t) {
  if (t.value == 0) return "0 s";
  const double a = std::fabs(t.value);
  if (a < 9.995e-7) return three_digits(t.value * 1e9) + " ns";
  if (a < 9.995e-4) return three_digits(t.value * 1e6) + " us";
  if (a < 0.9995) return three_digits(t.value * 1e3) + " ms";
  if (a < 999.5) return three_digits(t.value) + " s";
  return format_si(t.value, "s");
}

std::string format_gib(double bytes) {
  constexpr double kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
  const double a = std::fabs(bytes);
  if (a < kKiB) return fmt::format("{:.0f} B", bytes);
  if (a < kMiB) return three_digits(bytes / kKiB) + " KiB";
  if (a < 0.1 * kGiB) return three_digits(bytes / kMiB) + " MiB";
  return three_digits(bytes / kGiB) + " GiB";
}

std::string format_si(double value, const char* unit) {
  if (value == 0) return fmt::format("0 {}", unit);
  const Scaled s = scale_up(value);
  return fmt::format("{} {}{}", std::fabs(s.value) < 0.01 ? fmt::format("{:.3g}", s.value) : three_digits(s.value),
                     s.prefix, unit);
}

std::string format_percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string format_count(double n) {
  if (std::fabs(n) >= 1e6) {
    std::string text = format_si(n, "");
    return text;
  }
  std::string digits = fmt::format("{:.0f}", std::fabs(n));
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<std::size_t>(i), ",");
  return n < 0 ? "-" + digits : digits;
}

std::string format_ratio(double r) {
  return fmt::format("{:.2f}x", r);
}

}  // namespace voltaic::report
