// SPDX-License-Identifier: MIT
// Fits the named parameters of the model to measured single operations.
//
// Rows are single operations, and kernels of serving stacks (stack_fit.hpp). Only fit rows are used (crc32 of the shape
// key modulo 10 below 6). Families are fitted one after another: first the time of kernels whose name was observed
// (chosen by the model where the table names none), then the library's choice. The spread of each family is that of
// rows left out: the fit rows in folds, each predicted with parameters fitted on the other folds. The library's choice
// and the priors have seen all fit rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "arch/calibration_document.hpp"
#include "validation/fit/conv_choice_fit.hpp"
#include "validation/fit/plan.hpp"
#include "validation/fit/product_choice_fit.hpp"
#include "validation/fit/residual_spread.hpp"
#include "validation/fit/stack_fit.hpp"

namespace voltaic::validation {

struct CalibrateOptions {
  std::vector<std::string> files;
  std::vector<std::string> gpus;       ///< Boards of one architecture or their files, the reference first.
  std::string source;                  ///< What the tables are, for the file's "source" members.
  std::string date;                    ///< Of the file.
  bool alone = false;                  ///< Begin at the priors, and lay the file over them; else at what ships.
  bool intervals_only = false;         ///< Fit no value: quantiles and half widths of what the fit begins at.
  double keep_below_percentile = 100;  ///< Fit rows larger than this percentile of their operation's size are left out.
};

struct FamilyFit {
  FitFamily family{};
  std::int64_t rows = 0;       ///< Used for the time of kernels.
  std::int64_t no_kernel = 0;  ///< Left out: their kernel is not in the model.
  FitResult fit;
  bool refused = false;  ///< Worse than the prior on rows left out: every value is kept.
  std::vector<ResidualSpread> spread;
  std::vector<KernelSpread> kernels;
  ChoiceFit choice;  ///< Convolutions: biases of the library's choice.
  ProductChoiceFit product_choice;
};

struct CalibrationRun {
  CalibrateOptions options;
  arch::Architecture architecture{};
  std::vector<FitBoard> boards;
  std::vector<FamilyFit> families;
  StackFit stacks;
  std::vector<std::pair<std::string, std::int64_t>> skipped;
  arch::CalibrationDocument fitted;  ///< What was fitted, alone: the file.
};

/// Throws ConfigError for unknown boards or tables, UsageError for boards of several architectures or without rows.
CalibrationRun calibrate(const CalibrateOptions& options);

std::string calibration_file(const CalibrationRun& run);  ///< Contents of --out.
std::string calibration_page(const CalibrationRun& run, int width);
std::string calibration_json(const CalibrationRun& run);  ///< The `result` member of the JSON envelope.

}  // namespace voltaic::validation
