// SPDX-License-Identifier: MIT
// How sure an answer is: the error of each kernel family, combined over a step.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/loader.hpp"
#include "sim/report/prediction.hpp"

namespace voltaic {

/// Time that one kernel family spends in a step, multiplying in one type.
struct FamilyTime {
  std::string_view family;
  DataType math = DataType::fp32;
  Seconds time;
};

/// Half widths per family from calibration (`intervals`), and what widens them (`extrapolation`).
///     half = board * sqrt( sum over families (sum over types (t * h * type))^2 + (t_host * h_host)^2 )
/// Errors are taken as fully correlated within a family (one wrong constant moves all its kernels) and independent
/// between families.
class IntervalModel {
 public:
  explicit IntervalModel(const arch::ResolvedGpu& gpu);
  /// `host`: time in which no kernel runs. What was extrapolated is said in `notes`, one line each.
  report::Interval combine(std::span<const FamilyTime> families, Seconds host, Seconds total,
                           std::vector<std::string>& notes) const;

 private:
  double half_width(std::string_view family, bool& known) const;
  bool type_measured(std::string_view family, DataType math) const;

  std::map<std::string, double, std::less<>> half_widths_;
  std::map<std::string, std::vector<std::string>, std::less<>> types_;
  std::string board_note_, modified_note_;
  double board_factor_ = 1;  ///< Board and modification together.
  double type_factor_ = 1;
  double unknown_share_ = 0;
};

}  // namespace voltaic
