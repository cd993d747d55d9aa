// SPDX-License-Identifier: MIT
// A validation as one HTML page: no scripts, nothing loaded from elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/units.hpp"
#include "validation/compare/format.hpp"
#include "validation/compare/svg_plot.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

constexpr const char* kPageCss = R"(
body{margin:0 auto;max-width:1360px;padding:24px;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 8px}h3{font-size:16px;margin:0}
p{margin:4px 0;color:var(--soft)}.warning{color:var(--twenty)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid var(--grid)}
th{color:var(--soft);font-weight:600;position:sticky;top:0;background:var(--paper)}
.l{text-align:left}.scroll{overflow-x:auto;max-height:560px;overflow-y:auto}
.card{background:var(--panel);border-radius:8px;padding:14px 16px;margin:14px 0}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:12px;margin-top:8px}
)";

/// A table; the first `left` columns hold words.
class Table {
 public:
  Table(std::initializer_list<const char*> columns, std::size_t left) : left_(left) {
    html_ = "<div class=\"scroll\"><table><thead><tr>";
    std::size_t i = 0;
    for (const char* c : columns) html_ += fmt::format("<th{}>{}</th>", i++ < left_ ? " class=\"l\"" : "", c);
    html_ += "</tr></thead><tbody>\n";
  }
  void row(const std::vector<std::string>& cells) {
    html_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      html_ += fmt::format("<td{}>{}</td>", i < left_ ? " class=\"l\"" : "", escape(cells[i]));
    }
    html_ += "</tr>\n";
  }
  std::string take() { return std::move(html_) + "</tbody></table></div>\n"; }

 private:
  std::string html_;
  std::size_t left_;
};

std::string pooled_table(const Validation& v) {
  Table table({"family", "gpu", "rows", "of", "mean %", "median %", "p90 %", "worst %", "bias %", "in interval %",
               "interval width %"},
              2);
  for (const Pooled& p : v.pooled) {
    table.row({p.name, p.gpu, std::to_string(p.rows), std::to_string(p.rows_total), percent(p.mape),
               percent(p.median_ape), percent(p.p90_ape), percent(p.max_ape), signed_percent(p.bias),
               percent(p.interval_coverage), percent(p.interval_width)});
  }
  return table.take();
}

std::string group_table(const Validation& v) {
  Table table({"gpu", "op", "dtype", "mode", "origin", "rows", "mean %", "median %", "p90 %", "bias %", "in interval %",
               "interval width %"},
              5);
  for (const Group& g : v.groups) {
    table.row({g.gpu, g.op, g.dtype, g.mode, g.origin, std::to_string(g.rows), percent(g.mape), percent(g.median_ape),
               percent(g.p90_ape), signed_percent(g.bias), percent(g.interval_coverage), percent(g.interval_width)});
  }
  return table.take();
}

std::string worst_table(const std::vector<const Pair*>& members) {
  constexpr std::size_t kRows = 10;
  std::vector<const Pair*> worst = members;
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Pair* a, const Pair* b) { return std::abs(a->error()) > std::abs(b->error()); });
  Table table({"op", "mode", "origin", "row", "what the model holds responsible", "measured", "predicted", "error %"},
              5);
  for (std::size_t i = 0; i < std::min(kRows, worst.size()); ++i) {
    const Pair& p = *worst[i];
    table.row({p.op, p.mode, p.origin, p.label, p.explanation, figure(p.measured, p.unit), figure(p.predicted, p.unit),
               signed_percent(p.error())});
  }
  return "<details><summary>worst rows</summary>" + table.take() + "</details>";
}

/// The pooled line's own rows.
std::vector<const Pair*> members_of(const Validation& v, const Pooled& line) {
  std::vector<const Pair*> members;
  for (const Pair& p : v.pairs) {
    if (p.family == line.name && p.gpu == line.gpu) members.push_back(&p);
  }
  return members;
}

/// Axis of "error by size": one unit per family, products and convolutions counted by their arithmetic.
std::string unit_of(const Pooled& line) {
  const bool flop = line.name.find("products") != std::string::npos || line.name.starts_with("convolution");
  return flop ? "FLOP" : (line.name.starts_with("traced") ? "FLOP or bytes" : "bytes");
}

/// What the axes hold, and its unit. Figures of one family share it.
std::pair<const char*, const char*> axis_of(Unit unit) {
  switch (unit) {
    case Unit::watts: return {"power", "W"};
    case Unit::ratio: return {"time ratio", ""};
    default: return {"time", "s"};
  }
}

std::string card(const Validation& v, const Pooled& line) {
  const auto members = members_of(v, line);
  if (members.empty()) return "";
  std::vector<PlotPoint> points;
  points.reserve(members.size());
  for (const Pair* p : members) points.push_back({p->measured, p->predicted, p->size, p->fit});
  std::string out = fmt::format("<section class=\"card\"><h3>{}, {}</h3>", escape(line.name), escape(line.gpu));
  out += fmt::format(
      "<p>{} rows of {}: mean error {} %, p90 {} %, bias {} %; {} % inside the 90 % interval</p><div class=\"plots\">",
      line.rows, line.rows_total, percent(line.mape), percent(line.p90_ape), signed_percent(line.bias),
      percent(line.interval_coverage));
  const auto [what, unit] = axis_of(members.front()->unit);
  out += scatter_svg(points, what, unit) + error_by_size_svg(points, unit_of(line), what, unit) + histogram_svg(points);
  return out + "</div>" + worst_table(members) + "</section>\n";
}

}  // namespace

std::string validation_html(const Validation& v) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
      "<title>Voltaic: predicted against measured</title><style>";
  out += plot_css();
  out += kPageCss;
  out += "</style></head><body>\n<h1>Predicted against measured</h1>\n";
  out += fmt::format(
      "<p>{} of {} measured figures predicted, split: {}. Errors are (predicted - measured) / measured.</p>\n",
      v.pairs.size(), v.asked(), escape(v.options.split));
  for (const auto& warning : v.warnings) out += fmt::format("<p class=\"warning\">{}</p>\n", escape(warning));
  out += "<h2>By family</h2>\n" + pooled_table(v);
  for (const Pooled& line : v.pooled) out += card(v, line);
  out += "<h2>By group</h2>\n" + group_table(v);
  if (!v.skipped.empty()) {
    Table table({"skipped because", "rows"}, 1);
    for (const auto& [reason, rows] : v.skipped) table.row({reason, std::to_string(rows)});
    out += "<h2>Skipped</h2>\n" + table.take();
  }
  return out + "</body></html>\n";
}

}  // namespace voltaic::validation
