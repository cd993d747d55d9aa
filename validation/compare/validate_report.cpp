// SPDX-License-Identifier: MIT
// A validation as a page, CSV and JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/text_table.hpp"
#include "sim/report/units.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

using report::Align;
using report::TextTable;

std::string percent(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}
std::string signed_percent(double fraction) {
  return fmt::format("{:+.1f}", 100 * fraction);
}
std::string ms(double seconds) {
  return fmt::format("{:.2f}", 1e3 * seconds);
}

nlohmann::ordered_json to_json(const Pair& p) {
  nlohmann::ordered_json j;
  j["name"] = p.label;
  j["measured_s"] = p.measured_s;
  j["predicted_s"] = p.predicted_s;
  j["error"] = p.error();
  j["cause"] = p.explanation;
  return j;
}

std::int64_t skipped_rows(const Validation& v) {
  std::int64_t rows = 0;
  for (const auto& [reason, count] : v.skipped) rows += count;
  return rows;
}

}  // namespace

std::string validation_page(const Validation& v, int width) {
  const report::PageStyle style{width, false};
  TextTable rows;
  rows.column("gpu", Align::left);
  rows.column("mode", Align::left);
  rows.column("row", Align::left, true);
  rows.column("measured ms");
  rows.column("predicted ms");
  rows.column("error %");
  for (const auto& p : v.pairs)
    rows.row({p.gpu, p.mode, p.label, ms(p.measured_s), ms(p.predicted_s), signed_percent(p.error())});

  TextTable groups;
  groups.column("gpu", Align::left);
  groups.column("op", Align::left);
  groups.column("dtype", Align::left);
  groups.column("mode", Align::left);
  for (const char* name : {"rows", "mean %", "median %", "p90 %", "bias %", "covered %", "width %"})
    groups.column(name);
  for (const auto& g : v.groups) {
    groups.row({g.gpu, g.op, g.dtype, g.mode, std::to_string(g.rows), percent(g.mape), percent(g.median_ape),
                percent(g.p90_ape), signed_percent(g.bias), percent(g.interval_coverage), percent(g.interval_width)});
  }
  std::string out = rows.render(style) + "\n" + groups.render(style);
  const auto skipped = skipped_rows(v);
  const auto total = static_cast<std::int64_t>(v.pairs.size()) + skipped;
  out += fmt::format("\n{} of {} rows predicted", v.pairs.size(), total);
  for (const auto& [reason, count] : v.skipped) out += fmt::format("\n  skipped {}: {}", count, reason);
  return out + "\n";
}

std::string validation_csv(const Validation& v) {
  std::string out = "gpu,op,dtype,mode,origin,name,measured_s,predicted_s,low_s,high_s,error\n";
  for (const auto& p : v.pairs) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", p.gpu, p.op, p.dtype, p.mode, p.origin, p.label,
                       p.measured_s, p.predicted_s, p.low_s, p.high_s, p.error());
  }
  return out;
}

std::string validation_json(const Validation& v) {
  nlohmann::ordered_json j;
  j["groups"] = nlohmann::ordered_json::array();
  for (const auto& g : v.groups) {
    nlohmann::ordered_json row;
    row["gpu"] = g.gpu;
    row["op"] = g.op;
    row["dtype"] = g.dtype;
    row["mode"] = g.mode;
    row["origin"] = g.origin;
    row["rows"] = g.rows;
    row["mape"] = g.mape;
    row["median_ape"] = g.median_ape;
    row["p90_ape"] = g.p90_ape;
    row["bias"] = g.bias;
    row["interval_coverage"] = g.interval_coverage;
    row["interval_width"] = g.interval_width;
    row["worst"] = nlohmann::ordered_json::array();
    for (const auto& p : g.worst) row["worst"].push_back(to_json(p));
    j["groups"].push_back(std::move(row));
  }
  j["skipped"] = nlohmann::ordered_json::array();
  for (const auto& [reason, count] : v.skipped) j["skipped"].push_back({{"reason", reason}, {"rows", count}});
  return j.dump();
}

}  // namespace voltaic::validation
