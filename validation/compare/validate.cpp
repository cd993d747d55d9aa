// SPDX-License-Identifier: MIT
#include "validation/compare/validate.hpp"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "arch/units/error.hpp"
#include "validation/compare/drawn_rows.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/llm_rows.hpp"
#include "validation/compare/ops_rows.hpp"
#include "validation/compare/power_rows.hpp"
#include "validation/compare/predict_stack.hpp"
#include "validation/compare/published_rows.hpp"

namespace voltaic::validation {
namespace {

/// Reasons that say nothing about the model: what the options left out, and what holds no measurement.
constexpr std::string_view kFitRow = "fit row", kReportRow = "report row", kOtherGpu = "left out by --gpu",
                           kOtherOp = "left out by --op", kPeer = "peer", kConfig = "config", kHostOnly = "host only",
                           kOtherEngine = "held against --engine analytic only";

bool is_left_out(std::string_view reason) {
  constexpr std::array kLeftOut{kFitRow,    kReportRow,  kOtherGpu,  kOtherOp,         kPeer,     kConfig,
                                kNoTime,    kHostOnly,   kSuspect,   kSuperseded,      kCeiling,  kNoWatts,
                                kReference, kIdleInside, kCompiling, kUnknownOperands, kNotDrawn, kOtherEngine};
  return std::find(kLeftOut.begin(), kLeftOut.end(), reason) != kLeftOut.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool has_all(const CsvTable& table, std::initializer_list<const char*> columns) {
  return std::all_of(columns.begin(), columns.end(), [&](const char* c) { return table.has(c); });
}

/// Predictions of others for the same rows.
bool is_peer_table(const CsvTable& table) {
  return has_all(table, {"model", "gpu", "predictor", "pred_e2e_ms"}) ||
         has_all(table, {"model", "gpu", "name", "kind", "repeat", "roofline_fw_us"});
}
/// Shapes of models.
bool is_config_table(const CsvTable& table) {
  return has_all(table, {"model", "arch", "layers", "hidden", "heads"});
}

/// Keeps the rows that --gpu and --op name, counts the others, and remembers which names were met.
class Filter {
 public:
  explicit Filter(const ValidateOptions& options) : ops_(options.ops) {
    for (const auto& gpu : options.gpus) gpus_.push_back(table_word(gpu));
  }

  void apply(CsvTable& table, Validation& out) {
    const char* column = table.has("gpu") ? "gpu" : "hardware";
    if (!gpus_.empty() && table.has(column)) {
      const auto dropped = table.keep([&](std::size_t row) { return wants_gpu(lower(table.text(row, column))); });
      skip(out, std::string(kOtherGpu), static_cast<std::int64_t>(dropped));
    }
    if (!ops_.empty() && is_kernel_table(table) && !stack_table(table)) {
      const auto dropped = table.keep([&](std::size_t row) { return met(ops_, table.text(row, "op"), met_ops_); });
      skip(out, std::string(kOtherOp), static_cast<std::int64_t>(dropped));
    }
  }
  /// Rows of other tables know their operation once they are predicted.
  void apply(Validation& out, std::size_t first) {
    if (ops_.empty()) return;
    const auto from = out.pairs.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = std::remove_if(from, out.pairs.end(), [&](const Pair& p) { return !met(ops_, p.op, met_ops_); });
    skip(out, std::string(kOtherOp), std::distance(end, out.pairs.end()));
    out.pairs.erase(end, out.pairs.end());
  }
  bool wants_op(std::string_view op) { return ops_.empty() || met(ops_, op, met_ops_); }
  bool wants_networks() { return ops_.empty() || met(ops_, "network", met_ops_); }
  /// A name that no row bears is a slip of the user.
  void check() const {
    for (const auto& gpu : gpus_) {
      if (!met_gpus_.contains(gpu)) throw UsageError(fmt::format("--gpu: no table has rows of '{}'", one_line(gpu)));
    }
    for (const auto& op : ops_) {
      if (!met_ops_.contains(op)) throw UsageError(fmt::format("--op: no table has rows of '{}'", one_line(op)));
    }
  }

 private:
  /// The table's spelling or ours.
  bool wants_gpu(const std::string& word) {
    if (met(gpus_, word, met_gpus_)) return true;
    const auto [at, fresh] = names_.try_emplace(word);
    if (fresh) at->second = gpu_of(word);
    return !at->second.empty() && met(gpus_, at->second, met_gpus_);
  }
  static bool met(const std::vector<std::string>& wanted, std::string_view word,
                  std::set<std::string, std::less<>>& seen) {
    if (std::find(wanted.begin(), wanted.end(), word) == wanted.end()) return false;
    seen.emplace(word);
    return true;
  }

  std::vector<std::string> gpus_, ops_;
  std::map<std::string, std::string> names_;  ///< Ours by the table's.
  std::set<std::string, std::less<>> met_gpus_, met_ops_;
};

void predict_networks(Runner& runner, const CsvTable& table, Filter& filter, Validation& out) {
  const auto rows = static_cast<std::int64_t>(table.rows());
  if (!filter.wants_networks()) return skip(out, std::string(kOtherOp), rows);
  if (out.options.split == "fit") return skip(out, std::string(kReportRow), rows);
  predict_network_rows(runner, table, out);
}

/// Published whole-model times: nothing is fitted on them.
void predict_models(Runner& runner, const CsvTable& table, Filter& filter, Validation& out) {
  if (out.options.split == "fit") return skip(out, std::string(kReportRow), static_cast<std::int64_t>(table.rows()));
  const std::size_t first = out.pairs.size();
  predict_llm_rows(runner, table, out);
  filter.apply(out, first);
}

void predict_published(Runner& runner, const CsvTable& table, PublishedTable kind, Filter& filter, Validation& out) {
  if (!filter.wants_networks()) return skip(out, std::string(kOtherOp), static_cast<std::int64_t>(table.rows()));
  predict_published_rows(runner, table, kind, out);
}

/// Calls inside networks pool by pass; host times alone do not.
void predict_operations(Runner& runner, const CsvTable& table, Filter& filter, Validation& out) {
  const std::size_t first = out.pairs.size();
  predict_ops_rows(runner, table, out.options.split, out);
  filter.apply(out, first);
  for (std::size_t i = first; i < out.pairs.size(); ++i) {
    Pair& p = out.pairs[i];
    if (p.family.empty() && p.op != "host") p.family = "traced " + p.mode;
  }
}

/// Tables whose protocols know one engine.
bool is_known(const CsvTable& table) {
  return power_table(table) || published_table(table) || is_llm_table(table) || is_ops_table(table);
}

void predict_table(Runner& runner, CsvTable table, Filter& filter, Validation& out) {
  if (is_peer_table(table)) return skip(out, std::string(kPeer), static_cast<std::int64_t>(table.rows()));
  if (is_config_table(table)) return skip(out, std::string(kConfig), static_cast<std::int64_t>(table.rows()));
  filter.apply(table, out);
  if (is_network_table(table)) return predict_networks(runner, table, filter, out);
  const bool kernels = stack_table(table) || is_kernel_table(table);
  if (out.options.engine != cost::EngineKind::analytic && !kernels && is_known(table)) {
    return skip(out, std::string(kOtherEngine), static_cast<std::int64_t>(table.rows()));
  }
  if (const auto kind = power_table(table)) {
    return predict_power_rows(
        runner, table, *kind, [&](std::string_view op) { return filter.wants_op(op); }, out);
  }
  if (const auto kind = published_table(table)) return predict_published(runner, table, *kind, filter, out);
  if (is_llm_table(table)) return predict_models(runner, table, filter, out);
  if (is_ops_table(table)) return predict_operations(runner, table, filter, out);
  if (const auto kind = stack_table(table)) {
    return predict_stack_rows(
        runner, table, *kind, [&](std::string_view op) { return filter.wants_op(op); }, out);
  }
  if (is_kernel_table(table)) return predict_kernel_rows(runner, table, out);
  throw UnsupportedError(table.path() +
                         ": this kind of table is not read: expected columns of kernels (op,gpu,...,latency_us with "
                         "b,m,n,k or rows,cols or b,c_in,c_out,ksize,h_in,stride,pad), of networks "
                         "(model,gpu,n_gpus,mode,seq,batch,option,e2e_ms), of traced operations, of a serving "
                         "stack's kernels or of watts (docs/calibration.md)");
}

}  // namespace

void skip(Validation& out, const std::string& reason, std::int64_t rows) {
  if (rows == 0) return;
  const auto at = std::lower_bound(out.skipped.begin(), out.skipped.end(), reason,
                                   [](const auto& entry, const std::string& r) { return entry.first < r; });
  if (at != out.skipped.end() && at->first == reason) {
    at->second += rows;
  } else {
    out.skipped.insert(at, {reason, rows});
  }
}

std::int64_t Validation::asked() const {
  auto times = static_cast<std::int64_t>(pairs.size());
  for (const auto& [reason, rows] : skipped) times += is_left_out(reason) ? 0 : rows;
  return times;
}

Validation validate(Runner& runner, const std::vector<std::string>& files, const ValidateOptions& options) {
  Validation out;
  out.files = files;
  out.options = options;
  Filter filter(options);
  const int cores = tbb::this_task_arena::max_concurrency();
  tbb::task_arena arena(options.jobs > 0 ? std::min(options.jobs, cores) : cores);
  arena.execute([&] {
    for (const auto& file : files) predict_table(runner, CsvTable::read(file), filter, out);
  });
  filter.check();
  out.groups = group(out.pairs);
  out.pooled = pool(out);
  out.ratios = ratios(out.ratio_pairs);
  out.warnings = cancellations(out);
  return out;
}

}  // namespace voltaic::validation
