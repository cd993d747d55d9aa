// SPDX-License-Identifier: MIT
#include "arch/quantity_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "arch/units/error.hpp"

namespace voltaic::arch {
namespace {

/// How one dimension is written. `units` are spellings with their size in base units; prefixes go before `prefixed`.
struct Dimension {
  std::string_view suffix;
  std::string_view words;    ///< For errors.
  std::string_view example;  ///< For errors.
  std::array<std::string_view, 6> prefixed;
  bool binary;  ///< Also Ki, Mi, Gi, Ti.
};

constexpr std::array<Dimension, 11> kDimensions{{
    {"", "a plain number", "108", {"%"}, false},
    {"bytes", "bytes", "80GB", {"B", "bytes"}, true},
    {"bytes_per_s", "bytes per second", "2.4TB/s", {"B/s", "Bps"}, true},
    {"hz", "a frequency", "1410MHz", {"Hz", "hz"}, false},
    {"s", "a time", "500ns", {"s"}, false},
    {"w", "a power", "400W", {"W"}, false},
    {"j", "an energy", "12J", {"J"}, false},
    {"cycles", "cycles", "212cycles", {"cycles", "cycle", "clk"}, false},
    {"flop", "operations", "2GFLOP", {"FLOP", "OP"}, false},
    {"flop_per_s", "operations per second", "19.5TFLOP/s", {"FLOP/s", "FLOPS", "flops", "OP/s", "OPS"}, false},
    {"usd", "US dollars", "3.06USD", {"USD", "usd", "$", "USD/h"}, false},
}};

const Dimension& dimension(std::string_view suffix) {
  for (const auto& d : kDimensions) {
    if (d.suffix == suffix) return d;
  }
  return kDimensions[0];
}

std::optional<double> prefix_factor(std::string_view prefix, bool binary) {
  struct Prefix {
    std::string_view text;
    double factor;
  };
  static constexpr std::array<Prefix, 12> kSi{{{"", 1},
                                               {"k", 1e3},
                                               {"K", 1e3},
                                               {"M", 1e6},
                                               {"G", 1e9},
                                               {"T", 1e12},
                                               {"P", 1e15},
                                               {"m", 1e-3},
                                               {"u", 1e-6},
                                               {"\u00b5", 1e-6},
                                               {"n", 1e-9},
                                               {"p", 1e-12}}};
  static constexpr std::array<Prefix, 5> kBinary{
      {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}}};
  for (const auto& p : kSi) {
    if (p.text == prefix) return p.factor;
  }
  if (!binary) return std::nullopt;
  for (const auto& p : kBinary) {
    if (p.text == prefix) return p.factor;
  }
  return std::nullopt;
}

std::optional<double> unit_factor(std::string_view unit, const Dimension& d) {
  if (unit.empty()) return 1.0;
  if (d.suffix.empty()) return unit == "%" ? std::optional<double>(0.01) : std::nullopt;
  if (d.suffix == "s" && unit == "min") return 60.0;
  if (d.suffix == "s" && unit == "h") return 3600.0;
  for (const auto& base : d.prefixed) {
    if (base.empty() || !unit.ends_with(base)) continue;
    if (const auto factor = prefix_factor(unit.substr(0, unit.size() - base.size()), d.binary)) return factor;
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Three significant digits at least, never fewer than the integer part has: 1.56, 40.0, 312, 1024.
std::string three_digits(double v) {
  const double a = std::fabs(v);
  if (a >= 99.95) return fmt::format("{:.0f}", v);
  return a >= 9.995 ? fmt::format("{:.1f}", v) : fmt::format("{:.2f}", v);
}

std::string with_prefix(double value, std::string_view unit, double step,
                        const std::array<std::string_view, 6>& names) {
  std::size_t i = 0;
  while (i + 1 < names.size() && std::fabs(value) >= step * 0.9995) {
    value /= step;
    ++i;
  }
  if (std::fabs(value) >= 1e7) return fmt::format("{:.3g} {}{}", value, names[i], unit);
  return fmt::format("{} {}{}", three_digits(value), names[i], unit);
}

std::string format_time(double s) {
  const double a = std::fabs(s);
  if (a == 0) return "0 s";
  if (a < 0.9995e-6) return three_digits(s * 1e9) + " ns";
  if (a < 0.9995e-3) return three_digits(s * 1e6) + " us";
  if (a < 0.9995) return three_digits(s * 1e3) + " ms";
  return a < 1e7 ? three_digits(s) + " s" : fmt::format("{:.3g} s", s);
}

std::string format_plain(double v) {
  if (v == std::nearbyint(v) && std::fabs(v) < 1e15) return fmt::format("{:.0f}", v);
  return fmt::format("{:.4g}", v);
}

}  // namespace

double parse_quantity(std::string_view text, std::string_view unit_suffix) {
  const Dimension& d = dimension(unit_suffix);
  std::string_view rest = trimmed(text);
  if (rest.starts_with('+')) rest.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const auto refuse = [&]() {
    return UsageError(fmt::format("expected {} (such as {}), got \"{}\"", d.words, d.example, one_line(text, 60)));
  };
  if (error != std::errc{} || !std::isfinite(number)) throw refuse();
  const std::string_view unit = trimmed(rest.substr(static_cast<std::size_t>(end - rest.data())));
  const auto factor = unit_factor(unit, d);
  if (!factor || !std::isfinite(number * *factor)) throw refuse();
  return number * *factor;
}

std::string format_quantity(double value, std::string_view unit_suffix) {
  static constexpr std::array<std::string_view, 6> kSi{"", "K", "M", "G", "T", "P"};
  static constexpr std::array<std::string_view, 6> kSmallK{"", "k", "M", "G", "T", "P"};
  static constexpr std::array<std::string_view, 6> kBinary{"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  if (!std::isfinite(value)) return "n/a";
  if (unit_suffix == "bytes") {
    return std::fabs(value) < 1024 ? format_plain(value) + " B" : with_prefix(value, "B", 1024, kBinary);
  }
  if (unit_suffix == "bytes_per_s") return with_prefix(value, "B/s", 1000, kSi);
  if (unit_suffix == "hz") return with_prefix(value, "Hz", 1000, kSmallK);
  if (unit_suffix == "flop_per_s") return with_prefix(value, "FLOP/s", 1000, kSmallK);
  if (unit_suffix == "flop") return with_prefix(value, "FLOP", 1000, kSmallK);
  if (unit_suffix == "s") return format_time(value);
  if (unit_suffix == "w") return with_prefix(value, "W", 1000, kSmallK);
  if (unit_suffix == "j") return with_prefix(value, "J", 1000, kSmallK);
  if (unit_suffix == "cycles") return format_plain(value) + " cycles";
  if (unit_suffix == "usd") return fmt::format("{:.2f} USD", value);
  return format_plain(value);
}

}  // namespace voltaic::arch
