// SPDX-License-Identifier: MIT
#include "validation/fit/stack_fit.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "validation/fit/plan.hpp"
#include "validation/fit/stack_spread.hpp"

namespace voltaic::validation {
namespace {

constexpr int kFolds = 3;
constexpr int kRounds = 2;
constexpr int kIterations = 12, kMoreIterations = 5, kFoldIterations = 2;  // later fits start near their end
using Rows = std::vector<StackFitRow>;
using Index = std::vector<std::size_t>;

/// At most `most` of the indices, evenly by the size of their rows.
Index evenly(Index members, std::size_t most, const std::vector<const StackRow*>& rows) {
  if (members.size() <= most) return members;
  std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(rows[a]->size, rows[a]->key, a) < std::tie(rows[b]->size, rows[b]->key, b);
  });
  Index out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(members[i * members.size() / most]);
  std::sort(out.begin(), out.end());
  return out;
}

/// The rows that are predicted: of large tables a part, evenly by size.
std::vector<const StackRow*> thinned(const std::vector<const StackRow*>& rows, const StackTimes& times,
                                     std::size_t most) {
  std::map<std::tuple<std::size_t, std::string_view, std::string_view>, Index> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    groups[{times.place_of(*rows[i]), rows[i]->call, rows[i]->dtype}].push_back(i);
  }
  Index all;
  for (auto& [key, members] : groups) {
    const Index some = evenly(std::move(members), most, rows);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<const StackRow*> out;
  for (const std::size_t i : all) out.push_back(rows[i]);
  return out;
}

std::int64_t shapes_of(const Rows& rows, const Index& members) {
  std::set<std::string_view> shapes;
  for (const std::size_t i : members) shapes.insert(rows[i].row->key);
  return static_cast<std::int64_t>(shapes.size());
}

