// SPDX-License-Identifier: MIT
// A calibration run as the file that models read, as a page and as JSON.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sim/report/text_table.hpp"
#include "validation/fit/calibrate.hpp"

namespace voltaic::validation {
namespace {

using Json = nlohmann::ordered_json;
using report::Align;
using report::TextTable;

/// Five digits say all that a fit knows and keep files readable.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

void round_numbers(Json& node) {
  if (node.is_number_float()) node = rounded(node.get<double>());
  if (!node.is_structured()) return;
  for (auto& child : node) round_numbers(child);
}

Json parameter_json(const FittedParameter& p) {
  return {{"path", p.parameter.path},   {"value", rounded(p.value)}, {"unit", p.parameter.unit},
          {"low", rounded(p.low)},      {"high", rounded(p.high)},   {"prior", rounded(p.parameter.prior)},
          {"determined", p.determined}, {"at_bound", p.at_bound}};
}

Json spread_json(const ResidualSpread& s) {
  return {{"gpu", s.gpu},
          {"op", s.op},
          {"session", s.session},
          {"rows", s.rows},
          {"mape_prior", rounded(s.mape_prior)},
          {"mape", rounded(s.mape)},
          {"bias", rounded(s.bias)},
          {"measured_over_predicted", {{"low", rounded(s.low)}, {"high", rounded(s.high)}}}};
}

Json stack_spread_json(const StackSpread& s) {
  Json j{{"gpu", s.gpu},
         {"op", s.call},
         {"session", s.release},
         {"stack", s.stack},
         {"rows", s.rows},
         {"mape_prior", rounded(s.mape_prior)},
         {"mape", rounded(s.mape)},
         {"bias", rounded(s.bias)},
         {"measured_over_predicted", {{"low", rounded(s.low)}, {"high", rounded(s.high)}}}};
  j["report"] = {{"rows", s.report_rows},
                 {"mape_prior", rounded(s.report_mape_prior)},
                 {"mape", rounded(s.report_mape)},
                 {"bias", rounded(s.report_bias)},
                 {"covered", rounded(s.report_covered)}};
  return j;
}

Json law_json(const StackLawFit& f) {
  return {{"family", to_string(f.law)}, {"rows", f.rows},           {"rows_with_other_kernels", 0},
          {"refused", f.refused},       {"fitted_on", f.fitted_on}, {"mape_prior", rounded(f.mape_prior)},
          {"mape", rounded(f.mape)}};
}

Json kernels_json(const std::vector<KernelSpread>& kernels) {
  Json out = Json::array();
  for (const auto& k : kernels) {
    out.push_back({{"family", k.family},
                   {"rows", k.rows},
                   {"half_width", rounded(k.half_width)},
                   {"correlation", rounded(k.correlation)}});
  }
  return out;
}

/// Of the file: all that one law's fit says.
Json stacks_json(const StackFit& stacks) {
  Json j;
  j["laws"] = Json::array();
  for (const auto& f : stacks.laws) {
    Json law = law_json(f);
    law["iterations"] = f.fit.iterations;
    law["residual_deviation"] = rounded(f.fit.noise);
    law["parameters"] = Json::array();
    for (const auto& p : f.fit.parameters) law["parameters"].push_back(parameter_json(p));
    j["laws"].push_back(std::move(law));
  }
  j["spread"] = Json::array();
  for (const auto& s : stacks.spread) j["spread"].push_back(stack_spread_json(s));
  j["kernels"] = kernels_json(stacks.kernels);
  return j;
}

Json family_json(const FamilyFit& f) {
  Json j{{"family", to_string(f.family)},          {"rows", f.rows},
         {"rows_with_other_kernels", f.no_kernel}, {"refused", f.refused},
         {"iterations", f.fit.iterations},         {"residual_deviation", rounded(f.fit.noise)}};
  j["parameters"] = Json::array();
  for (const auto& p : f.fit.parameters) j["parameters"].push_back(parameter_json(p));
  j["spread"] = Json::array();
  for (const auto& s : f.spread) j["spread"].push_back(spread_json(s));
  j["kernels"] = kernels_json(f.kernels);
  return j;
}

/// "boards.t4.single_op.add.floor_s" as "t4" and "add.floor_s": whose it is, and the last two names.
std::pair<std::string, std::string> shown(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= path.size()) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    parts.push_back(path.substr(from, dot - from));
    from = dot + 1;
  }
  std::string where = "all boards";
  std::size_t first = 0;
  if (parts.size() > 2 && parts[0] == "boards") {
    where = parts[1];
    first = 2;
    if (parts.size() > 4 && parts[2] == "sessions") {
      where += ' ' + parts[3];
      first = 4;
    }
  }
  const std::size_t last = parts.size() > first + 2 ? parts.size() - 2 : first;
  return {where, parts.size() > last + 1 ? parts[last] + '.' + parts[last + 1] : parts[last]};
}

std::string percent(double fraction) {
  return fmt::format("{:.2f}", 100 * fraction);
}

}  // namespace

