// SPDX-License-Identifier: MIT
#include "validation/fit/least_squares.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace voltaic::validation;

namespace {

/// y = a exp(-b x) at twenty points, as logarithmic residuals.
struct Decay {
  double a = 3, b = 0.7;
  void operator()(std::span<const double> p, std::span<double> r) const {
    for (std::size_t i = 0; i < 20; ++i) {
      const double x = 0.2 * static_cast<double>(i);
      r[i] = std::log(p[0] / a) - (p[1] - b) * x;
    }
  }
};

}  // namespace

TEST_CASE("a fit finds the parameters that made the data", "[fit]") {
  const std::vector<FitParameter> parameters{{"a", "", 1, 0.1, 10, 1, true}, {"b", "", 0.5, 0, 5, 1, false}};
  const FitResult fit = least_squares(parameters, 20, Decay{});
  CHECK_THAT(fit.parameters[0].value, WithinRel(3.0, 1e-2));
  CHECK_THAT(fit.parameters[1].value, WithinRel(0.7, 1e-2));
  CHECK(fit.cost < fit.cost_prior);
  CHECK(fit.parameters[0].determined);
  CHECK(fit.parameters[0].low <= fit.parameters[0].value);
  CHECK(fit.parameters[0].high >= fit.parameters[0].value);
}

TEST_CASE("what the data do not determine keeps its prior", "[fit]") {
  const std::vector<FitParameter> parameters{
      {"a", "", 1, 0.1, 10, 1, true}, {"b", "", 0.5, 0, 5, 1, false}, {"unused", "s", 2, 1, 4, 0.5, true}};
  const FitResult fit = least_squares(parameters, 20, Decay{});
  CHECK_FALSE(fit.parameters[2].determined);
  CHECK(fit.parameters[2].value == 2.0);
  CHECK_THAT(fit.parameters[0].value, WithinRel(3.0, 1e-2));
}

TEST_CASE("a fit stays within its bounds and says so", "[fit]") {
  const std::vector<FitParameter> parameters{{"a", "", 1, 0.1, 2, 1, true}, {"b", "", 0.5, 0, 5, 1, false}};
  const FitResult fit = least_squares(parameters, 20, Decay{});
  CHECK(fit.parameters[0].value <= 2.0);
  CHECK(fit.parameters[0].at_bound);
}

TEST_CASE("one wild observation does not drag a fit", "[fit]") {
  const std::vector<FitParameter> parameters{{"a", "", 1, 0.1, 10, 1, true}};
  const auto function = [](std::span<const double> p, std::span<double> r) {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = std::log(p[0] / (i == 0 ? 9.0 : 3.0));
  };
  // Twenty observations at 3 and one at 9: the mean of the logarithms would be 5 % high.
  CHECK_THAT(least_squares(parameters, 21, function).parameters[0].value, WithinRel(3.0, 0.01));
}

TEST_CASE("without residuals every prior is kept", "[fit]") {
  const std::vector<FitParameter> parameters{{"a", "", 1, 0.1, 10, 1, true}};
  const FitResult fit = least_squares(parameters, 0, [](auto, auto) {});
  CHECK_FALSE(fit.parameters[0].determined);
  CHECK(fit.parameters[0].value == 1.0);
}
