// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/table.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

/// "dram" where all sides agree, else "fma > dram".
std::string bounds_text(const LayerClass& c) {
  std::string out;
  for (std::size_t i = 0; i < c.bound.size(); ++i) {
    if (i == 0 || c.bound[i] != c.bound[i - 1]) out += (out.empty() ? "" : " > ") + c.bound[i];
  }
  return out;
}

std::string gib(std::int64_t bytes) {
  return format_gib(static_cast<double>(bytes));
}

/// The longest layers with what each gains and why; the rest in one line.
std::string layers_text(const Comparison& comparison, const PageStyle& style) {
  constexpr std::size_t kShown = 12;
  if (comparison.layers.empty()) return {};
  TextTable table;
  table.column("layer", Align::left, true);
  table.column("count");
  for (const auto& r : comparison.rows) table.column(r.label);
  std::string reasons;
  const std::size_t shown = std::min(kShown, comparison.layers.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ComparedLayer& l = comparison.layers[i];
    std::vector<std::string> cells{l.name, format_count(l.count)};
    for (const Seconds t : l.time) cells.push_back(format_time(t));
    table.row(std::move(cells));
    reasons +=
        wrap(fmt::format("{}{}: {}", l.name, l.shape.empty() ? "" : " (" + l.shape + ")", l.reason), style.width, "  ");
  }
  std::string out = '\n' + table.render(style) + reasons;
  const std::size_t rest = comparison.layers.size() - shown;
  if (rest > 0) out += fmt::format("  {} more in --json\n", rest);
  return out;
}

}  // namespace

std::string compare_page(const Comparison& comparison, const PageStyle& style) {
  TextTable rows;
  rows.column("", Align::left, true);
  for (const char* name : {"time", "90 % interval", "speed-up", "samples/s", "memory"}) rows.column(name);
  for (const auto& r : comparison.rows) {
    rows.row({r.label, format_time(r.time),
              fmt::format("{} - {}", format_time(r.interval.low), format_time(r.interval.high)),
              format_ratio(r.speedup), format_si(r.samples_per_s, ""),
              r.fits ? gib(r.memory_bytes) : gib(r.memory_bytes) + " (too much)"});
  }
  std::string out = rows.render(style);
  for (const auto& r : comparison.rows) {
    if (!r.reason.empty()) out += wrap(r.label + ": " + r.reason, style.width, "  ");
  }
  if (comparison.layer_classes.empty()) return out;
  TextTable classes;
  classes.column("layers", Align::left, true);
  for (const auto& r : comparison.rows) classes.column(r.label);
  classes.column("speed-up");
  classes.column("bound", Align::left);
  for (const auto& c : comparison.layer_classes) {
    std::vector<std::string> cells{c.name};
    for (std::size_t i = 0; i < comparison.rows.size(); ++i)
      cells.push_back(i < c.time.size() ? format_time(c.time[i]) : "-");
    cells.push_back(c.speedup.empty() ? "-" : format_ratio(c.speedup.back()));
    cells.push_back(bounds_text(c));
    classes.row(std::move(cells));
  }
  out += '\n' + classes.render(style);
  for (const auto& c : comparison.layer_classes) {
    if (!c.reason.empty()) out += wrap(c.name + ": " + c.reason, style.width, "  ");
  }
  return out + layers_text(comparison, style);
}

std::string sweep_page(std::span<const SweepPoint> points, const PageStyle& style) {
  TextTable table;
  if (!points.empty()) {
    for (const auto& [name, value] : points.front().set) table.column(name);
  }
  const bool tokens =
      std::any_of(points.begin(), points.end(), [](const auto& p) { return p.tokens_per_s.has_value(); });
  table.column("time");
  table.column("samples/s");
  if (tokens) table.column("tokens/s");
  table.column("memory");
  table.column("", Align::left, true);
  for (const auto& p : points) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : p.set) cells.push_back(value);
    const bool ok = p.error.empty();
    cells.push_back(ok ? format_time(p.time) : "-");
    cells.push_back(ok ? format_si(p.samples_per_s, "") : "-");
    if (tokens) cells.push_back(ok && p.tokens_per_s ? format_si(*p.tokens_per_s, "") : "-");
    cells.push_back(ok ? gib(p.memory_bytes) : "-");
    cells.push_back(!ok ? p.error : p.fits ? "" : "does not fit");
    table.row(std::move(cells));
  }
  return table.render(style);
}

std::string workload_page(const WorkloadView& w, const PageStyle& style) {
  std::string out =
      fmt::format("{} ({}): {} parameters", w.name, w.kind, format_count(static_cast<double>(w.parameters)));
  if (w.parameters_active_per_token != w.parameters) {
    out += fmt::format(", {} active per token", format_count(static_cast<double>(w.parameters_active_per_token)));
  }
  out += fmt::format("\n{} = 2 x {} forward", format_si(w.flop, "FLOP"), format_si(w.mac, "MAC"));
  if (w.kv_cache_bytes_per_token > 0)
    out += fmt::format(", KV cache {} per token", format_gib(w.kv_cache_bytes_per_token));
  out += '\n';
  TextTable table;
  table.column("layer", Align::left, true);
  table.column("op", Align::left);
  table.column("output", Align::left);
  for (const char* name : {"parameters", "MAC", "FLOP"}) table.column(name);
  for (const auto& l : w.layers) {
    table.row({l.id, l.op, l.output_shape, l.parameters > 0 ? format_count(static_cast<double>(l.parameters)) : "-",
               l.mac > 0 ? format_si(l.mac, "") : "-", l.flop > 0 ? format_si(l.flop, "") : "-"});
  }
  return out + table.render(style);
}

}  // namespace voltaic::report
