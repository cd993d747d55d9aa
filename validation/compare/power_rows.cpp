// SPDX-License-Identifier: MIT
// Which of the tables with watts a file is, and what their readers share.
#include "validation/compare/power_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

/// Boards that these laboratories name otherwise than `voltaic list gpus`. The V100 with a limit of 250 W trains
/// batches that take more than 16 GB.
constexpr std::pair<std::string_view, std::string_view> kBoards[] = {
    {"v100-pcie (250 w)", "v100-pcie-32gb"},
    {"h200", "h200-sxm5-141gb"},
};

/// Peaks of benchmark suites with the mean power of whole runs, host phases included.
void skip_peaks(PowerReader& reader) {
  constexpr double kSteady = 0.1;  // deviation over mean of a board that does one thing
  for (std::size_t row = 0; row < reader.table().rows(); ++row) {
    const auto mean = reader.figure(row, "gpu_avg_W");
    const auto deviation = reader.table().number(row, "gpu_std_W");
    if (!mean || !deviation) {
      reader.skip(std::string(kNoWatts));
    } else if (*deviation > kSteady * *mean) {
      reader.skip(std::string(kIdleInside));
    } else {
      reader.skip("the workload behind a peak is not known");
    }
  }
}

}  // namespace

std::optional<PowerTable> power_table(const CsvTable& table) {
  if (has_all(table, {"op", "implementation", "precision", "gpu", "shape_from_config", "kernel_us", "gpu_avg_W"})) {
    return PowerTable::operators;
  }
  if (has_all(table, {"gpu", "inner_iters", "flop_per_byte", "bw_gbps", "gflops", "clock_mhz", "power_w"})) {
    return PowerTable::roofline;
  }
  if (has_all(table, {"kind", "model", "dataset", "gpu", "num_gpus", "batch_per_gpu", "power_limit_W", "time_s",
                      "avg_gpu_W"})) {
    return PowerTable::training;
  }
  if (has_all(table, {"workload", "kind", "gpu", "measured", "unit", "gpu_avg_W", "gpu_std_W"})) {
    return PowerTable::peaks;
  }
  return std::nullopt;
}

std::string PowerReader::gpu(std::size_t row) const {
  const auto spelling = table_.text(row, "gpu");
  std::vector<std::string> files;
  std::copy_if(out_.options.gpus.begin(), out_.options.gpus.end(), std::back_inserter(files), is_gpu_file);
  std::string ours = gpu_of(spelling, files);
  if (!ours.empty()) return ours;
  const std::string word = table_word(spelling);
  const auto* at = std::find_if(std::begin(kBoards), std::end(kBoards), [&](const auto& b) { return b.first == word; });
  return at == std::end(kBoards) ? std::string() : std::string(at->second);
}

Request PowerReader::request(const std::string& gpu) const {
  Request request;
  request.gpu = gpu;
  request.calibration = out_.options.calibration;
  return request;
}

bool PowerReader::wants(std::string_view op, std::string_view key) {
  if (!wants_(op)) return skip("left out by --op"), false;
  const bool fit = is_fit_key(key);
  if (fit ? out_.options.split == "report" : out_.options.split == "fit") {
    return skip(fit ? "fit row" : "report row"), false;
  }
  return true;
}

void PowerReader::miss(const std::string& reason, const std::string& family, std::size_t row) {
  skip(reason);
  ++out_.missed[{family, one_line(table_.text(row, "gpu"))}];
}

std::optional<double> PowerReader::figure(std::size_t row, const char* column) const {
  const auto value = table_.number(row, column);
  constexpr double kLeast = 1e-9, kMost = 1e12;
  if (value && !(*value >= kLeast && *value <= kMost)) {
    throw ConfigError(table_.place(row), column, fmt::format("expected a number above 0, got {}", *value));
  }
  return value;
}

void answer(Pair& pair, double predicted, double half_width) {
  pair.predicted = predicted;
  pair.low = std::max(0.0, 1 - half_width) * predicted;
  pair.high = (1 + half_width) * predicted;
}

double power_half_width(const arch::ResolvedGpu& gpu, std::string_view name) {
  constexpr double kUnknown = 0.15;
  return gpu.calibration.number_or(fmt::format("intervals.{}.half_width", name), kUnknown);
}

void predict_power_rows(Runner& runner, const CsvTable& table, PowerTable kind,
                        const std::function<bool(std::string_view)>& wants, Validation& out) {
  PowerReader reader(runner, table, wants, out);
  switch (kind) {
    case PowerTable::operators: return predict_operator_rows(reader);
    case PowerTable::roofline: return predict_roofline_rows(reader);
    case PowerTable::training: return predict_training_rows(reader);
    case PowerTable::peaks: return skip_peaks(reader);
  }
}

}  // namespace voltaic::validation
