// SPDX-License-Identifier: MIT
#include "validation/fit/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "arch/units/error.hpp"
#include "sim/cost/single_op.hpp"
#include "validation/fit/observed.hpp"
#include "validation/fit/row_times.hpp"

namespace voltaic::validation {
namespace {

constexpr int kFolds = 4;
/// A family whose rows left out are further off than this on average is not described by the model: nothing is kept.
constexpr double kHopeless = 0.5;

/// All that one run carries from step to step.
class Calibrator {
 public:
  explicit Calibrator(const CalibrateOptions& options) { run_.options = options; }

  CalibrationRun run() {
    read_tables();
    settle_boards();
    const RowTimes times(run_.boards);
    for (std::size_t f = 0; f < kFitFamilies; ++f) fit(static_cast<FitFamily>(f), times);
    const auto products = [](const FamilyFit& f) { return f.family == FitFamily::linear; };
    if (std::any_of(run_.families.begin(), run_.families.end(), products)) keep_clock_spread();
    if (!stack_rows_.empty()) {
      run_.stacks =
          fit_stacks(run_.options.gpus, stack_rows_, run_.options.intervals_only, document_, run_.fitted, run_.skipped);
    }
    refuse_nothing();
    return std::move(run_);
  }

 private:
  void read_tables();
  void take(KernelRows read);
  void take(StackRows read);
  void settle_boards();
  void refuse_nothing() const;
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;
  void fit(FitFamily family, const RowTimes& times);
  void share_clock();
  std::vector<FitRow> rows_of(FitFamily family, const RowTimes& times) const;
  std::vector<FitRow> observed(const std::vector<FitRow>& rows, const RowTimes& times, FamilyFit& out) const;
  void left_out(const std::vector<FitRow>& known, const std::vector<FitRow>& chosen, const RowTimes& times,
                const arch::CalibrationDocument& prior, FamilyFit& out);
  void keep_values(const FamilyFit& fit);
  void keep_spread(const FamilyFit& fit);
  void keep_clock_spread();
  void set_quantiles(const std::string& path, const ResidualSpread& s);

  CalibrationRun run_;
  arch::CalibrationDocument document_;  ///< Priors, then what was fitted.
  std::vector<KernelRow> rows_;         ///< Fit rows of the boards.
  std::vector<StackRow> stack_rows_;    ///< Fit and report rows of the boards.
};

void Calibrator::read_tables() {
  const auto& gpus = run_.options.gpus;
  if (gpus.empty()) throw UsageError("calibrate: expected --gpu NAME, the board the measurements are from");
  std::vector<std::string> files;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(files), is_gpu_file);
  for (const auto& file : run_.options.files) {
    const CsvTable table = CsvTable::read(file);
    if (const auto kind = stack_table(table)) {
      take(read_stack_rows(table, *kind, files));
    } else if (is_kernel_table(table)) {
      take(read_kernel_rows(table, files));
    } else {
      count_reason(run_.skipped, "no table of single operations: nothing is fitted on whole networks",
                   static_cast<std::int64_t>(table.rows()));
    }
  }
}

void Calibrator::take(KernelRows read) {
  const auto& gpus = run_.options.gpus;
  for (const auto& [reason, n] : read.skipped) count_reason(run_.skipped, reason, n);
  for (KernelRow& row : read.rows) {
    if (std::find(gpus.begin(), gpus.end(), row.gpu) == gpus.end()) {
      count_reason(run_.skipped, "another GPU", 1);
    } else if (!row.fit) {
      count_reason(run_.skipped, "report row", 1);
    } else if (row.dtype != "fp32") {
      count_reason(run_.skipped, "no fp32", 1);
    } else {
      row.origin = arch::calibration_key(row.origin);
      rows_.push_back(std::move(row));
    }
  }
}

/// Report rows stay: how well they are met stands beside the fit, which does not see them.
void Calibrator::take(StackRows read) {
  const auto& gpus = run_.options.gpus;
  for (const auto& [reason, n] : read.skipped) count_reason(run_.skipped, reason, n);
  for (StackRow& row : read.rows) {
    if (std::find(gpus.begin(), gpus.end(), row.gpu) == gpus.end()) {
      count_reason(run_.skipped, "another GPU", 1);
    } else if (std::holds_alternative<kernel::ConvProblem>(row.work)) {
      count_reason(run_.skipped, "convolutions of suites are not fitted", 1);
    } else {
      if (!row.fit) count_reason(run_.skipped, "report row", 1);
      stack_rows_.push_back(std::move(row));
    }
  }
}

void Calibrator::refuse(const std::string& expected, const std::string& found) const {
  std::string why;
  for (const auto& [reason, n] : run_.skipped)
    why += fmt::format("{}{} ({})", why.empty() ? "; skipped: " : ", ", reason, n);
  throw UsageError(fmt::format("{} in {}, found {}{}", expected,
                               one_line(fmt::format("{}", fmt::join(run_.options.files, ", "))), found, why));
}

/// The boards with the sessions of their single operations.
void Calibrator::settle_boards() {
  const auto& gpus = run_.options.gpus;
  std::map<std::string, std::set<std::string>> sessions;
  for (const auto& row : rows_) sessions[row.gpu].insert(row.origin);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const arch::ResolvedGpu gpu = arch::resolve_gpu(gpus[i]);
    const auto architecture = gpu.spec.architecture;
    if (i > 0 && architecture != run_.architecture) {
      throw UsageError(fmt::format("--gpu: expected boards of one architecture, got {} ({}) and {} ({})", gpus[0],
                                   arch::to_string(run_.architecture), gpus[i], arch::to_string(architecture)));
    }
    run_.architecture = architecture;
    const auto& own = sessions[gpus[i]];
    const auto is_own = [&](const StackRow& row) { return row.fit && row.gpu == gpus[i]; };
    const bool stacks = std::any_of(stack_rows_.begin(), stack_rows_.end(), is_own);
    if (own.empty() && !stacks) {
      refuse(fmt::format("--gpu {}: expected rows to fit on", one_line(gpus[i])), "none");
    }
    if (!own.empty()) run_.boards.push_back({arch::calibration_key(gpu.board), {own.begin(), own.end()}, gpus[i]});
  }
  // A file that completes what ships begins there; one that replaces it begins at the priors.
  document_ = arch::CalibrationDocument::built_in(run_.architecture, !run_.options.alone);
}

