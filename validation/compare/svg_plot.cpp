// SPDX-License-Identifier: MIT
#include "validation/compare/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace voltaic::validation {
namespace {

constexpr double kWidth = 420, kHeight = 320;
constexpr double kLeft = 62, kRight = 14, kTop = 30, kBottom = 46;
constexpr double kMostError = 0.5;  ///< Edge of the error axes.

struct Tick {
  double value;
  std::string label;  ///< Empty: a mark alone.
};

/// Maps values to pixels between `from` and `to`.
struct Axis {
  double low = 0, high = 1;
  bool log = false;
  double from = 0, to = 1;
  std::vector<Tick> ticks;

  double at(double value) const {
    const double share = log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + std::clamp(share, 0.0, 1.0) * (to - from);
  }
};

/// "1 us", "20 ms", "5 GFLOP": a round number with its SI prefix.
std::string si(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 11> kPrefixes{"n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Z"};
  const int decade = static_cast<int>(std::floor(std::log10(value) + 1e-9));
  const int step = std::clamp(static_cast<int>(std::floor(decade / 3.0)), -3, 7);
  const auto prefix = kPrefixes[static_cast<std::size_t>(step) + 3];
  return fmt::format("{:.3g} {}{}", value / std::pow(10.0, 3 * step), prefix == "u" ? "µ" : prefix, unit);
}

/// A logarithmic axis over [low, high], widened to round numbers. Few decades are marked at 1, 2 and 5, many at every
/// second or third.
Axis log_axis(double low, double high, double from, double to, std::string_view unit) {
  Axis axis;
  axis.log = true;
  axis.from = from;
  axis.to = to;
  axis.low = low / 1.15;
  axis.high = high * 1.15;
  const double decades = std::log10(axis.high / axis.low);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / 6)));
  for (int d = static_cast<int>(std::floor(std::log10(axis.low)));
       d <= static_cast<int>(std::ceil(std::log10(axis.high))); ++d) {
    for (const int digit : {1, 2, 5}) {
      const double value = digit * std::pow(10.0, d);
      if (value < axis.low || value > axis.high) continue;
      const bool named = digit == 1 ? d % every == 0 : decades < 2.2;
      axis.ticks.push_back({value, named ? si(value, unit) : ""});
    }
  }
  return axis;
}

Axis error_axis(double from, double to) {
  Axis axis{-kMostError, kMostError, false, from, to, {}};
  for (const double v : {-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5}) {
    const bool named = std::abs(v) < 0.01 || std::abs(std::abs(v) - 0.2) < 0.01 || std::abs(std::abs(v) - 0.4) < 0.01;
    axis.ticks.push_back({v, named ? fmt::format("{:+.0f} %", 100 * v) : ""});
  }
  for (Tick& t : axis.ticks) {
    if (t.label == "+0 %" || t.label == "-0 %") t.label = "0";
  }
  return axis;
}

std::string line(const char* css, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", css, x1, y1, x2,
                     y2);
}

std::string text(const char* css, double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", css, x, y, anchor,
                     words);
}

/// Grid, ticks, titles.
std::string frame(const Axis& x, const Axis& y, std::string_view x_title, std::string_view y_title) {
  std::string out;
  const double bottom = kHeight - kBottom;
  for (const Tick& t : x.ticks) {
    out += line("grid", x.at(t.value), kTop, x.at(t.value), bottom);
    if (!t.label.empty()) out += text("tick", x.at(t.value), bottom + 15, "middle", t.label);
  }
  for (const Tick& t : y.ticks) {
    out += line("grid", kLeft, y.at(t.value), kWidth - kRight, y.at(t.value));
    if (!t.label.empty()) out += text("tick", kLeft - 6, y.at(t.value) + 3.5, "end", t.label);
  }
  out += fmt::format("<path class=\"axis\" d=\"M{} {}V{}H{}\"/>", kLeft, kTop, bottom, kWidth - kRight);
  out += text("title", (kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", x_title);
  out += fmt::format(
      "<text class=\"title\" text-anchor=\"middle\" transform=\"translate(13 {:.1f}) rotate(-90)\">{}</text>",
      (kTop + bottom) / 2, y_title);
  return out;
}

std::string svg(std::string_view label, const std::string& content) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>", kWidth, kHeight, label,
                     content);
}

double size_of(const PlotPoint& p) {
  return p.size > 0 ? p.size : p.measured;
}

using Dot = std::pair<int, int>;  ///< In half pixels.