bool same_kernels(const Rows& a, const Rows& b) {
  const auto same = [](const StackFitRow& x, const StackFitRow& y) {
    return std::equal(x.launches.begin(), x.launches.end(), y.launches.begin(), y.launches.end(),
                      [](const auto& p, const auto& q) { return p.name == q.name && p.ctas() == q.ctas(); });
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

Rows pick(const Rows& rows, const Index& members) {
  Rows out;
  out.reserve(members.size());
  for (const std::size_t i : members) out.push_back(rows[i]);
  return out;
}

/// Residuals of rows whose kernels stand, under values of parameters.
class Residuals {
 public:
  Residuals(const StackTimes& times, const arch::CalibrationDocument& document,
            const std::vector<FitParameter>& parameters, Rows rows)
      : times_(times), document_(document), parameters_(parameters), rows_(std::move(rows)) {}

  std::size_t size() const { return rows_.size(); }
  void operator()(std::span<const double> values, std::span<double> out) const {
    arch::CalibrationDocument document = document_;
    for (std::size_t i = 0; i < parameters_.size(); ++i) document.set(parameters_[i].path, values[i]);
    const StackTimings timings = times_.predict(document, rows_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out[i] = std::log(std::max(timings[i].time.value, 1e-12) / rows_[i].row->measured_s);
    }
  }

 private:
  const StackTimes& times_;
  const arch::CalibrationDocument& document_;
  const std::vector<FitParameter>& parameters_;
  Rows rows_;
};

/// Those of the parameters that the rows feel at all.
std::vector<FitParameter> exercised(const StackTimes& times, const arch::CalibrationDocument& document,
                                    const std::vector<FitParameter>& parameters, const Rows& rows) {
  const Residuals residuals(times, document, parameters, rows);
  std::vector<double> values;
  values.reserve(parameters.size());
  for (const auto& p : parameters) values.push_back(p.prior);
  std::vector<double> base(residuals.size());
  residuals(values, base);
  std::vector<char> felt(parameters.size(), 0);
  tbb::parallel_for(std::size_t{0}, parameters.size(), [&](std::size_t p) {
    constexpr double kStep = 1.02;
    std::vector<double> moved = values;
    const double up = values[p] * kStep;
    moved[p] = up <= parameters[p].upper ? up : values[p] / kStep;
    std::vector<double> there(base.size());
    residuals(moved, there);
    felt[p] = there != base ? 1 : 0;
  });
  std::vector<FitParameter> out;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (felt[p] != 0) out.push_back(parameters[p]);
  }
  return out;
}

std::vector<double> values_of(const FitResult& fit) {
  std::vector<double> out;
  for (const auto& p : fit.parameters) out.push_back(p.value);
  return out;
}

double mape(const Rows& rows, const StackTimings& timings, const Index& members) {
  double sum = 0;
  for (const std::size_t i : members) sum += std::abs(timings[i].time.value / rows[i].row->measured_s - 1);
  return sum / static_cast<double>(std::max<std::size_t>(members.size(), 1));
}

class Fitter {
 public:
  Fitter(const StackTimes& times, arch::CalibrationDocument& document, arch::CalibrationDocument& fitted)
      : times_(times), document_(document), fitted_(fitted) {}

  StackFit run(const std::vector<const StackRow*>& fit, const std::vector<const StackRow*>& report, bool spreads_only,
               std::vector<std::pair<std::string, std::int64_t>>& skipped);

 private:
  Rows lowered(const std::vector<const StackRow*>& rows,
               std::vector<std::pair<std::string, std::int64_t>>* skipped) const;
  void fit(StackLawFit& out, const Index& members);
  FitResult rounds(const std::vector<FitParameter>& parameters, const arch::CalibrationDocument& prior, Rows& sample);
  void left_out(const FitResult& fit, const arch::CalibrationDocument& prior, const Rows& sample, const Index& members);

  const StackTimes& times_;
  arch::CalibrationDocument& document_;
  arch::CalibrationDocument& fitted_;
  Rows rows_;             ///< Fit rows, with the kernels of the document at hand.
  StackTimings timings_;  ///< By numbers fitted without the row.
};

Rows Fitter::lowered(const std::vector<const StackRow*>& rows,
                     std::vector<std::pair<std::string, std::int64_t>>* skipped) const {
  Rows out;
  for (const StackRow* row : rows) out.push_back({row, times_.place_of(*row), fold_of(row->key, kFolds), {}, {}});
  times_.lower(document_, out);
  std::erase_if(out, [&](const StackFitRow& row) {
    if (!row.refused.empty() && skipped != nullptr) count_reason(*skipped, row.refused, 1);
    return !row.refused.empty();
  });
  // A shape beyond what a double counts has no time to be held against.
  const StackTimings timings = times_.predict(document_, out);
  std::size_t i = 0;
  std::erase_if(out, [&](const StackFitRow&) {
    const double t = timings[i++].time.value;
    return !std::isfinite(t) || !(t > 0);
  });
  return out;
}

/// Kernels and times by turns; ends early where the kernels stay.
FitResult Fitter::rounds(const std::vector<FitParameter>& parameters, const arch::CalibrationDocument& prior,
                         Rows& sample) {
  FitResult fit;
  for (int round = 0; round < kRounds; ++round) {
    const Residuals residuals(times_, prior, parameters, sample);
    FitOptions options;
    options.max_iterations = round == 0 ? kIterations : kMoreIterations;
    fit = least_squares(
        parameters, residuals.size(), [&](auto v, auto r) { residuals(v, r); }, options, values_of(fit));
    document_ = prior;
    for (const auto& p : fit.parameters) document_.set(p.parameter.path, p.value);
    Rows again = sample;
    times_.lower(document_, again);
    const bool settled = same_kernels(sample, again);
    sample = std::move(again);
    if (settled) break;
  }
  return fit;
}

/// Each fold predicted by a fit on the others, which starts from the whole one; kernels are chosen with its values.
void Fitter::left_out(const FitResult& fit, const arch::CalibrationDocument& prior, const Rows& sample,
                      const Index& members) {
  std::vector<FitParameter> parameters;
  for (const auto& p : fit.parameters) parameters.push_back(p.parameter);
  for (int fold = 0; fold < kFolds; ++fold) {
    Rows others;
    std::copy_if(sample.begin(), sample.end(), std::back_inserter(others),
                 [&](const StackFitRow& r) { return r.fold != fold; });
    Index own;
    std::copy_if(members.begin(), members.end(), std::back_inserter(own),
                 [&](std::size_t i) { return rows_[i].fold == fold; });
    arch::CalibrationDocument document = prior;
    if (!others.empty()) {
      const Residuals residuals(times_, prior, parameters, std::move(others));
      FitOptions options;
      options.max_iterations = kFoldIterations;
      const FitResult part = least_squares(
          parameters, residuals.size(), [&](auto v, auto r) { residuals(v, r); }, options, values_of(fit));
      for (const auto& p : part.parameters) document.set(p.parameter.path, p.value);
    }
    Rows rows = pick(rows_, own);
    times_.lower(document, rows);
    const StackTimings timings = times_.predict(document, rows);
    for (std::size_t i = 0; i < own.size(); ++i) {
      timings_[own[i]] = timings[i];
      rows_[own[i]].launches = std::move(rows[i].launches);
    }
  }
}

void Fitter::fit(StackLawFit& out, const Index& members) {
  std::vector<const StackRow*> all;
  for (const auto& r : rows_) all.push_back(r.row);
  Rows sample = pick(rows_, evenly(members, kMostFitRows, all));
  out.fitted_on = static_cast<std::int64_t>(sample.size());
  const arch::CalibrationDocument prior = document_;
  const auto parameters = exercised(times_, prior, stack_plan(out.law, times_, prior, sample), sample);
  if (parameters.empty()) return;
  const Rows before = pick(rows_, members);
  const StackTimings prior_timings = timings_;
  out.fit = rounds(parameters, prior, sample);
  left_out(out.fit, prior, sample, members);
  out.mape = mape(rows_, timings_, members);
  // What ships may have seen these very rows; a fit that left them out may be a little behind it.
  constexpr double kAllowance = 1.05;
  out.refused = out.mape > kAllowance * out.mape_prior;
  if (out.refused) {
    document_ = prior;
    timings_ = prior_timings;
    for (std::size_t i = 0; i < members.size(); ++i) rows_[members[i]] = before[i];
    return;
  }
  for (const auto& p : out.fit.parameters) {
    if (p.determined) fitted_.set(p.parameter.path, p.value);
  }
}

StackFit Fitter::run(const std::vector<const StackRow*>& fit_rows, const std::vector<const StackRow*>& report_rows,
                     bool spreads_only, std::vector<std::pair<std::string, std::int64_t>>& skipped) {
  StackFit out;
  rows_ = lowered(fit_rows, &skipped);
  Rows report = lowered(report_rows, nullptr);
  timings_ = times_.predict(document_, rows_);
  const StackTimings before = timings_;
  const StackTimings report_before = times_.predict(document_, report);
  std::map<StackLaw, Index> laws;
  const auto law = laws_of(times_, document_, rows_);
  for (std::size_t i = 0; i < rows_.size(); ++i) laws[law[i]].push_back(i);
  for (const auto& [name, members] : laws) {
    StackLawFit one;
    one.law = name;
    one.rows = static_cast<std::int64_t>(members.size());
    one.mape = one.mape_prior = mape(rows_, timings_, members);
    const std::int64_t shapes = shapes_of(rows_, members);
    if (shapes < kLeastShapes) {
      out.too_few.push_back(fmt::format("{}: {} shapes", to_string(name), shapes));
      continue;
    }
    if (!spreads_only) fit(one, members);
    out.laws.push_back(std::move(one));
  }
  if (!spreads_only) times_.lower(document_, report);
  const StackTimings report_after = spreads_only ? report_before : times_.predict(document_, report);
  out.spread = stack_spread(times_, document_, rows_, timings_, before, report, report_after, report_before);
  out.kernels = stack_kernels(times_, document_, rows_, timings_, out.spread);
  return out;
}

}  // namespace

void count_reason(std::vector<std::pair<std::string, std::int64_t>>& list, const std::string& reason,
                  std::int64_t rows) {
  for (auto& [known, n] : list) {
    if (known != reason) continue;
    n += rows;
    return;
  }
  if (rows > 0) list.emplace_back(reason, rows);
}

StackFit fit_stacks(const std::vector<std::string>& gpus, const std::vector<StackRow>& rows, bool spreads_only,
                    arch::CalibrationDocument& document, arch::CalibrationDocument& fitted,
                    std::vector<std::pair<std::string, std::int64_t>>& skipped) {
  const StackTimes times(gpus, rows);
  std::vector<const StackRow*> fit, report;
  for (const StackRow& row : rows) (row.fit ? fit : report).push_back(&row);
  Fitter fitter(times, document, fitted);
  StackFit out =
      fitter.run(thinned(fit, times, kMostSpreadRows), thinned(report, times, kMostReportRows), spreads_only, skipped);
  keep_stack_spread(out.spread, out.kernels, fitted);
  return out;
}

}  // namespace voltaic::validation
