// SPDX-License-Identifier: MIT
// How far predictions of rows left out of a fit lie from what was measured: by operation, for intervals of single
// calls, and by kernel family, for those of networks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validation/fit/row_times.hpp"

namespace voltaic::validation {

using Timings = std::vector<cost::SingleOp::Timing>;

/// Of sorted observations; the i-th of n splits the next one at i/(n+1). 1 where there are none.
double quantile(const std::vector<double>& sorted, double q);

/// Intraclass correlation by analysis of variance: how much of the residuals' variance lies between the groups.
double intraclass(const std::map<std::string, std::vector<double>>& groups);

/// Error of the rows that share board, operation and session, each predicted with parameters fitted without it.
struct ResidualSpread {
  std::string gpu, op, session;       ///< `op`: member of "single_op".
  std::int64_t rows = 0, shapes = 0;  ///< Rows, and distinct shapes among them.
  double mape_prior = 0, mape = 0, bias = 0;
  double low = 1, high = 1;  ///< 5 % and 95 % quantile of measured over predicted.
};

/// Error of kernels that are longer than their host floor: what a network's interval is made of.
struct KernelSpread {
  std::string family;  ///< Launch family: "gemm_simt", "elementwise".
  std::int64_t rows = 0;
  double half_width = 0;   ///< 90 % quantile of |ln(measured / predicted)|.
  double correlation = 0;  ///< Share of the error's variance that kernels of one name on one board have in common.
  double longest_s = 0;    ///< Longest call measured.
};

/// Statistics per board, session and operation. `predicted`: by fits that left the row out; `before`: by the priors.
std::vector<ResidualSpread> spread_of(const std::vector<FitRow>& rows, const Timings& predicted, const Timings& before,
                                      const RowTimes& times);

/// By launch family, rows whose kernel is longer than the host floor and dwarfs an unknown delay.
std::vector<KernelSpread> kernels_of(const std::vector<FitRow>& rows, const Timings& predicted);

}  // namespace voltaic::validation
