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

/// Time that one kernel, with all its repetitions, spends in a step.
struct FamilyTime {
  std::string_view family;
  DataType math = DataType::fp32;
  Seconds time;  ///< Of all repetitions: they err alike.
  Seconds each;  ///< Of one; 0: not known.
};

/// Half widths per family from calibration (`intervals`), and what widens them (`extrapolation`).
///     half = board * sqrt( sum over families [ rho (sum t h)^2 + (1 - rho) sum (t h)^2 ] + (t_simt h_clock)^2 +
///     (t_host h_host)^2 )
/// over the distinct kernels of a family; h is the 90 % half width of the family's kernels and rho the correlation that
/// their residuals showed where rows were left out of the fit (1 where nothing was fitted: one wrong constant moves
/// all). h_clock: how far two measuring sessions of one board lay apart in clock; it moves all products on CUDA cores
/// at once.
class IntervalModel {
 public:
  explicit IntervalModel(const arch::ResolvedGpu& gpu);
  /// `host`: time in which no kernel runs. What was extrapolated is said in `notes`, one line each.
  report::Interval combine(std::span<const FamilyTime> families, Seconds host, Seconds total,
                           std::vector<std::string>& notes) const;

 private:
  struct Spread {
    double half_width = 0;
    double correlation = 1;
    double longest_s = 0;  ///< Longest kernel that was measured; 0: not known.
  };
  Spread spread(std::string_view family, bool& known) const;
  bool type_measured(std::string_view family, DataType math) const;

  std::map<std::string, Spread, std::less<>> spreads_;
  std::map<std::string, std::vector<std::string>, std::less<>> types_;
  std::string board_note_, modified_note_;
  double board_factor_ = 1;  ///< Board and modification together.
  double type_factor_ = 1;
  double unknown_share_ = 0;
};

}  // namespace voltaic