/// Dots that differ on the screen; of more than `limit` every n-th by place.
std::vector<Dot> dots_of(const std::vector<PlotPoint>& points, bool fit, const Axis& x, const Axis& y, bool error,
                         std::size_t limit) {
  std::set<Dot> distinct;
  for (const PlotPoint& p : points) {
    if (p.fit != fit) continue;
    const double along = error ? size_of(p) : p.measured;
    const double up = error ? p.error() : p.predicted;
    distinct.emplace(static_cast<int>(std::lround(2 * x.at(along))), static_cast<int>(std::lround(2 * y.at(up))));
  }
  std::vector<Dot> all(distinct.begin(), distinct.end());
  if (all.size() <= limit) return all;
  std::vector<Dot> kept;
  for (std::size_t i = 0; i < limit; ++i) kept.push_back(all[i * all.size() / limit]);
  return kept;
}

bool has(const std::vector<PlotPoint>& points, bool fit) {
  return std::any_of(points.begin(), points.end(), [&](const PlotPoint& p) { return p.fit == fit; });
}

std::string dots(const std::vector<PlotPoint>& points, const Axis& x, const Axis& y, bool error) {
  std::string out;
  const std::size_t limit = has(points, true) && has(points, false) ? kMostPoints / 2 : kMostPoints;
  for (const bool fit : {true, false}) {
    const auto drawn = dots_of(points, fit, x, y, error, limit);
    if (drawn.empty()) continue;
    // Round caps of strokes without length: a dot in a few bytes.
    std::string path;
    for (const auto& [px, py] : drawn) path += fmt::format("M{:g} {:g}h0", px / 2.0, py / 2.0);
    const bool few = drawn.size() < 100;
    const double size = few ? 7 : (drawn.size() < 800 ? 4 : 2.4);
    out += fmt::format("<path class=\"{}{}\" stroke-width=\"{}\" d=\"{}\"/>", fit ? "fit" : "report", few ? " few" : "",
                       size, path);
  }
  return out;
}

/// Line of a constant factor between prediction and measurement, cut at the frame.
std::string ratio_line(const Axis& x, const Axis& y, double ratio, const char* css) {
  const double low = std::max(x.low, y.low / ratio);
  const double high = std::min(x.high, y.high / ratio);
  if (!(high > low)) return "";
  return line(css, x.at(low), y.at(low * ratio), x.at(high), y.at(high * ratio));
}

/// What the marks mean, above the frame.
std::string legend(const std::vector<PlotPoint>& points, bool lines) {
  std::string out;
  double at = kLeft + 6;
  const auto entry = [&](const std::string& mark, std::string_view words, double width) {
    out += mark + text("legend", at + 16, kTop - 10, "start", words);
    at += width;
  };
  const auto dot = [&](const char* css) {
    return fmt::format("<path class=\"{}\" stroke-width=\"7\" d=\"M{:.1f} {:.1f}h0\"/>", css, at + 7, kTop - 13.5);
  };
  const auto stroke = [&](const char* css) { return line(css, at, kTop - 13.5, at + 13, kTop - 13.5); };
  if (has(points, false)) entry(dot("report few"), "report rows", 86);
  if (has(points, true)) entry(dot("fit few"), "fit rows", 68);
  if (lines) {
    entry(stroke("identity"), "equal", 54);
    entry(stroke("ten"), "10 %", 52);
    entry(stroke("twenty"), "20 %", 52);
  }
  return out;
}

std::pair<double, double> range(const std::vector<PlotPoint>& points, double (*of)(const PlotPoint&)) {
  double low = of(points.front());
  double high = low;
  for (const PlotPoint& p : points) {
    low = std::min(low, of(p));
    high = std::max(high, of(p));
  }
  return {low, high};
}

}  // namespace

std::string scatter_svg(const std::vector<PlotPoint>& points, const char* what, const char* unit) {
  if (points.empty()) return "";
  const auto [x_low, x_high] = range(points, [](const PlotPoint& p) { return p.measured; });
  // A prediction of nothing has no place on a logarithmic axis; it stands at the lower edge.
  const auto [y_low, y_high] =
      range(points, [](const PlotPoint& p) { return std::max(p.predicted, 0.1 * p.measured); });
  const double low = std::min(x_low, y_low);
  const double high = std::max(x_high, y_high);
  const Axis x = log_axis(low, high, kLeft, kWidth - kRight, unit);
  const Axis y = log_axis(low, high, kHeight - kBottom, kTop, unit);
  std::vector<PlotPoint> drawn = points;
  for (PlotPoint& p : drawn) p.predicted = std::max(p.predicted, low);
  std::string body = frame(x, y, "measured", "predicted");
  body += ratio_line(x, y, 1.2, "twenty") + ratio_line(x, y, 1 / 1.2, "twenty");
  body += ratio_line(x, y, 1.1, "ten") + ratio_line(x, y, 1 / 1.1, "ten");
  body += dots(drawn, x, y, false) + ratio_line(x, y, 1, "identity");
  return svg(fmt::format("predicted against measured {}", what), body + legend(points, true));
}

