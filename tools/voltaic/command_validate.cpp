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

}  // namespace

int run_validate(const CommandLine& line) {
  if (line.measured.empty()) throw UsageError("validate: expected --measured FILE...");
  if (line.split != "all" && line.split != "fit" && line.split != "report")
    throw UsageError("--split: expected fit, report or all");
  const double limit = line.fail_above.empty() ? -1 : fraction(line.fail_above);
  Runner runner;
  const validation::Validation v = validation::validate(runner, line.measured, line.split);
  std::string text;
  if (line.json) {
    report::Envelope e;
    e.command = "validate";
    e.tool_version = VOLTAIC_VERSION;
    for (const auto& file : v.files) e.inputs.push_back({file, ""});
    e.request = {{"split", line.split}};
    text = report::document_json(e, validation::validation_json(v));
  } else {
    text = line.csv ? validation::validation_csv(v) : validation::validation_page(v, page_style(line.no_color).width);
  }
  write_file(line.output, text);
  if (limit >= 0 && v.pairs.empty()) {
    say("voltaic: no row could be predicted, so nothing was held against --fail-above");
    return kExitValidation;
  }
  if (limit >= 0) {
    for (const auto& g : v.groups) {
      if (g.mape <= limit) continue;
      say(fmt::format("voltaic: {} {} {}: mean error {:.3f} is above {}", g.gpu, g.op, g.mode, g.mape, limit));
      return kExitValidation;
    }
  }
  return kExitOk;
}

}  // namespace voltaic::tools
