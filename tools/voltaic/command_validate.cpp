// SPDX-License-Identifier: MIT
// validate: predictions held against measured tables.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "arch/units/error.hpp"
#include "sim/report/json.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/output.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::tools {
namespace {

double fraction(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || !std::isfinite(value)) {
    throw UsageError(fmt::format("--fail-above: expected a fraction like 0.08, got '{}'", one_line(text)));
  }
  return value;
}

validation::ValidateOptions options_of(const CommandLine& line) {
  if (line.split != "all" && line.split != "fit" && line.split != "report")
    throw UsageError("--split: expected fit, report or all");
  validation::ValidateOptions options;
  options.split = line.split;
  options.gpus = words(line.gpu, "--gpu");
  options.ops = words(line.op, "--op");
  options.calibration = line.calibration;
  options.jobs = line.jobs;
  options.rows = line.rows;
  options.seed = line.seed;
  Request request;  // reads the words of these options as predictions do
  set_option(request, "engine", line.engine);
  if (line.sample != "steady") set_option(request, "sample", line.sample);
  if (line.l2 != "footprint") set_option(request, "l2", line.l2);
  if (request.engine != cost::EngineKind::cycle && request.given.size() > 1)
    throw UsageError("--sample and --l2 belong to --engine cycle");
  options.engine = request.engine;
  options.sampling = request.sampling;
  return options;
}

std::string document(const CommandLine& line, const validation::Validation& v) {
  report::Envelope e;
  e.command = "validate";
  e.tool_version = VOLTAIC_VERSION;
  for (const auto& file : v.files) e.inputs.push_back({file, ""});
  e.request = {{"split", line.split}};
  if (!line.gpu.empty()) e.request.emplace_back("gpu", line.gpu);
  if (!line.op.empty()) e.request.emplace_back("op", line.op);
  if (!line.calibration.empty()) e.request.emplace_back("calibration", line.calibration);
  if (line.engine != "analytic") {
    e.request.emplace_back("engine", line.engine);
    e.request.emplace_back("sample", line.sample);
    e.request.emplace_back("l2", line.l2);
  }
  if (line.rows > 0) {
    e.request.emplace_back("rows", std::to_string(line.rows));
    e.request.emplace_back("seed", std::to_string(line.seed));
  }
  e.warnings = v.warnings;
  return report::document_json(e, validation::validation_json(v));
}

/// Exit 6 when a group is worse than the limit, or when there is nothing to hold against it.
int held_against(double limit, const validation::Validation& v) {
  if (limit < 0) return kExitOk;
  if (v.pairs.empty()) {
    say("voltaic: no row could be predicted, so nothing was held against --fail-above");
    return kExitValidation;
  }
  for (const auto& g : v.groups) {
    if (g.mape <= limit) continue;
    say(fmt::format("voltaic: {} {} {}{}: mean error {:.3f} is above {}", g.gpu, g.op, g.mode,
                    g.origin.empty() ? "" : " " + g.origin, g.mape, limit));
    return kExitValidation;
  }
  return kExitOk;
}

}  // namespace

int run_validate(const CommandLine& line) {
  if (line.measured.empty()) throw UsageError("validate: expected --measured FILE...");
  const double limit = line.fail_above ? fraction(*line.fail_above) : -1;
  if (!line.report.empty() && line.report == line.output)
    throw UsageError("--report: expected another file than --output");
  keep_apart("--report", line.report, line.measured);
  keep_apart("--output", line.output, line.measured);
  Runner runner;
  const validation::Validation v = validation::validate(runner, line.measured, options_of(line));
  if (!line.report.empty()) write_file(line.report, validation::validation_html(v));
  if (line.json) {
    write_file(line.output, document(line, v));
  } else {
    write_file(line.output, line.csv ? validation::validation_csv(v)
                                     : validation::validation_page(v, page_style(line.no_color).width));
  }
  // Page and JSON carry the warnings themselves.
  if (line.csv && !line.quiet) {
    for (const auto& warning : v.warnings) say("voltaic: warning: " + warning);
    for (const auto& [reason, rows] : v.skipped) say(fmt::format("voltaic: skipped {}: {}", rows, reason));
  }
  return held_against(limit, v);
}

}  // namespace voltaic::tools
