// SPDX-License-Identifier: MIT
#include "sim/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/detail/layer_groups.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

constexpr std::size_t kTopLayers = 10;
constexpr std::size_t kTopKernels = 40;

std::string bold(const std::string& text, const PageStyle& style) {
  return style.color ? "\033[1m" + text + "\033[0m" : text;
}

std::string bar(double share, const PageStyle& style) {
  constexpr double kCells = 40;
  const std::string cells(static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kCells)), '#');
  return style.color && !cells.empty() ? "\033[36m" + cells + "\033[0m" : cells;
}

std::string share_line(std::string_view name, double share, const PageStyle& style) {
  std::string line = fmt::format("  {:<14}{:>8}  {}", name, format_percent(share), bar(share, style));
  while (line.back() == ' ') line.pop_back();
  return line + '\n';
}

std::string headline(const Prediction& p, const PageStyle& style) {
  std::string out = bold(fmt::format("{} on {}: {}", p.workload, p.gpu, format_time(p.total)), style);
  if (p.total.value > 0) {
    out += fmt::format(" ({} to {}, {:.0f} %, {})", format_time(p.interval.low), format_time(p.interval.high),
                       100 * p.interval.confidence, p.interval.evidence);
  }
  out += '\n';
  if (p.backward.value > 0 || p.optimizer.value > 0) {
    out += fmt::format("  forward {}, backward {}, optimizer {}\n", format_time(p.forward), format_time(p.backward),
                       format_time(p.optimizer));
  }
  return out;
}

std::string time_part(const Prediction& p, const PageStyle& style) {
  std::string out = bold("Time", style) + '\n';
  out += share_line("kernels", p.share_kernels, style);
  if (p.share_communication_exposed > 0) out += share_line("communication", p.share_communication_exposed, style);
  out += share_line("host exposed", p.share_host_exposed, style);
  out += share_line("idle", p.share_idle, style);
  out += bold("Bound by", style) + '\n';
  std::vector<std::pair<double, std::string_view>> bounds;
  for (std::size_t b = 0; b < kernel::kBounds; ++b) bounds.emplace_back(p.bound[b], kernel::kBoundNames[b]);
  bounds.emplace_back(p.bound[kernel::kBounds], "launch");
  bounds.emplace_back(p.bound[kernel::kBounds + 1], "communication");
  std::stable_sort(bounds.begin(), bounds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [share, name] : bounds) {
    if (share >= 5e-4) out += share_line(name, share, style);
  }
  return out;
}

std::string rate_part(const Prediction& p, const PageStyle& style) {
  std::string out = bold("Throughput", style) + '\n';
  out += fmt::format("  {}", format_si(p.samples_per_s, "samples/s"));
  if (p.tokens_per_s) out += fmt::format(", {}", format_si(*p.tokens_per_s, "tokens/s"));
  out += fmt::format("\n  {} = 2 x {}, {} of {} ({})\n", format_si(p.flop, "FLOP"), format_si(p.mac, "MAC"),
                     format_percent(p.model_flop_utilization), format_si(p.peak.value, "FLOP/s"), p.peak_name);
  out += p.cost_usd.value ? fmt::format("  {:.3g} USD per step", *p.cost_usd.value)
                          : fmt::format("  cost not known: {}", p.cost_usd.reason);
  out += p.energy_j.value ? fmt::format(", {}", format_si(*p.energy_j.value, "J"))
                          : fmt::format("; energy not known: {}", p.energy_j.reason);
  if (p.average_power_w.value) out += fmt::format(", {:.0f} W on average", *p.average_power_w.value);
  return out + '\n';
}

/// What a lower power limit would cost and save.
std::string power_part(const Prediction& p, const PageStyle& style) {
  const CapPoint* best = least_energy(p.power_caps);
  if (best == nullptr || p.power_caps.back().energy.value <= 0) return "";
  const CapPoint& own = p.power_caps.back();
  std::string out = bold("Power limit", style) + '\n';
  const auto row = [&](const CapPoint& c, std::string_view remark) {
    out += fmt::format("  {:>4.0f} W  time {:>6.3f}  energy {:>6.3f}  {}\n", c.cap.value, c.time / own.time,
                       c.energy / own.energy, remark);
  };
  const double step = (own.cap.value - p.power_caps.front().cap.value) / 4;
  double next = p.power_caps.front().cap.value;
  for (const CapPoint& c : p.power_caps) {
    const bool last = &c == &own;
    if (!last && &c != best && c.cap.value < next - 1e-9) continue;
    if (c.cap.value >= next - 1e-9) next += step;
    row(c, &c == best ? "least energy" : last ? "the board's own limit" : "");
  }
  return out;
}

/// A completion's times as its reader feels them.
std::string generation_part(const Prediction& p, const PageStyle& style) {
  if (!p.generation) return {};
  const Generation& g = *p.generation;
  std::string out = bold("Completion", style) + '\n';
  out += fmt::format("  {} tokens of prompt, {} generated{}\n", g.prompt_tokens, g.generated_tokens,
                     p.global_batch > 1 ? fmt::format(", {:g} samples at once", p.global_batch) : "");
  out += fmt::format("  first token after {}\n", format_time(g.time_to_first_token));
  if (g.generated_tokens > 1) {
    out += fmt::format("  then {} per token ({} to {}), {} in decode\n", format_time(g.mean), format_time(g.first),
                       format_time(g.last), format_si(g.decode_tokens_per_s, "tokens/s"));
  }
  return out + fmt::format("  {} over all\n", format_si(g.output_tokens_per_s, "tokens/s"));
}

