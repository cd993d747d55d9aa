// SPDX-License-Identifier: MIT
// Bounded robust least squares with priors, on any residual function (Levenberg-Marquardt of Ceres).
//
//     minimise  sum_i rho(r_i)  +  sum_p ( noise (x_p - prior_p) / width_p )^2        lower <= x <= upper
//     rho(r) = 2 s^2 (sqrt(1 + (r/s)^2) - 1)      quadratic below the scale s, linear beyond: outliers pull, but do not
//     drag
//
// x is the logarithm of parameters that span decades. `noise` is the spread of the residuals, so a prior weighs as one
// observation that far away: what the data do not determine stays where it was.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace voltaic::validation {

struct FitParameter {
  std::string path;  ///< In the calibration document.
  std::string unit;  ///< "s", "cycles", "" for shares and exponents.
  double prior = 0, lower = 0, upper = 1;
  double width = 0.5;       ///< Spread of the prior: of the logarithm, or absolute.
  bool logarithmic = true;  ///< Needs lower > 0.
};

struct FittedParameter {
  FitParameter parameter;
  double value = 0;
  double low = 0,
         high = 0;  ///< 90 % interval from curvature and spread; residuals are not independent, so it is a lower bound.
  bool determined = true;  ///< False: the data shrink the prior's spread by less than a fifth; the prior is kept.
  bool at_bound = false;
};

struct FitOptions {
  double scale = 0.04;  ///< s of the robust loss.
  int max_iterations = 40;
};

struct FitResult {
  std::vector<FittedParameter> parameters;
  double cost_prior = 0, cost = 0;  ///< Mean robust cost of the residuals at the priors and at the solution.
  double noise = 0;                 ///< Standard deviation of the residuals, outliers damped.
  int iterations = 0;
};

/// Fills `residuals` for the parameter values; must be pure, it runs from several threads. Values that make no sense
/// may give any finite residual.
using ResidualFunction = std::function<void(std::span<const double> values, std::span<double> residuals)>;

/// `start`: values to begin from (the priors where empty). Parameters whose derivative vanishes keep their prior.
FitResult least_squares(const std::vector<FitParameter>& parameters, std::size_t residuals,
                        const ResidualFunction& function, const FitOptions& options = {},
                        std::span<const double> start = {});

}  // namespace voltaic::validation
