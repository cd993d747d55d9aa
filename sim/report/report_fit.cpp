// SPDX-License-Identifier: MIT
// The answer of `voltaic fit` as JSON and as a page.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/detail/json_parts.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

const std::string kZero =
    "ZeRO: the same batch on each GPU; communication over its own links, without overlap; between nodes it takes "
    "longer";

bool is_zero(const FitChange& c) {
  return c.what.starts_with("ZeRO");
}

std::string gib(std::int64_t bytes) {
  return format_gib(static_cast<double>(bytes));
}

void write_change(JsonWriter& w, const FitChange& c) {
  w.begin_object();
  w.member("what", c.what);
  w.member("memory_bytes", c.memory_bytes);
  w.member("capacity_bytes", c.capacity_bytes);
  w.member("time_ratio", c.time_ratio);
  w.member("note", c.note);
  w.end_object();
}

/// Sizes are null where a workload has none; the reason stands under the same name. A size may have one too: what ends
/// there beside memory.
void write_sizes(JsonWriter& w, const Fit& f) {
  const auto size = [&w](const char* name, const std::optional<std::int64_t>& n) {
    n ? w.member(name, *n) : w.member_null(name);
  };
  size("max_batch", f.max_batch);
  size("max_seq", f.max_seq);
  w.key("size_reasons");
  w.begin_object();
  if (!f.max_batch_reason.empty()) w.member("max_batch", f.max_batch_reason);
  if (!f.max_seq_reason.empty()) w.member("max_seq", f.max_seq_reason);
  w.end_object();
}

std::string size_line(std::string_view name, const std::optional<std::int64_t>& n, const std::string& reason,
                      const PageStyle& style) {
  std::string line = fmt::format("{:<9} {}", name, n ? std::to_string(*n) : "-");
  if (!reason.empty()) line += fmt::format(" ({})", reason);
  return wrap(line, style.width, "  ");
}

std::string headline(const Fit& f) {
  const MemoryUse& use = f.asked.memory;
  const std::int64_t rest = use.capacity - use.total();
  return fmt::format("{} on {}: {}, {} of {}, {} {}\n", f.asked.workload, f.asked.gpu,
                     use.fits() ? "fits" : "does not fit", gib(use.total()), gib(use.capacity),
                     gib(rest < 0 ? -rest : rest), rest < 0 ? "too much" : "to spare");
}

std::string parts(const Fit& f, const PageStyle& style) {
  const MemoryUse& use = f.asked.memory;
  TextTable table;
  table.column("part", Align::left, true);
  for (const char* name : {"memory", "bytes", "share"}) table.column(name);
  for (const auto& [name, bytes] : use.parts()) {
    if (bytes == 0) continue;
    const double share = static_cast<double>(bytes) / static_cast<double>(use.total());
    table.row({std::string(spoken(name)), gib(bytes), std::to_string(bytes), format_percent(share)});
  }
  std::string out = table.render(style);
  if (!use.peak_layer.empty()) {
    out += wrap(fmt::format("peak in {}, {}", use.peak_layer, graph::to_string(use.peak_phase)), style.width, "  ");
  }
  return out;
}

std::string changes(const Fit& f, const PageStyle& style) {
  if (f.asked.fits()) return {};
  if (f.changes.empty()) return "Nothing that is known here makes it fit\n";
  TextTable table;
  table.column("what would make it fit", Align::left);
  for (const char* name : {"memory", "of", "time"}) table.column(name);
  table.column("", Align::left, true);
  for (const auto& c : f.changes) {
    table.row({c.what, gib(c.memory_bytes), gib(c.capacity_bytes),
               c.time_ratio ? fmt::format("x{:.2f}", *c.time_ratio) : "-", is_zero(c) ? "" : c.note});
  }
  const bool zero = std::any_of(f.changes.begin(), f.changes.end(), is_zero);
  std::string out = table.render(style) + "  time per sample against the request as asked, as if that fitted\n";
  if (zero) out += wrap(kZero, style.width, "  ");
  return out;
}

}  // namespace

std::string fit_json(const Fit& f, std::string_view tool_version) {
  JsonWriter w;
  begin_document(w, envelope_of(f.asked, "fit", tool_version));
  w.begin_object();
  w.member("fits", f.asked.fits());
  w.member("limiting", f.asked.memory.largest());
  write_sizes(w, f);
  w.key("memory_bytes");
  write_memory(w, f.asked.memory);
  w.key("peak");
  w.begin_object();
  w.member("layer", f.asked.memory.peak_layer);
  w.member("phase", graph::to_string(f.asked.memory.peak_phase));
  w.end_object();
  w.member("time_s", f.asked.total.value);
  w.key("changes");
  w.begin_array();
  for (const auto& c : f.changes) write_change(w, c);
  w.end_array();
  w.end_object();
  return end_document(w);
}

std::string fit_page(const Fit& f, const PageStyle& style) {
  return headline(f) + parts(f, style) + "Largest that fits, all else as asked\n" +
         size_line("batch", f.max_batch, f.max_batch_reason, style) +
         size_line("sequence", f.max_seq, f.max_seq_reason, style) + changes(f, style);
}

}  // namespace voltaic::report
