// SPDX-License-Identifier: MIT
// Sections of metric, unit and value, as users of Nsight Compute's command line know them.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/kernel_profile.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

constexpr int kIndent = 4;
constexpr int kPlainWidth = 100;  ///< Of sentences, where the page has no width of its own.

std::string bold(const std::string& text, const PageStyle& style) {
  return style.color ? "\033[1m" + text + "\033[0m" : text;
}

struct Shown {
  std::string unit, value;
};

/// "1.41", "GHz" from "1.41 GHz".
Shown split(const std::string& text) {
  const auto blank = text.find(' ');
  if (blank == std::string::npos) return {"", text};
  return {text.substr(blank + 1), text.substr(0, blank)};
}

std::string_view plain_unit(cycle::MetricUnit unit) {
  using cycle::MetricUnit;
  switch (unit) {
    case MetricUnit::cycle: return "cycle";
    case MetricUnit::instructions_per_cycle: return "inst/cycle";
    case MetricUnit::instructions: return "inst";
    case MetricUnit::sectors: return "sector";
    case MetricUnit::wavefronts: return "wavefront";
    case MetricUnit::warps: return "warp";
    case MetricUnit::ctas: return "block";
    case MetricUnit::threads: return "thread";
    case MetricUnit::registers: return "register/thread";
    default: return "";
  }
}

/// "1,234,567"
std::string grouped(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

Shown shown(const cycle::Metric& m) {
  using cycle::MetricUnit;
  switch (m.unit) {
    case MetricUnit::percent: return {"%", fmt::format("{:.2f}", m.value)};
    case MetricUnit::second: return split(format_time(Seconds{m.value}));
    case MetricUnit::hertz: return split(format_si(m.value, "Hz"));
    case MetricUnit::bytes: return split(format_si(m.value, "B"));
    case MetricUnit::bytes_per_second: return split(format_si(m.value, "B/s"));
    default: break;
  }
  // Counts are extrapolated: large ones are shown as whole numbers, means with their decimals.
  const bool whole = m.value >= 1000 || m.value == static_cast<double>(static_cast<std::int64_t>(m.value));
  return {std::string(plain_unit(m.unit)), whole ? grouped(m.value) : fmt::format("{:.2f}", m.value)};
}

std::string indented(const TextTable& table, const PageStyle& style) {
  const std::string indent(kIndent, ' ');
  const PageStyle inner{style.width > 0 ? std::max(20, style.width - kIndent) : 0, style.color};
  const std::string text = table.render(inner);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = text.find('\n', i);
    out += indent + text.substr(i, end - i) + '\n';
    i = end + 1;
  }
  return out;
}

std::string title(std::string_view name, const PageStyle& style) {
  return "  " + bold(fmt::format("Section: {}", name), style) + '\n';
}

/// Where a warp's cycles go, largest first; what rounds to nothing is left out.
std::string stall_table(const cycle::Metrics& m, const PageStyle& style) {
  std::vector<cycle::Stall> order;
  for (std::size_t i = 0; i < cycle::kStalls; ++i) {
    if (m.stalls[i] >= 5e-4) order.push_back(static_cast<cycle::Stall>(i));
  }
  if (order.empty()) return {};
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return m.stall(a) > m.stall(b); });
  TextTable table;
  table.column("Warp State", Align::left, true);
  table.column("Cycles Per Instruction");
  table.column("Share");
  table.rule();
  for (const cycle::Stall s : order) {
    const std::string name = s == cycle::Stall::selected ? "Selected" : fmt::format("Stall {}", cycle::label(s));
    table.row({name, fmt::format("{:.2f}", m.stall_cycles(s)), format_percent(m.stall(s))});
  }
  return indented(table, style);
}

std::string section_part(const std::vector<cycle::Metric>& list, const cycle::Metrics& m, cycle::Section section,
                         const PageStyle& style) {
  TextTable table;
  table.column("Metric Name", Align::left, true);
  table.column("Metric Unit");
  table.column("Metric Value");
  table.rule();
  for (const auto& metric : list) {
    if (metric.section != section || !metric.shown) continue;
    const Shown s = shown(metric);
    table.row({metric.label, s.unit, s.value});
  }
  std::string out = title(cycle::to_string(section), style) + indented(table, style);
  if (section == cycle::Section::warp_state) out += stall_table(m, style);
  const std::string sentence = finding(m, section);
  if (!sentence.empty()) {
    out += wrap(sentence, style.width > 0 ? style.width : kPlainWidth, std::string(kIndent, ' '));
  }
  return out + '\n';
}

std::string part_table(const KernelProfile& p, const PageStyle& style) {
  if (p.parts.size() < 2) return {};
  TextTable table;
  table.column("Part", Align::left, true);
  for (const char* name : {"Times", "Cycles", "Share"}) table.column(name);
  table.rule();
  for (const auto& part : p.parts) {
    table.row({part.name, grouped(part.times), grouped(part.cycles), format_percent(part.share)});
  }
  return title("Parts of the kernel, one after another", style) + indented(table, style) + '\n';
}

std::string change_table(const KernelProfile& p, const PageStyle& style) {
  if (p.changes.empty()) return {};
  TextTable table;
  table.column("Change", Align::left, true);
  table.column("");
  table.column("Time");
  table.rule();
  for (const auto& c : p.changes) {
    table.row({c.path, c.change, fmt::format("{:+.1f} %", 100 * (c.time_ratio - 1))});
  }
  return title("What would help most, each simulated again", style) + indented(table, style) + '\n';
}

}  // namespace

std::string profile_page(const KernelProfile& p, const PageStyle& style) {
  std::string out = bold(fmt::format("{} ({}, {}, {})x({}, 1, 1), {}: {}", p.name, p.grid[0], p.grid[1], p.grid[2],
                                     p.block, p.gpu, format_time(p.duration)),
                         style);
  if (p.count != 1) out += fmt::format(", {:.0f} times", p.count);
  out += '\n';
  const auto list = cycle::metric_list(p.metrics);
  for (std::size_t s = 0; s < cycle::kSections; ++s) {
    out += section_part(list, p.metrics, static_cast<cycle::Section>(s), style);
  }
  return out + part_table(p, style) + change_table(p, style);
}

}  // namespace voltaic::report
