// SPDX-License-Identifier: MIT
// calibrate: the model's named parameters fitted to measured single operations.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "arch/units/error.hpp"
#include "sim/report/json.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/output.hpp"
#include "validation/fit/calibrate.hpp"

namespace voltaic::tools {
namespace {

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (comma != 0) out.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return out;
}

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

int run_calibrate(const CommandLine& line) {
  if (line.measured.empty()) throw UsageError("calibrate: expected --measured FILE...");
  validation::CalibrateOptions options;
  options.files = line.measured;
  options.gpus = split_list(line.gpu);
  options.source = line.source.empty() ? fmt::format("{}", fmt::join(line.measured, ", ")) : line.source;
  options.date = line.date.empty() ? today() : line.date;
  options.keep_below_percentile = line.below_percentile;
  const validation::CalibrationRun run = validation::calibrate(options);
  if (!line.out.empty()) write_file(line.out, validation::calibration_file(run));
  if (line.out == "-") return kExitOk;
  std::string text;
  if (line.json) {
    report::Envelope e;
    e.command = "calibrate";
    e.tool_version = VOLTAIC_VERSION;
    for (const auto& file : line.measured) e.inputs.push_back({file, ""});
    e.request = {{"gpu", line.gpu}, {"out", line.out}, {"source", options.source}, {"date", options.date}};
    text = report::document_json(e, validation::calibration_json(run));
  } else {
    text = validation::calibration_page(run, page_style(line.no_color).width);
  }
  write_file(line.output, text);
  return kExitOk;
}

}  // namespace voltaic::tools