std::string calibration_file(const CalibrationRun& run) {
  Json out;
  const std::string architecture(arch::to_string(run.architecture));
  out["schema"] = "voltaic.calibration/1";
  out["id"] = architecture + (run.options.intervals_only ? "-intervals" : "-fitted");
  out["architecture"] = architecture;
  out["date"] = run.options.date;
  if (run.options.alone) out["base"] = "priors";
  out["source"] = "fitted: " + run.options.source + "; rows whose shape key has crc32 mod 10 below 6";
  Json values = Json::parse(run.fitted.text());
  round_numbers(values);
  for (const auto& [key, value] : values.items()) out[key] = value;
  Json fit;
  fit["boards"] = Json::array();
  for (const auto& b : run.boards) fit["boards"].push_back({{"gpu", b.name}, {"sessions", b.sessions}});
  fit["families"] = Json::array();
  for (const auto& f : run.families) fit["families"].push_back(family_json(f));
  if (!run.stacks.laws.empty()) fit["stacks"] = stacks_json(run.stacks);
  out["fit"] = std::move(fit);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string calibration_json(const CalibrationRun& run) {
  Json j;
  j["architecture"] = arch::to_string(run.architecture);
  j["parameters"] = Json::array();
  j["residuals"] = Json::array();
  j["families"] = Json::array();
  for (const auto& f : run.families) {
    for (const auto& p : f.fit.parameters) j["parameters"].push_back(parameter_json(p));
    for (const auto& s : f.spread) j["residuals"].push_back(spread_json(s));
    j["families"].push_back({{"family", to_string(f.family)},
                             {"rows", f.rows},
                             {"rows_with_other_kernels", f.no_kernel},
                             {"refused", f.refused}});
  }
  for (const auto& f : run.stacks.laws) {
    for (const auto& p : f.fit.parameters) j["parameters"].push_back(parameter_json(p));
    j["families"].push_back(law_json(f));
  }
  for (const auto& s : run.stacks.spread) j["residuals"].push_back(stack_spread_json(s));
  j["skipped"] = Json::array();
  for (const auto& [reason, rows] : run.skipped) j["skipped"].push_back({{"reason", reason}, {"rows", rows}});
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TextTable parameter_table(const FitResult& fit) {
  TextTable table;
  table.column("where", Align::left);
  table.column("parameter", Align::left, true);
  for (const char* name : {"value", "low", "high", "prior"}) table.column(name);
  table.column("", Align::left);
  for (const auto& p : fit.parameters) {
    const char* remark = !p.determined ? "not determined, prior kept" : p.at_bound ? "at its bound" : "";
    const auto [where, name] = shown(p.parameter.path);
    table.row({where, name, fmt::format("{:.4g}", p.value), fmt::format("{:.4g}", p.low), fmt::format("{:.4g}", p.high),
               fmt::format("{:.4g}", p.parameter.prior), remark});
  }
  return table;
}

std::string stacks_page(const StackFit& stacks, const report::PageStyle& style) {
  std::string out;
  for (const auto& f : stacks.laws) {
    out += fmt::format("{}: {} rows", to_string(f.law), f.rows);
    if (f.fitted_on > 0) {
      out += fmt::format(", fitted on {}; left out {:.2f} % (prior {:.2f})", f.fitted_on, 100 * f.mape,
                         100 * f.mape_prior);
    }
    out += f.refused ? "; REFUSED: worse than the prior on rows left out, every value kept\n" : "\n";
    if (!f.fit.parameters.empty()) out += parameter_table(f.fit).render(style) + "\n";
  }
  for (const auto& law : stacks.too_few) out += fmt::format("{}: too few, {} are needed\n", law, kLeastShapes);
  if (stacks.spread.empty()) return out;
  TextTable spread;
  for (const char* name : {"gpu", "call", "release"}) spread.column(name, Align::left);
  for (const char* name : {"rows", "prior %", "left out %", "bias %", "5 % at", "95 % at", "report rows", "prior %",
                           "fit %", "covered %"}) {
    spread.column(name);
  }
  for (const auto& s : stacks.spread) {
    spread.row({s.gpu, s.call, s.release, std::to_string(s.rows), percent(s.mape_prior), percent(s.mape),
                fmt::format("{:+.2f}", 100 * s.bias), fmt::format("{:.3f}", s.low), fmt::format("{:.3f}", s.high),
                std::to_string(s.report_rows), percent(s.report_mape_prior), percent(s.report_mape),
                fmt::format("{:.1f}", 100 * s.report_covered)});
  }
  return out + spread.render(style) + "\n";
}

std::string calibration_page(const CalibrationRun& run, int width) {
  const report::PageStyle style{width, false};
  std::string out;
  for (const auto& f : run.families) {
    out += fmt::format("{}: {} rows", to_string(f.family), f.rows);
    if (f.no_kernel > 0) out += fmt::format(", {} left out (their kernel is not in the model)", f.no_kernel);
    out += f.refused ? "; REFUSED: worse than the prior on rows left out, every value kept\n" : "\n";
    if (f.product_choice.rows > 0) {
      const auto& c = f.product_choice;
      out += fmt::format(
          "choice of kernel: {} rows, {} candidates, {} weights; kernel taken {:.1f} % (prior {:.1f}), time lost "
          "{:.2f} % (prior {:.2f}){}\n",
          c.rows, c.candidates, c.weights, 100 * c.hit, 100 * c.hit_prior, 100 * c.loss, 100 * c.loss_prior,
          c.kept_prior ? "; prior kept" : "");
    }
    TextTable spread;
    for (const char* name : {"gpu", "op", "session"}) spread.column(name, Align::left);
    for (const char* name : {"rows", "prior %", "left out %", "bias %", "5 % at", "95 % at"}) spread.column(name);
    for (const auto& s : f.spread) {
      spread.row({s.gpu, s.op, s.session, std::to_string(s.rows), percent(s.mape_prior), percent(s.mape),
                  fmt::format("{:+.2f}", 100 * s.bias), fmt::format("{:.3f}", s.low), fmt::format("{:.3f}", s.high)});
    }
    out += parameter_table(f.fit).render(style) + "\n" + spread.render(style) + "\n";
  }
  out += stacks_page(run.stacks, style);
  for (const auto& [reason, rows] : run.skipped) out += fmt::format("skipped {}: {}\n", rows, reason);
  return out;
}

}  // namespace voltaic::validation
