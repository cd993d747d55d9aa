// SPDX-License-Identifier: MIT
// Fits the numbers of the serving-stack laws to tables of kernels as stacks and suites timed them: tensor-core
// products, attention, vector kernels, mixtures of experts.
//
// Law by law: the library's kernels are chosen with the numbers at hand, the times fitted with the kernels held, twice
// where the choice moved. The residual is ln(predicted / measured) over fit rows alone; at most kMostFitRows of a law
// are fitted on, taken evenly by size. The spread is that of fit rows left out, in three folds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "validation/fit/residual_spread.hpp"
#include "validation/fit/stack_plan.hpp"

namespace voltaic::validation {

inline constexpr std::size_t kMostFitRows = 1000;     ///< Of a law.
inline constexpr std::size_t kMostSpreadRows = 3000;  ///< Fit rows of a call of one release on one board.
inline constexpr std::size_t kMostReportRows = 1000;  ///< Report rows of the same.
inline constexpr std::int64_t kLeastShapes = 20;      ///< Distinct fit shapes of a law; fewer determine nothing.

/// Errors of one call of one release on one board.
struct StackSpread {
  std::string gpu;
  std::string stack;  ///< Member of "protocols": of the stack, or of how it timed where the stack is none we know.
  std::string release, call;
  std::int64_t rows = 0, shapes = 0;  ///< Fit rows, each predicted with numbers fitted without it.
  double mape_prior = 0, mape = 0, bias = 0;
  double low = 1, high = 1;    ///< 5 % and 95 % quantile of measured over predicted.
  std::vector<double> ratios;  ///< Measured over predicted, sorted.
  std::int64_t report_rows = 0;
  double report_mape_prior = 0, report_mape = 0, report_bias = 0;
  double report_covered = 0;  ///< Share of the report rows inside the quantiles.
  bool with_quantiles() const { return shapes >= kLeastShapes; }
};

struct StackLawFit {
  StackLaw law;
  std::int64_t rows = 0;       ///< Fit rows.
  std::int64_t fitted_on = 0;  ///< Of these, taken evenly by size.
  FitResult fit;
  bool refused = false;             ///< Worse than what it began with on rows left out: every value is kept.
  double mape_prior = 0, mape = 0;  ///< Of rows left out.
};

struct StackFit {
  std::vector<StackLawFit> laws;
  std::vector<StackSpread> spread;
  std::vector<KernelSpread> kernels;
  std::vector<std::string> too_few;  ///< "decoding tensorrt: 7 shapes".
};

/// Fits what the rows of `gpus` exercise, the first of them the reference. `document` holds what the fit begins at and
/// then what was fitted; `fitted` gets the changed values, quantiles and half widths alone. `spreads_only`: no value is
/// fitted, the errors are those of `document`.
StackFit fit_stacks(const std::vector<std::string>& gpus, const std::vector<StackRow>& rows, bool spreads_only,
                    arch::CalibrationDocument& document, arch::CalibrationDocument& fitted,
                    std::vector<std::pair<std::string, std::int64_t>>& skipped);

/// Adds to a counter of reasons.
void count_reason(std::vector<std::pair<std::string, std::int64_t>>& list, const std::string& reason,
                  std::int64_t rows);

}  // namespace voltaic::validation
