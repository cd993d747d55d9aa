// SPDX-License-Identifier: MIT
#include "validation/fit/conv_choice_fit.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <cmath>
#include <limits>

#include "sim/cost/conv_choice.hpp"
#include "sim/cost/single_op.hpp"

namespace voltaic::validation {
namespace {

/// A bias is believed near its prior: one of this size costs as much as a per mille of error.
constexpr double kWidth = 0.15, kPriorCost = 1e-3;
constexpr double kSteps[] = {0.2, 0.1, 0.05, 0.02};
constexpr int kRounds = 4;

/// What each candidate of one row would decide and cost.
struct Options {
  std::vector<std::size_t> kernel;  ///< Index into the law's kernels.
  std::vector<double> score;        ///< ln of the seconds the library decides on.
  std::vector<double> error;        ///< |predicted / measured - 1| if it is taken.
};

double mean_error(const std::vector<Options>& rows, const std::vector<double>& bias) {
  double sum = 0;
  for (const Options& row : rows) {
    double least = std::numeric_limits<double>::infinity(), error = 0;
    for (std::size_t i = 0; i < row.kernel.size(); ++i) {
      const double score = row.score[i] + bias[row.kernel[i]];
      if (score >= least) continue;
      least = score;
      error = row.error[i];
    }
    sum += error;
  }
  return sum / static_cast<double>(rows.size());
}

std::vector<Options> options_of(const RowTimes& times, std::span<const FitRow> rows,
                                const arch::CalibrationDocument& document) {
  struct Machine {
    explicit Machine(arch::ResolvedGpu resolved)
        : gpu(std::move(resolved)), choice(gpu), law(gpu.calibration.at("convolution")), protocol(gpu) {}
    arch::ResolvedGpu gpu;
    cost::ConvChoice choice;
    cost::SquareConv law;
    cost::SingleOp protocol;
  };
  std::vector<std::unique_ptr<Machine>> machines;
  for (std::size_t p = 0; p < times.places().size(); ++p) {
    machines.push_back(std::make_unique<Machine>(times.gpu(p, document)));
  }
  std::vector<Options> out(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    const Machine& m = *machines[rows[i].place];
    const kernel::ConvProblem& problem = rows[i].row->convolution;
    if (!m.choice.is_square(problem)) return;
    for (const auto& candidate : m.choice.square_candidates(problem)) {
      std::size_t index = 0;
      while (m.law.kernels()[index].name != candidate.kernel->name) ++index;
      const auto launches = kernel::conv_launches(cost::to_kernel(*candidate.kernel, problem), m.gpu.spec);
      const double seconds = m.protocol.time(launches).time.value;
      out[i].kernel.push_back(index);
      out[i].score.push_back(std::log(candidate.seconds));
      out[i].error.push_back(std::abs(seconds / rows[i].row->measured_s - 1));
    }
  });
  std::erase_if(out, [](const Options& o) { return o.kernel.empty(); });
  return out;
}

}  // namespace

ChoiceFit fit_convolution_choice(const RowTimes& times, std::span<const FitRow> rows,
                                 arch::CalibrationDocument& document) {
  ChoiceFit out;
  const std::vector<Options> options = options_of(times, rows, document);
  if (options.empty()) return out;
  const cost::SquareConv law(document.tree(times.places().front().name).at("convolution"));
  std::vector<double> prior, bias;
  for (const auto& kernel : law.kernels()) {
    prior.push_back(std::log(kernel.bias));
    out.biases.push_back({fmt::format("convolution.square.kernels.{}.choice_bias", kernel.name), 0, prior.back()});
  }
  bias = prior;
  const auto cost = [&](const std::vector<double>& b) {
    double penalty = 0;
    for (std::size_t i = 0; i < b.size(); ++i) penalty += (b[i] - prior[i]) * (b[i] - prior[i]) / (kWidth * kWidth);
    return mean_error(options, b) + kPriorCost * penalty;
  };
  out.error_prior = mean_error(options, prior);
  double best = cost(bias);
  for (int round = 0; round < kRounds; ++round) {
    for (const double step : kSteps) {
      for (std::size_t i = 0; i < bias.size(); ++i) {
        for (const double way : {step, -step}) {
          std::vector<double> moved = bias;
          moved[i] += way;
          const double there = cost(moved);
          if (there >= best) continue;
          best = there;
          bias = std::move(moved);
        }
      }
    }
  }
  out.error = mean_error(options, bias);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    out.biases[i].value = bias[i];
    document.set(out.biases[i].path, bias[i]);
  }
  return out;
}

}  // namespace voltaic::validation
