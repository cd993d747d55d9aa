// SPDX-License-Identifier: MIT
// A validation as a page for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/text_table.hpp"
#include "sim/report/units.hpp"
#include "validation/compare/format.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

using report::Align;
using report::TextTable;

constexpr std::size_t kWorstOnPage = 3;

std::string every_row(const Validation& v, const report::PageStyle& style) {
  TextTable table;
  table.column("gpu", Align::left);
  table.column("op", Align::left);
  table.column("mode", Align::left);
  table.column("row", Align::left, true);
  table.column("measured");
  table.column("predicted");
  table.column("error %");
  for (const auto& p : v.pairs)
    table.row({p.gpu, p.op, p.mode, p.label, figure(p.measured, p.unit), figure(p.predicted, p.unit),
               signed_percent(p.error())});
  return table.render(style) + "\n";
}

/// GPUs in order of first appearance.
std::vector<std::string> gpus_of(const Validation& v) {
  std::vector<std::string> names;
  for (const auto& g : v.groups) {
    if (std::find(names.begin(), names.end(), g.gpu) == names.end()) names.push_back(g.gpu);
  }
  return names;
}

std::string groups(const Validation& v, const std::string& gpu, const report::PageStyle& style) {
  const bool types = std::any_of(v.groups.begin(), v.groups.end(), [](const Group& g) { return g.dtype != "fp32"; });
  TextTable table;
  table.column("gpu", Align::left);
  table.column("op", Align::left);
  if (types) table.column("dtype", Align::left);
  table.column("mode", Align::left);
  table.column("origin", Align::left, true);
  for (const char* name : {"rows", "mean", "median", "p90", "bias", "in", "width"}) table.column(name);
  for (const auto& g : v.groups) {
    if (g.gpu != gpu) continue;
    std::vector<std::string> cells{g.gpu, g.op};
    if (types) cells.push_back(g.dtype);
    for (auto& cell :
         {g.mode, g.origin, std::to_string(g.rows), percent(g.mape), percent(g.median_ape), percent(g.p90_ape),
          signed_percent(g.bias), percent(g.interval_coverage), percent(g.interval_width)})
      cells.push_back(cell);
    table.row(std::move(cells));
  }
  return table.render(style) + "\n";
}

std::string heading(const Group& g) {
  return fmt::format("{} {}{} {}{}", g.gpu, g.op, g.dtype == "fp32" ? "" : " " + g.dtype, g.mode,
                     g.origin.empty() ? "" : " (" + g.origin + ")");
}

/// The rows that say most about what a group's error is made of. Of many groups, those that are large enough to judge.
std::string worst(const Validation& v, const report::PageStyle& style) {
  constexpr std::size_t kManyGroups = 40;
  constexpr std::int64_t kFewRows = 20;
  std::int64_t left_out = 0;
  std::string out = "worst rows, and what the model holds responsible for their time\n";
  for (const auto& g : v.groups) {
    if (v.groups.size() > kManyGroups && g.rows < kFewRows) {
      ++left_out;
      continue;
    }
    out += heading(g) + "\n";
    for (std::size_t i = 0; i < std::min(kWorstOnPage, g.worst.size()); ++i) {
      const Pair& p = g.worst[i];
      out += report::wrap(fmt::format("{} %: {}: measured {}, predicted {}; {}", signed_percent(p.error()), p.label,
                                      figure(p.measured, p.unit), figure(p.predicted, p.unit), p.explanation),
                          style.width, "  ");
    }
  }
  if (left_out > 0) out += fmt::format("{} groups of fewer than {} rows: see --json\n", left_out, kFewRows);
  return out + "\n";
}

std::string pooled(const Validation& v, const report::PageStyle& style) {
  TextTable table;
  table.column("family", Align::left, true);
  table.column("gpu", Align::left);
  for (const char* name : {"rows", "of", "mean", "median", "p90", "worst", "bias", "in", "width"}) table.column(name);
  std::string_view last;
  for (const auto& p : v.pooled) {
    if (!last.empty() && last != p.name) table.rule();
    last = p.name;
    table.row({p.name, p.gpu, std::to_string(p.rows), std::to_string(p.rows_total), percent(p.mape),
               percent(p.median_ape), percent(p.p90_ape), percent(p.max_ape), signed_percent(p.bias),
               percent(p.interval_coverage), percent(p.interval_width)});
  }
  return table.render(style);
}

/// Speed-ups between published rows.
std::string speedups(const Validation& v, const report::PageStyle& style) {
  TextTable table;
  table.column("speed-up", Align::left);
  for (const char* name : {"pairs", "mean", "median", "p90", "bias"}) table.column(name);
  for (const auto& r : v.ratios) {
    table.row({r.kind, std::to_string(r.pairs), percent(r.mape), percent(r.median_ape), percent(r.p90_ape),
               signed_percent(r.bias)});
  }
  return "\n" + table.render(style);
}

}  // namespace

std::string validation_page(const Validation& v, int width) {
  const report::PageStyle style{width, false};
  const bool few = !v.pairs.empty() && v.pairs.size() <= kRowsOnPage;
  std::string out = few ? every_row(v, style) : "";
  if (!v.groups.empty()) {
    out += "errors in %; in: measured figures inside the 90 % interval; width: of that interval\n";
    for (const auto& gpu : gpus_of(v)) out += groups(v, gpu, style);
    if (!few) out += worst(v, style);
    out += pooled(v, style);
  }
  if (!v.ratios.empty()) out += speedups(v, style);
  for (const auto& c : v.coverage) {
    out += fmt::format("\n{}: {} of {} rows predicted ({})", c.table, c.rows, c.rows_total, c.what);
  }
  for (const auto& warning : v.warnings) out += "\n" + report::wrap("warning: " + warning, width, "  ");
  out += fmt::format("\n{} of {} measured figures predicted", v.pairs.size(), v.asked());
  for (const auto& [reason, count] : v.skipped) out += fmt::format("\n  skipped {}: {}", count, reason);
  return out + "\n";
}

}  // namespace voltaic::validation