/// Tables of which no law has enough rows.
void Calibrator::refuse_nothing() const {
  if (!run_.families.empty() || !run_.stacks.laws.empty()) return;
  refuse(fmt::format("calibrate: expected fit rows of at least {} shapes of one law", kLeastShapes),
         run_.stacks.too_few.empty() ? std::string("none") : fmt::format("{}", fmt::join(run_.stacks.too_few, ", ")));
}

std::vector<FitRow> Calibrator::rows_of(FitFamily family, const RowTimes& times) const {
  std::vector<FitRow> out;
  std::map<std::string, std::vector<double>> sizes;
  for (const KernelRow& row : rows_) {
    if (family_of(row) != family) continue;
    out.push_back({&row, times.place_of(row), fold_of(row.key, kFolds), {}});
    sizes[row.op].push_back(row.size);
  }
  if (run_.options.keep_below_percentile < 100) {
    std::map<std::string, double> limit;
    for (auto& [op, values] : sizes) {
      std::sort(values.begin(), values.end());
      limit[op] = quantile(values, run_.options.keep_below_percentile / 100);
    }
    std::erase_if(out, [&](const FitRow& r) { return r.row->size > limit[r.row->op]; });
  }
  return out;
}

/// Rows with the kernel that was seen; rows of tables that name none keep the model's choice.
std::vector<FitRow> Calibrator::observed(const std::vector<FitRow>& rows, const RowTimes& times, FamilyFit& out) const {
  std::vector<arch::ResolvedGpu> gpus;
  for (std::size_t p = 0; p < times.places().size(); ++p) gpus.push_back(times.gpu(p, document_));
  std::vector<FitRow> known;
  for (const FitRow& row : rows) {
    FitRow copy = row;
    if (row.row->kind != RowKind::vector && row.row->observed.known()) {
      auto launches = observed_launches(*row.row, gpus[row.place]);
      if (!launches) {
        ++out.no_kernel;
        continue;
      }
      copy.launches = std::move(*launches);
    }
    known.push_back(std::move(copy));
  }
  return known;
}

/// Residuals of a family's rows under values of its parameters.
class Residuals {
 public:
  Residuals(const RowTimes& times, const arch::CalibrationDocument& document,
            const std::vector<FitParameter>& parameters, const std::string& reference, std::vector<FitRow> rows)
      : times_(times), document_(document), parameters_(parameters), reference_(reference), rows_(std::move(rows)) {}

  std::size_t size() const { return rows_.size(); }
  void operator()(std::span<const double> values, std::span<double> out) const {
    arch::CalibrationDocument document = document_;
    apply(parameters_, values, reference_, document);
    times_.predict(document, rows_, out);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double ratio = out[i] / rows_[i].row->measured_s;
      // A time that is a quantile under an unknown delay is one for relative errors.
      out[i] = rows_[i].row->kind == RowKind::convolution ? ratio - 1 : std::log(ratio);
    }
  }

 private:
  const RowTimes& times_;
  const arch::CalibrationDocument& document_;
  const std::vector<FitParameter>& parameters_;
  std::string reference_;
  std::vector<FitRow> rows_;
};

