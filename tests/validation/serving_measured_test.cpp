// SPDX-License-Identifier: MIT
// Vector kernels and mixtures of experts of serving stacks against their measurements, on rows that nothing was fitted
// on; without the measured packs these tests only say so.
#include <cmath>
#include <optional>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"
#include "validation/compare/validate.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

/// Mean error of the report rows of `op` that take at least `least_s`; empty without the pack.
std::optional<test::Errors> errors_of(const char* file, const char* op, double least_s) {
  const auto path = test::measured_path(file);
  if (!path) {
    WARN("measured pack absent: skipped");
    return std::nullopt;
  }
  Runner runner;
  ValidateOptions options;
  options.split = "report";
  options.ops = {op};
  test::Errors errors;
  for (const Pair& pair : validate(runner, {path->string()}, options).pairs) {
    if (pair.measured >= least_s) errors.add(pair.predicted, pair.measured);
  }
  return errors;
}

}  // namespace

TEST_CASE("vector kernels of serving stacks come out as measured", "[validation][serving][measured]") {
  for (const char* op : {"add", "emb", "layernorm", "attn_rope", "mlp_act"}) {
    for (const char* gpu : {"a100", "a40", "h100"}) {
      const auto errors = errors_of(("llm_ops/vidur_ops_" + std::string(gpu) + ".csv.gz").c_str(), op, 10e-6);
      if (!errors) return;
      CAPTURE(op, gpu);
      CHECK(errors->mean_absolute() < 0.062);
      CHECK(std::abs(errors->bias()) < 0.03);
    }
  }
}

TEST_CASE("mixtures of experts come out as measured", "[validation][moe][measured]") {
  const auto errors = errors_of("llm_ops/moe_a100_aic.csv.gz", "moe", 0);
  if (!errors) return;
  CHECK(errors->values.size() > 18000);
  CHECK(errors->mean_absolute() < 0.092);
  CHECK(std::abs(errors->bias()) < 0.02);
}