std::string error_by_size_svg(const std::vector<PlotPoint>& points, const std::string& size_unit, const char* what,
                              const char* unit) {
  if (points.empty()) return "";
  const bool sized = std::any_of(points.begin(), points.end(), [](const PlotPoint& p) { return p.size > 0; });
  const auto [low, high] = range(points, size_of);
  const Axis x = log_axis(low, high, kLeft, kWidth - kRight, sized ? (size_unit == "bytes" ? "B" : size_unit) : unit);
  const Axis y = error_axis(kHeight - kBottom, kTop);
  std::string body = frame(x, y, sized ? size_unit : fmt::format("measured {}", what), "error");
  for (const double v : {-0.2, 0.2}) body += line("twenty", kLeft, y.at(v), kWidth - kRight, y.at(v));
  for (const double v : {-0.1, 0.1}) body += line("ten", kLeft, y.at(v), kWidth - kRight, y.at(v));
  body += dots(points, x, y, true) + line("identity", kLeft, y.at(0), kWidth - kRight, y.at(0));
  return svg("error by size", body + legend(points, true));
}

std::string histogram_svg(const std::vector<PlotPoint>& points) {
  if (points.empty()) return "";
  constexpr std::size_t kBins = 40;
  std::array<double, kBins> share{};
  for (const PlotPoint& p : points) {
    const double at = (std::clamp(p.error(), -kMostError, kMostError) + kMostError) / (2 * kMostError) * kBins;
    share[std::min(static_cast<std::size_t>(at), kBins - 1)] += 1.0 / static_cast<double>(points.size());
  }
  const double most = *std::max_element(share.begin(), share.end());
  const Axis x = error_axis(kLeft, kWidth - kRight);
  Axis y{0, 1.05 * most, false, kHeight - kBottom, kTop, {}};
  const double step = most > 0.4 ? 0.2 : (most > 0.2 ? 0.1 : (most > 0.1 ? 0.05 : 0.02));
  for (int i = 0; i * step <= y.high; ++i) y.ticks.push_back({i * step, fmt::format("{:.0f} %", 100 * i * step)});
  std::string body = frame(x, y, "error", "share of rows");
  const double width = (x.to - x.from) / kBins;
  for (std::size_t i = 0; i < kBins; ++i) {
    if (!(share[i] > 0)) continue;
    const double top = y.at(share[i]);
    body += fmt::format("<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>",
                        x.from + width * static_cast<double>(i) + 0.5, top, width - 1, y.from - top);
  }
  for (const double v : {-0.2, 0.2}) body += line("twenty", x.at(v), kTop, x.at(v), kHeight - kBottom);
  for (const double v : {-0.1, 0.1}) body += line("ten", x.at(v), kTop, x.at(v), kHeight - kBottom);
  return svg("histogram of errors", body + line("identity", x.at(0), kTop, x.at(0), kHeight - kBottom));
}

std::string plot_css() {
  return R"(
:root{--paper:#ffffff;--panel:#f6f7f9;--ink:#1c2430;--soft:#5b6675;--grid:#e3e7ec;--rule:#c3cad3;
--report:#1f6fc4;--fit:#e08a1e;--equal:#1c2430;--ten:#2a9d5c;--twenty:#c4453c}
@media (prefers-color-scheme:dark){:root{--paper:#12161c;--panel:#1a2029;--ink:#e4e9f0;--soft:#98a4b3;--grid:#28303b;
--rule:#3c4654;--report:#62a8f0;--fit:#f0b35a;--equal:#e4e9f0;--ten:#52c98a;--twenty:#ee7a70}}
svg{width:100%;height:auto;font:11px system-ui,sans-serif;display:block}
.grid{stroke:var(--grid)}.axis{stroke:var(--rule);fill:none}
.tick{fill:var(--soft)}.title{fill:var(--ink);font-size:12px}.legend{fill:var(--ink)}
.report,.fit{fill:none;stroke-linecap:round}.report{stroke:var(--report);stroke-opacity:.55}
.fit{stroke:var(--fit);stroke-opacity:.4}.few{stroke-opacity:.9}.bar{fill:var(--report)}
.identity{stroke:var(--equal);stroke-width:1.2}.ten{stroke:var(--ten);stroke-width:1.1;stroke-dasharray:5 3}
.twenty{stroke:var(--twenty);stroke-width:1.1;stroke-dasharray:2 3}
)";
}

}  // namespace voltaic::validation
