// SPDX-License-Identifier: MIT
// Columns of the published tables, read into one kind of row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "validation/compare/llm_rows.hpp"
#include "validation/compare/published_rows.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

constexpr std::string_view kSeveralGpus = "several GPUs";
constexpr std::string_view kServed = "served by an inference server: its queue and network are in the time";

std::optional<double> positive(const CsvTable& table, std::size_t row, const char* column) {
  const auto value = table.number(row, column);
  if (value && !(*value > 0)) throw ConfigError(table.place(row), column, "expected a figure above 0");
  return value;
}

/// A count that tables may write with a decimal point; nullopt for an empty cell and for what is no whole number.
std::optional<std::int64_t> count(const CsvTable& table, std::size_t row, const char* column) {
  constexpr double kMost = 1e12;
  const auto value = table.number(row, column);
  if (!value || !(*value >= 1) || *value > kMost || std::floor(*value) != *value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

void read_names(const CsvTable& table, std::size_t row, PublishedRow& out) {
  out.model = table.text(row, "model");
  out.submodel = table.text(row, "submodel");
  out.framework = table.text(row, "framework");
  out.gpu = table.text(row, "gpu");
  out.mode = table.text(row, "mode");
  out.precision = table.text(row, "precision");
  out.size = table.text(row, "seq_or_size");
  out.flags = table.text(row, "flags");
  out.unit = table.text(row, "unit");
  // "1 MIG slice(s)" is one device; no count is one too.
  const auto gpus = numbers_of(table.text(row, "num_gpus"));
  out.gpus = gpus.empty() ? 1 : static_cast<std::int64_t>(std::min(gpus.front(), 1e9));
}

void read_reference_model(const CsvTable& table, std::size_t row, PublishedRow& out) {
  // Heading and container tell engines and data pipelines apart where the flags do not.
  out.flags += fmt::format("; {}; {}", table.text(row, "heading"), table.text(row, "container"));
  // Steps without gradients, in tables that stand among those of training.
  if (table.text(row, "heading").find("Evaluation performance") != std::string_view::npos) out.mode = "inference";
  out.batch = count(table, row, "batch_per_gpu");
  out.throughput = positive(table, row, "throughput");
  out.latency_s = measured_time(table, row, "lat_avg_ms", 1e-3);
  if (!out.latency_s) out.latency_s = measured_time(table, row, "lat_p50_ms", 1e-3);
}

void read_flagperf_inference(const CsvTable& table, std::size_t row, PublishedRow& out) {
  out.framework = table.text(row, "implementation");
  out.batch = count(table, row, "batch");
  out.throughput = positive(table, row, "p_infer_core");
  out.unit = "samples/s";
}

void read_figure(const CsvTable& table, std::size_t row, PublishedRow& out) {
  out.flags = table.text(row, "variant");
  out.batch = count(table, row, "batch");
  out.throughput = positive(table, row, "value");
}

/// Offline is a rate, a single stream the latency of one sample.
std::string read_mlperf(const CsvTable& table, std::size_t row, PublishedRow& out) {
  if (out.mode == "training") return "a time to train, not a time per step";
  const auto scenario = table.text(row, "scenario");
  out.flags = fmt::format("{}; {}", scenario, table.text(row, "round"));
  if (scenario == "SingleStream") {
    // The column is a tail latency, whose unit differs by round: the mean is stated beside it where it is known.
    out.latency_s = measured_time(table, row, "latency_mean_ms", 1e-3);
    out.batch = 1;
    return out.latency_s ? "" : std::string(kNoTime);
  }
  if (scenario != "Offline" && scenario != "offline") return "scenarios of queries that arrive over time";
  out.batch = count(table, row, "batch_per_gpu");
  out.throughput = positive(table, row, "result");
  out.unit = "samples/s";
  return "";
}

}  // namespace

std::optional<PublishedTable> published_table(const CsvTable& table) {
  const auto has = [&](std::initializer_list<const char*> columns) { return has_all(table, columns); };
  if (!has({"model", "gpu", "num_gpus", "mode", "precision"})) return std::nullopt;
  if (has({"suite", "round", "scenario", "batch_per_gpu", "result", "result_unit"})) return PublishedTable::mlperf;
  if (has({"submodel", "framework", "batch_per_gpu", "seq_or_size", "flags", "throughput", "unit", "lat_avg_ms"})) {
    return PublishedTable::reference_models;
  }
  if (has({"task", "suite_version", "unit", "batch_per_gpu", "throughput"})) return PublishedTable::vendor_runs;
  if (has({"case", "fix_hp", "parallel", "throughput", "throughput_meaning"})) return PublishedTable::flagperf_training;
  if (has({"implementation", "batch", "p_infer_core"})) return PublishedTable::flagperf_inference;
  if (has({"batch", "variant", "value", "unit"})) return PublishedTable::figures;
  return std::nullopt;
}

std::string_view source_of(PublishedTable kind) {
  switch (kind) {
    case PublishedTable::reference_models: return "deeplearningexamples";
    case PublishedTable::vendor_runs: return "lambda";
    case PublishedTable::flagperf_training:
    case PublishedTable::flagperf_inference: return "flagperf";
    case PublishedTable::figures: return "figures";
    case PublishedTable::mlperf: return "mlperf";
  }
  return "";
}

std::string read_published_row(const CsvTable& table, PublishedTable kind, std::size_t row, PublishedRow& out) {
  read_names(table, row, out);
  if (out.mode != "training" && out.mode != "inference") {
    throw ConfigError(table.place(row), "mode",
                      fmt::format("expected training or inference, got '{}'", one_line(out.mode, 40)));
  }
  if (out.gpus > 1) return std::string(kSeveralGpus);
  switch (kind) {
    case PublishedTable::reference_models:
      if (out.flags.find("backend=") != std::string::npos ||
          table.text(row, "heading").find("Triton") != std::string_view::npos) {
        return std::string(kServed);
      }
      read_reference_model(table, row, out);
      break;
    case PublishedTable::vendor_runs:
      out.framework = "PyTorch";
      out.batch = count(table, row, "batch_per_gpu");
      out.throughput = positive(table, row, "throughput");
      break;
    case PublishedTable::flagperf_training:
      out.batch = count(table, row, "batch_per_gpu");
      out.throughput = positive(table, row, "throughput");
      out.unit = "samples/s";
      break;
    case PublishedTable::flagperf_inference: read_flagperf_inference(table, row, out); break;
    case PublishedTable::figures: read_figure(table, row, out); break;
    case PublishedTable::mlperf:
      if (std::string reason = read_mlperf(table, row, out); !reason.empty()) return reason;
      break;
  }
  return out.throughput || out.latency_s ? "" : std::string(kNoTime);
}

}  // namespace voltaic::validation
