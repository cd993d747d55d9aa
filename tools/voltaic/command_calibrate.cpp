// SPDX-License-Identifier: MIT
// calibrate: the model's named parameters fitted to measured kernels.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "arch/units/error.hpp"
#include "sim/report/json.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/output.hpp"
#include "validation/fit/calibrate.hpp"

namespace voltaic::tools {
namespace {

/// Names in any case; files as they are.
std::vector<std::string> boards(const std::string& list) {
  std::vector<std::string> out = words(list, "--gpu");
  for (auto& name : out) {
    if (!validation::is_gpu_file(name)) name = validation::table_word(name);
  }
  return out;
}

void check_date(const std::string& date) {
  const bool shaped = date.size() == 10 && date[4] == '-' && date[7] == '-' &&
                      std::all_of(date.begin(), date.end(), [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
  if (!shaped) throw UsageError(fmt::format("--date: expected YYYY-MM-DD, got '{}'", one_line(date)));
}

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

int run_calibrate(const CommandLine& line) {
  if (line.measured.empty()) throw UsageError("calibrate: expected --measured FILE...");
  validation::CalibrateOptions options;
  options.files = line.measured;
  options.gpus = boards(line.gpu);
  options.source = line.source.empty() ? fmt::format("{}", fmt::join(line.measured, ", ")) : line.source;
  options.date = line.date.empty() ? today() : line.date;
  check_date(options.date);
  if (!(line.below_percentile >= 1)) throw UsageError("--below-percentile: expected a number from 1 to 100");
  if (!line.only.empty() && line.only != "intervals") {
    throw UsageError(fmt::format("--only: expected intervals, got '{}'", one_line(line.only)));
  }
  keep_apart("--out", line.out, line.measured);
  keep_apart("--output", line.output, line.measured);
  if (!line.out.empty()) keep_apart("--output", line.output, {line.out});
  std::optional<tbb::global_control> limit;
  if (line.jobs > 0) {
    limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(line.jobs));
  }
  options.alone = line.alone;
  options.intervals_only = line.only == "intervals";
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