std::vector<double> values_of(const FitResult& fit) {
  std::vector<double> out;
  for (const auto& p : fit.parameters) out.push_back(p.value);
  return out;
}

/// A board has one clock: batched products begin with the one that dense ones showed under lasting load.
void Calibrator::share_clock() {
  for (const FitBoard& board : run_.boards) {
    const auto tree = document_.tree(board.name);
    for (const char* name : {"clock_share", "ramp_s"}) {
      const double value = tree.number(fmt::format("gemm_simt.linear.{}", name));
      document_.set(fmt::format("boards.{}.gemm_simt.bmm.{}", board.name, name), value);
    }
  }
}

void Calibrator::fit(FitFamily family, const RowTimes& times) {
  std::vector<FitRow> rows = rows_of(family, times);
  if (rows.empty()) return;
  FamilyFit out;
  out.family = family;
  if (family == FitFamily::batched && !run_.options.intervals_only) share_clock();
  const arch::CalibrationDocument prior = document_;
  choose_launches(times, document_, rows);
  std::vector<FitRow> known = observed(rows, times, out);
  out.rows = static_cast<std::int64_t>(known.size());
  const auto parameters =
      run_.options.intervals_only ? std::vector<FitParameter>{} : fit_plan(family, document_, run_.boards);
  const Residuals residuals(times, prior, parameters, run_.boards.front().name, known);
  out.fit = least_squares(parameters, residuals.size(), [&](auto v, auto r) { residuals(v, r); });
  apply(parameters, values_of(out.fit), run_.boards.front().name, document_);
  arch::CalibrationDocument chosen;  // what the choice adds to the file
  const bool choice = !run_.options.intervals_only;
  if (choice && family == FitFamily::convolution) out.choice = fit_convolution_choice(times, rows, document_);
  if (choice && (family == FitFamily::linear || family == FitFamily::batched)) {
    out.product_choice = fit_product_choice(times, known, family == FitFamily::linear, document_, chosen);
  }
  choose_launches(times, document_, rows);
  left_out(known, rows, times, prior, out);
  if (out.refused) {
    document_ = prior;
  } else {
    run_.fitted.overlay(chosen);
    keep_values(out);
  }
  keep_spread(out);
  run_.families.push_back(std::move(out));
}

/// Each fold predicted by a fit on the others, which starts from the whole fit. Prior and fit are compared on the same
/// rows: a fit that is worse there is refused, and the spread is then the prior's.
void Calibrator::left_out(const std::vector<FitRow>& known, const std::vector<FitRow>& chosen, const RowTimes& times,
                          const arch::CalibrationDocument& prior, FamilyFit& out) {
  const std::string& reference = run_.boards.front().name;
  std::vector<FitParameter> parameters;
  for (const auto& p : out.fit.parameters) parameters.push_back(p.parameter);
  const std::vector<double> start = values_of(out.fit);
  Timings predicted(chosen.size());
  Timings before(chosen.size());
  std::vector<FitRow> prior_rows = chosen;
  choose_launches(times, prior, prior_rows);
  times.predict(prior, prior_rows, before);
  for (int fold = 0; fold < kFolds; ++fold) {
    std::vector<FitRow> others, own;

    std::vector<std::size_t> index;
    for (const FitRow& r : known) {
      if (r.fold != fold) others.push_back(r);
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i].fold != fold) continue;
      own.push_back(chosen[i]);
      index.push_back(i);
    }
    arch::CalibrationDocument document = prior;
    if (!others.empty()) {
      const Residuals residuals(times, prior, parameters, reference, std::move(others));
      FitOptions options;
      options.max_iterations = 3;
      const FitResult fit = least_squares(
          parameters, residuals.size(), [&](auto v, auto r) { residuals(v, r); }, options, start);
      apply(parameters, values_of(fit), reference, document);
    }
    Timings timings(own.size());
    times.predict(document, own, timings);
    for (std::size_t i = 0; i < own.size(); ++i) predicted[index[i]] = timings[i];
  }

  out.spread = spread_of(chosen, predicted, before, times);
  out.kernels = kernels_of(chosen, predicted);
  double cost_prior = 0, cost = 0;
  for (const auto& s : out.spread) {
    cost_prior += s.mape_prior * static_cast<double>(s.rows);
    cost += s.mape * static_cast<double>(s.rows);
  }
  // The prior may have seen these very rows; a fit that left them out may be a little behind it.
  constexpr double kAllowance = 1.05;
  out.refused = cost > cost_prior * kAllowance || cost > kHopeless * static_cast<double>(chosen.size());
  if (!out.refused) return;
  out.spread = spread_of(prior_rows, before, before, times);
  out.kernels = kernels_of(prior_rows, before);
}