std::string memory_part(const Prediction& p, const PageStyle& style) {
  const auto gib = [](std::int64_t bytes) { return format_gib(static_cast<double>(bytes)); };
  std::string out = bold("Memory", style) + '\n';
  out += fmt::format("  {} of {}: {}, most of it {}\n", gib(p.memory_total()), gib(p.memory.capacity),
                     p.fits() ? "fits" : "does not fit", spoken(p.memory.largest()));
  std::string line;
  for (const auto& [name, bytes] : p.memory.parts()) {
    if (bytes > 0) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", spoken(name), gib(bytes));
  }
  return out + wrap(line, style.width, "  ");
}

std::string layer_part(const Prediction& p, const PageStyle& style, std::size_t limit) {
  const auto groups = layer_groups(p);
  double kernels = 0;
  for (const auto& g : groups) kernels += g.time_s;
  TextTable table;
  table.column("layer", Align::left, true);
  table.column("op", Align::left);
  table.column("phase", Align::left);
  for (const char* name : {"layers", "kernels", "time", "of kernels"}) table.column(name);
  table.column("bound", Align::left);
  table.column("MAC");
  double shown = 0;
  std::size_t n = 0;
  for (const auto& g : groups) {
    if (n == limit || g.time_s <= 0) break;
    ++n;
    shown += g.time_s;
    table.row({g.name, g.op, std::string(graph::to_string(g.phase)), std::to_string(g.layers),
               std::to_string(g.kernels), format_time(Seconds{g.time_s}), format_percent(g.time_s / kernels),
               std::string(kernel::to_string(g.bound())), g.mac > 0 ? format_si(g.mac, "") : "-"});
  }
  if (table.empty()) return {};
  std::string out = bold(limit == kTopLayers ? "Longest layers" : "Layers", style) + '\n' + table.render(style);
  if (n < groups.size() && kernels - shown > 1e-12 * kernels) {
    out += fmt::format("and {} more, {}\n", groups.size() - n, format_percent((kernels - shown) / kernels));
  }
  return out;
}

std::string kernel_part(const Prediction& p, const PageStyle& style) {
  const auto groups = kernel_groups(p);
  double kernels = 0;
  for (const auto& g : groups) kernels += g.time_s;
  TextTable table;
  table.column("op", Align::left);
  table.column("kernel", Align::left, true);
  for (const char* name : {"count", "each", "share"}) table.column(name);
  table.column("bound", Align::left);
  for (const char* name : {"math", "dram", "l2", "roof", "waves"}) table.column(name);
  double shown = 0;
  std::size_t n = 0;
  for (const auto& g : groups) {
    if (n == kTopKernels) break;
    ++n;
    shown += g.time_s;
    const kernel::KernelCost& c = g.row->cost;
    using kernel::Bound;
    const auto percent = [&](Seconds leg) {
      return c.time.value > 0 ? fmt::format("{:.0f}%", 100 * (leg / c.time)) : "-";
    };
    const Seconds math = std::max(c.leg(Bound::tensor), c.leg(Bound::fma));
    table.row({g.op, g.row->launch.name, std::to_string(g.count), format_time(c.time),
               format_percent(kernels > 0 ? g.time_s / kernels : 0), std::string(kernel::to_string(c.bound())),
               percent(math), percent(c.leg(Bound::dram)), percent(c.leg(Bound::l2)), percent(c.roofline),
               fmt::format("{:.2f}", c.waves)});
  }
  if (table.empty()) return {};
  std::string out =
      bold("Kernels", style) + " (legs and roofline as shares of each kernel's time)\n" + table.render(style);
  if (n < groups.size()) {
    out += fmt::format("and {} more, {}\n", groups.size() - n,
                       format_percent(kernels > 0 ? (kernels - shown) / kernels : 0));
  }
  return out;
}

std::string help_part(const Prediction& p, const PageStyle& style) {
  if (p.sensitivities.empty()) return {};
  TextTable table;
  table.column("change", Align::left, true);
  table.column("");
  table.column("time", Align::right);
  for (const auto& s : p.sensitivities) {
    const std::string note = s.path == "batch" ? " per sample" : "";
    table.row({s.path + note, s.change, fmt::format("{:+.1f} %", 100 * (s.time_ratio - 1))});
  }
  return bold("What would help", style) + '\n' + table.render(style);
}

std::string notes_part(const Prediction& p, const PageStyle& style) {
  std::string out;
  for (const auto& u : p.unmodelled) {
    out += wrap(fmt::format("no time for {} x {}: {}", u.count, u.op, u.reason), style.width, "  ");
  }
  for (const auto& a : p.assumptions) out += wrap(a, style.width, "  ");
  return out.empty() ? out : bold("Assumed", style) + '\n' + out;
}

}  // namespace

std::string predict_page(const Prediction& p, const PageStyle& style) {
  return headline(p, style) + generation_part(p, style) + time_part(p, style) + rate_part(p, style) +
         memory_part(p, style) + layer_part(p, style, kTopLayers) + notes_part(p, style);
}

std::string explain_page(const Prediction& p, const PageStyle& style) {
  return headline(p, style) + generation_part(p, style) + time_part(p, style) + help_part(p, style) +
         rate_part(p, style) + power_part(p, style) + memory_part(p, style) + layer_part(p, style, SIZE_MAX) +
         kernel_part(p, style) + notes_part(p, style);
}

}  // namespace voltaic::report
