// SPDX-License-Identifier: MIT
#include "validation/fit/least_squares.hpp"

#include <ceres/ceres.h>
#include <tbb/parallel_for.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"

namespace voltaic::validation {
namespace {

constexpr double kQuantile = 1.645;    ///< 5 % and 95 % of a normal distribution.
constexpr double kUndetermined = 0.8;  ///< Share of the prior's spread that must be left for "not determined".
constexpr double kOutlier = 10;        ///< A residual that is no number counts as this one.

double to_inner(const FitParameter& p, double value) {
  return p.logarithmic ? std::log(value) : value;
}
double to_value(const FitParameter& p, double inner) {
  const double value = p.logarithmic ? std::exp(inner) : inner;
  return std::clamp(value, p.lower, p.upper);
}

/// sign(r) sqrt(rho(r)): its square is the robust cost.
double damped(double r, double s) {
  if (!std::isfinite(r)) r = kOutlier;
  const double x = r / s;
  // sqrt(1 + x^2) - 1 without cancellation.
  const double rho = 2 * s * s * x * x / (std::sqrt(1 + x * x) + 1);
  return std::copysign(std::sqrt(rho), r);
}

class Problem final : public ceres::CostFunction {
 public:
  Problem(const std::vector<FitParameter>& parameters, std::size_t residuals, const ResidualFunction& function,
          const FitOptions& options, double noise, std::vector<bool> kept)
      : parameters_(parameters),
        data_(residuals),
        function_(function),
        scale_(options.scale),
        noise_(noise),
        kept_(std::move(kept)) {
    set_num_residuals(static_cast<int>(data_ + parameters.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(parameters.size()));
  }

  std::vector<double> residuals_at(const double* inner) const {
    std::vector<double> values(parameters_.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_value(parameters_[i], inner[i]);
    std::vector<double> out(data_ + parameters_.size());
    function_(values, std::span<double>(out).first(data_));
    for (std::size_t i = 0; i < data_; ++i) out[i] = damped(out[i], scale_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const FitParameter& p = parameters_[i];
      out[data_ + i] = noise_ * (inner[i] - to_inner(p, p.prior)) / p.width;
    }
    return out;
  }

  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    const double* x = blocks[0];
    const std::vector<double> base = residuals_at(x);
    std::copy(base.begin(), base.end(), residuals);
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    const std::size_t n = parameters_.size();
    double* jacobian = jacobians[0];  // row-major, residual by parameter
    tbb::parallel_for(std::size_t{0}, n, [&](std::size_t p) {
      if (kept_[p]) {
        for (std::size_t i = 0; i < base.size(); ++i) jacobian[i * n + p] = i == data_ + p ? 1 : 0;
        return;
      }
      std::vector<double> moved(x, x + n);
      const FitParameter& parameter = parameters_[p];
      // Laws round powers to single precision; a smaller step would differentiate that.
      constexpr double kStep = 1e-3;
      double step = parameter.logarithmic ? kStep : kStep * std::max(1e-3, std::abs(parameter.upper - parameter.lower));
      if (moved[p] + step > to_inner(parameter, parameter.upper)) step = -step;
      moved[p] += step;
      const std::vector<double> there = residuals_at(moved.data());
      for (std::size_t i = 0; i < base.size(); ++i) jacobian[i * n + p] = (there[i] - base[i]) / step;
    });
    return true;
  }

 private:
  const std::vector<FitParameter>& parameters_;
  std::size_t data_;
  const ResidualFunction& function_;
  double scale_, noise_;
  std::vector<bool> kept_;  ///< Stay where they are.
};

double mean_cost(const std::vector<double>& damped_residuals, std::size_t data) {
  double sum = 0;
  for (std::size_t i = 0; i < data; ++i) sum += damped_residuals[i] * damped_residuals[i];
  return sum / static_cast<double>(std::max<std::size_t>(data, 1));
}

int solve(Problem& cost, const std::vector<FitParameter>& parameters, std::vector<double>& x, int max_iterations) {
  ceres::Problem::Options ownership;
  ownership.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem problem(ownership);
  problem.AddResidualBlock(&cost, nullptr, x.data());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    problem.SetParameterLowerBound(x.data(), static_cast<int>(i), to_inner(parameters[i], parameters[i].lower));
    problem.SetParameterUpperBound(x.data(), static_cast<int>(i), to_inner(parameters[i], parameters[i].upper));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = max_iterations;
  options.function_tolerance = 1e-5;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return static_cast<int>(summary.iterations.size());
}

/// Standard deviations of the inner parameters: inverse of J^T J, which holds the priors, times the noise squared.
Eigen::VectorXd deviations(const Problem& cost, const std::vector<double>& x, std::size_t rows, double noise) {
  const auto n = static_cast<Eigen::Index>(x.size());
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> jacobian(static_cast<Eigen::Index>(rows), n);
  std::vector<double> residuals(rows);
  const double* block = x.data();
  double* rows_out = jacobian.data();
  cost.Evaluate(&block, residuals.data(), &rows_out);
  const Eigen::MatrixXd inverse = (jacobian.transpose() * jacobian).ldlt().solve(Eigen::MatrixXd::Identity(n, n));
  return inverse.diagonal().cwiseMax(0.0).cwiseSqrt() * noise;
}

}  // namespace

FitResult least_squares(const std::vector<FitParameter>& parameters, std::size_t residuals,
                        const ResidualFunction& function, const FitOptions& options, std::span<const double> start) {
  const std::size_t n = parameters.size();
  std::vector<double> x(n), prior(n);
  for (std::size_t i = 0; i < n; ++i) {
    const FitParameter& p = parameters[i];
    ensure(p.lower <= p.prior && p.prior <= p.upper && p.width > 0 && (!p.logarithmic || p.lower > 0),
           "a fit parameter's prior lies outside its bounds");
    prior[i] = to_inner(p, p.prior);
    x[i] = start.empty() ? prior[i] : to_inner(p, std::clamp(start[i], p.lower, p.upper));
  }
  std::vector<bool> kept(n, false);
  const Problem probe(parameters, residuals, function, options, 0, kept);
  FitResult out;
  out.cost_prior = mean_cost(probe.residuals_at(prior.data()), residuals);
  out.cost = mean_cost(probe.residuals_at(x.data()), residuals);
  const auto spread = [&] { return std::max(1e-4, std::sqrt(std::min(out.cost, out.cost_prior))); };
  out.noise = spread();
  Eigen::VectorXd sigma = Eigen::VectorXd::Constant(static_cast<Eigen::Index>(n), 1e9);
  if (n > 0 && residuals > 0) {
    // The second round lets the others settle once what the data do not determine is back at its prior.
    for (const bool last : {false, true}) {
      Problem cost(parameters, residuals, function, options, out.noise, kept);
      out.iterations += solve(cost, parameters, x, last ? options.max_iterations / 3 + 1 : options.max_iterations);
      out.cost = mean_cost(cost.residuals_at(x.data()), residuals);
      out.noise = spread();
      if (last) break;
      const Problem final_cost(parameters, residuals, function, options, out.noise, kept);
      // Each parameter uses up one observation.
      const double free = std::max(1.0, static_cast<double>(residuals) - static_cast<double>(n));
      sigma = deviations(final_cost, x, residuals + n, out.noise) * std::sqrt(static_cast<double>(residuals) / free);
      for (std::size_t i = 0; i < n; ++i) {
        kept[i] = sigma[static_cast<Eigen::Index>(i)] > kUndetermined * parameters[i].width;
        if (kept[i]) x[i] = prior[i];
      }
    }
  } else {
    kept.assign(n, true);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const FitParameter& p = parameters[i];
    const double s = std::min(sigma[static_cast<Eigen::Index>(i)], p.width);
    FittedParameter f;
    f.parameter = p;
    f.determined = !kept[i];
    f.value = to_value(p, x[i]);
    f.low = to_value(p, x[i] - kQuantile * s);
    f.high = to_value(p, x[i] + kQuantile * s);
    const double upper = to_inner(p, p.upper), lower = to_inner(p, p.lower);
    f.at_bound = f.determined && (upper - x[i] < 1e-6 * (upper - lower) || x[i] - lower < 1e-6 * (upper - lower));
    out.parameters.push_back(std::move(f));
  }
  return out;
}

}  // namespace voltaic::validation
