// SPDX-License-Identifier: MIT
// A validation as CSV and JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/csv.hpp"
#include "sim/report/units.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Pair& p) {
  Json j;
  j["name"] = p.label;
  const std::string ending = fmt::format("_{}", to_string(p.unit));
  j["measured" + ending] = p.measured;
  j["predicted" + ending] = p.predicted;
  j["low" + ending] = p.low;
  j["high" + ending] = p.high;
  j["error"] = p.error();
  j["cause"] = p.explanation;
  return j;
}

Json to_json(const Group& g) {
  Json j;
  j["gpu"] = g.gpu;
  j["op"] = g.op;
  j["dtype"] = g.dtype;
  j["mode"] = g.mode;
  j["origin"] = g.origin;
  j["unit"] = to_string(g.unit);
  j["rows"] = g.rows;
  j["mape"] = g.mape;
  j["median_ape"] = g.median_ape;
  j["p90_ape"] = g.p90_ape;
  j["bias"] = g.bias;
  j["interval_coverage"] = g.interval_coverage;
  j["interval_width"] = g.interval_width;
  j["worst"] = Json::array();
  for (const auto& p : g.worst) j["worst"].push_back(to_json(p));
  return j;
}

Json to_json(const Pooled& p) {
  Json j;
  j["name"] = p.name;
  j["gpu"] = p.gpu;
  j["rows"] = p.rows;
  j["rows_total"] = p.rows_total;
  j["mape"] = p.mape;
  j["median_ape"] = p.median_ape;
  j["p90_ape"] = p.p90_ape;
  j["max_ape"] = p.max_ape;
  j["bias"] = p.bias;
  j["interval_coverage"] = p.interval_coverage;
  j["interval_width"] = p.interval_width;
  return j;
}

Json to_json(const Ratio& r) {
  Json j;
  j["kind"] = r.kind;
  j["pairs"] = r.pairs;
  j["mape"] = r.mape;
  j["median_ape"] = r.median_ape;
  j["p90_ape"] = r.p90_ape;
  j["bias"] = r.bias;
  return j;
}

}  // namespace

std::string validation_csv(const Validation& v) {
  using report::csv_cell;
  using report::shortest;
  // Figures that are no times stand in columns of their own.
  std::string out =
      "gpu,op,dtype,mode,origin,name,measured_s,predicted_s,low_s,high_s,error,size,split,family,cause,"
      "unit,measured,predicted,low,high\n";
  for (const auto& p : v.pairs) {
    for (const auto* text : {&p.gpu, &p.op, &p.dtype, &p.mode, &p.origin, &p.label}) out += csv_cell(*text) + ",";
    const auto figures = {p.measured, p.predicted, p.low, p.high};
    for (const double number : figures) out += (p.unit == Unit::seconds ? shortest(number) : "") + ",";
    for (const double number : {p.error(), p.size}) out += shortest(number) + ",";
    out += fmt::format("{},{},{},{}", p.fit ? "fit" : "report", csv_cell(p.family), csv_cell(p.explanation),
                       to_string(p.unit));
    for (const double number : figures) out += "," + shortest(number);
    out += "\n";
  }
  return out;
}

std::string validation_json(const Validation& v) {
  Json j;
  j["groups"] = Json::array();
  for (const auto& g : v.groups) j["groups"].push_back(to_json(g));
  j["pooled"] = Json::array();
  for (const auto& p : v.pooled) j["pooled"].push_back(to_json(p));
  j["ratios"] = Json::array();
  for (const auto& r : v.ratios) j["ratios"].push_back(to_json(r));
  j["coverage"] = Json::array();
  for (const auto& c : v.coverage) {
    j["coverage"].push_back({{"table", c.table}, {"what", c.what}, {"rows", c.rows}, {"rows_total", c.rows_total}});
  }
  j["skipped"] = Json::array();
  for (const auto& [reason, count] : v.skipped) j["skipped"].push_back({{"reason", reason}, {"rows", count}});
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace voltaic::validation
