// SPDX-License-Identifier: MIT
// Predicted times of serving-stack rows under a calibration document that is being fitted.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arch/calibration_document.hpp"
#include "arch/loader.hpp"
#include "sim/cost/stack_call.hpp"
#include "validation/compare/stack_rows.hpp"

namespace voltaic::validation {

/// A board under a protocol.
struct StackPlace {
  std::size_t board = 0;
  std::string name;  ///< Of the board in the calibration.
  std::string gpu;   ///< Name or file, as rows have it.
  cost::CallProtocol protocol;
};

/// A row with what it launches, and where it was measured: an index into the places of StackTimes.
struct StackFitRow {
  const StackRow* row = nullptr;
  std::size_t place = 0;
  int fold = 0;
  std::vector<kernel::Launch> launches;
  std::string refused;  ///< Why the model cannot take the row.
};

using StackTimings = std::vector<cost::StackCall::Timing>;

class StackTimes {
 public:
  StackTimes(const std::vector<std::string>& gpus, const std::vector<StackRow>& rows);

  const std::vector<StackPlace>& places() const { return places_; }
  /// Index of the place; the number of places when it is none.
  std::size_t place_of(const StackRow& row) const;
  const arch::ResolvedGpu& board(std::size_t place) const { return boards_[places_[place].board]; }
  /// The calibration as the laws see it there.
  arch::ParameterTree tree(std::size_t place, const arch::CalibrationDocument& document) const;
  std::unique_ptr<cost::StackCall> call(std::size_t place, const arch::CalibrationDocument& document) const;

  /// Replaces the launches by those of the kernels that the library takes under `document`; a row that cannot be taken
  /// says why and keeps the launches it has.
  void lower(const arch::CalibrationDocument& document, std::span<StackFitRow> rows) const;
  /// What the clocks of each row's stack see, launches as they stand. Pure; runs from several threads.
  StackTimings predict(const arch::CalibrationDocument& document, std::span<const StackFitRow> rows) const;

 private:
  using Calls = std::vector<std::unique_ptr<cost::StackCall>>;
  Calls calls(const arch::CalibrationDocument& document, std::span<const StackFitRow> rows) const;

  std::vector<arch::ResolvedGpu> boards_;  ///< Specs; the calibration is set per call.
  std::vector<StackPlace> places_;
};

}  // namespace voltaic::validation