void Calibrator::keep_values(const FamilyFit& fit) {
  std::vector<FitParameter> parameters;
  std::vector<double> values;
  for (const auto& p : fit.fit.parameters) {
    // What came from another family stands in no shipped file yet.
    const bool carried = fit.family == FitFamily::batched && p.parameter.path.find(".sessions.") == std::string::npos &&
                         (p.parameter.path.ends_with("bmm.clock_share") || p.parameter.path.ends_with("bmm.ramp_s"));
    if (!p.determined && !carried) continue;
    parameters.push_back(p.parameter);
    values.push_back(p.value);
  }
  const std::string& reference = run_.boards.front().name;
  apply(parameters, values, reference, run_.fitted);
  for (const ChoiceBias& b : fit.choice.biases) run_.fitted.set(b.path, b.value);
}

void Calibrator::keep_spread(const FamilyFit& fit) {
  const std::string& reference = run_.boards.front().name;
  constexpr std::int64_t kEnoughRows = 20;
  for (const ResidualSpread& s : fit.spread) {
    if (s.shapes < kEnoughRows || s.mape > kHopeless) continue;
    const std::string tail = fmt::format("single_op.{}.measured_over_predicted", s.op);
    const std::string session = s.session.empty() ? "" : fmt::format("sessions.{}.", s.session);
    set_quantiles(fmt::format("boards.{}.{}{}", s.gpu, session, tail), s);
    // Where a call's session is not known, the board's first session stands for it.
    const auto board =
        std::find_if(run_.boards.begin(), run_.boards.end(), [&](const auto& b) { return b.name == s.gpu; });
    if (board->sessions.front() != s.session) continue;
    if (!s.session.empty()) set_quantiles(fmt::format("boards.{}.{}", s.gpu, tail), s);
    if (s.gpu == reference) set_quantiles(tail, s);
  }
  for (const FitBoard& board : run_.boards) {
    const auto own = [&](const ResidualSpread& s) { return s.gpu == board.name && s.shapes >= kEnoughRows; };
    if (std::any_of(fit.spread.begin(), fit.spread.end(), own)) {
      run_.fitted.set(fmt::format("extrapolation.measured_boards.{}", board.name), 1.0);
    }
  }
  for (const KernelSpread& k : fit.kernels) {
    if (k.rows < kEnoughRows || k.half_width > 2 * kHopeless) continue;
    run_.fitted.set(fmt::format("intervals.{}.half_width", k.family), k.half_width);
    run_.fitted.set(fmt::format("intervals.{}.correlation", k.family), k.correlation);
    run_.fitted.set(fmt::format("intervals.{}.longest_s", k.family), k.longest_s);
  }
}

/// How far the sessions of a board lie apart in clock, for kernels of some milliseconds: what a run whose session is
/// not known may be off by.
void Calibrator::keep_clock_spread() {
  constexpr double kTypical = 0.01;  // seconds of load
  for (const FitBoard& board : run_.boards) {
    double least = 1e300, most = 0;
    for (const auto& session : board.sessions) {
      const auto tree = document_.tree(board.name, session);
      const auto law = [&](const char* name) { return tree.number(fmt::format("gemm_simt.linear.{}", name)); };
      const auto clocks = arch::resolve_gpu(board.gpu).spec.clocks;
      const double settled = std::min(clocks.sustained, clocks.boost) / clocks.boost * law("clock_share");
      const double x = kTypical / law("ramp_s");
      const double share = std::max(settled, (law("start_share") + settled * x) / (1 + x));
      least = std::min(least, share);
      most = std::max(most, share);
    }
    // What other boards showed may happen here too: the spread only widens.
    const double known = document_.tree(board.name).number("intervals.sustained_clock.half_width");
    if (1 - least / most > known) {
      run_.fitted.set(fmt::format("boards.{}.intervals.sustained_clock.half_width", board.name), 1 - least / most);
    }
  }
}

void Calibrator::set_quantiles(const std::string& path, const ResidualSpread& s) {
  run_.fitted.set(path + ".low", s.low);
  run_.fitted.set(path + ".high", s.high);
}

}  // namespace

CalibrationRun calibrate(const CalibrateOptions& options) {
  return Calibrator(options).run();
}

}  // namespace voltaic::validation
