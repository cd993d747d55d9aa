// SPDX-License-Identifier: MIT
// Predicted times of measured rows under a calibration document that is being fitted.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "arch/calibration_document.hpp"
#include "arch/loader.hpp"
#include "sim/cost/single_op.hpp"
#include "validation/fit/plan.hpp"

namespace voltaic::validation {

/// A row with what it launches, and where it was measured: an index into the places of RowTimes.
struct FitRow {
  const KernelRow* row = nullptr;
  std::size_t place = 0;
  int fold = 0;
  std::vector<kernel::Launch> launches;
};

/// One (board, session) of the fit.
struct FitPlace {
  std::size_t board = 0;
  std::string name, session;  ///< Of the board in the calibration.
  std::string gpu;            ///< Name or file, as rows have it.
};

class RowTimes {
 public:
  explicit RowTimes(const std::vector<FitBoard>& boards);

  const std::vector<FitPlace>& places() const { return places_; }
  /// Index of the place; the number of places when it is none.
  std::size_t place_of(const KernelRow& row) const;
  /// The GPU as the models see it there.
  arch::ResolvedGpu gpu(std::size_t place, const arch::CalibrationDocument& document) const;
  /// What the events of each row see, launches as they stand. Pure; runs from several threads.
  void predict(const arch::CalibrationDocument& document, std::span<const FitRow> rows,
               std::span<cost::SingleOp::Timing> timings) const;
  /// The seconds alone.
  void predict(const arch::CalibrationDocument& document, std::span<const FitRow> rows,
               std::span<double> seconds) const;

 private:
  std::vector<arch::ResolvedGpu> boards_;  ///< Specs; the calibration is set per call.
  std::vector<FitPlace> places_;
};

/// Replaces the launches by those of the kernel that the model takes under `document`.
void choose_launches(const RowTimes& times, const arch::CalibrationDocument& document, std::span<FitRow> rows);

}  // namespace voltaic::validation
