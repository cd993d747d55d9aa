// SPDX-License-Identifier: MIT
// Fused attention of serving stacks against their own measurements, on rows that nothing was fitted on; without the
// measured packs these tests only say so.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"
#include "validation/compare/validate.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

struct Limit {
  const char* file;
  const char* family;
  double mape, bias, inside;  ///< At most, at most either way, at least.
  std::size_t rows;
};

/// What the laws reach, and a little.
constexpr Limit kLimits[] = {
    {"attention_a100_sxm_aic.csv.gz", "attention prefill bf16", 0.034, 0.01, 0.88, 5815},
    {"attention_a100_sxm_aic.csv.gz", "attention decode bf16", 0.038, 0.01, 0.88, 4233},
    {"attention_h100_sxm_aic.csv.gz", "attention prefill bf16", 0.054, 0.01, 0.88, 3800},
    {"attention_h100_sxm_aic.csv.gz", "attention decode bf16", 0.049, 0.01, 0.88, 4713},
    {"attention_h100_sxm_aic.csv.gz", "attention encoder bf16", 0.072, 0.02, 0.88, 2191},
    {"attention_h200_sxm_aic.csv.gz", "attention prefill bf16", 0.070, 0.015, 0.86, 3800},
    {"attention_h200_sxm_aic.csv.gz", "attention decode bf16", 0.054, 0.01, 0.87, 4839},
};

const Validation* validated(const std::string& file) {
  static std::map<std::string, Validation> known;
  if (const auto found = known.find(file); found != known.end()) return &found->second;
  const auto path = test::measured_path("attention/" + file);
  if (!path) return nullptr;
  Runner runner;
  ValidateOptions options;
  options.split = "report";
  return &known.emplace(file, validate(runner, {path->string()}, options)).first->second;
}

}  // namespace

TEST_CASE("fused attention of serving stacks comes out as measured, on rows that nothing was fitted on",
          "[validation][attention][measured]") {
  for (const Limit& limit : kLimits) {
    const Validation* v = validated(limit.file);
    if (v == nullptr) {
      WARN("measured pack absent: skipped");
      return;
    }
    INFO(limit.file << ' ' << limit.family);
    const auto is_family = [&](const Pooled& p) { return p.name == limit.family; };
    const auto line = std::find_if(v->pooled.begin(), v->pooled.end(), is_family);
    REQUIRE(line != v->pooled.end());
    CHECK(line->rows == static_cast<std::int64_t>(limit.rows));
    CHECK(line->rows == line->rows_total);
    CHECK(line->mape < limit.mape);
    CHECK(std::abs(line->bias) < limit.bias);
    CHECK(line->interval_coverage > limit.inside);
  }
}

TEST_CASE("published charts of flash attention with its gradient come out within 4 %",
          "[validation][attention][measured]") {
  const Validation* v = validated("attention_published_small.csv");
  if (v == nullptr) {
    WARN("measured pack absent: skipped");
    return;
  }
  for (const Pooled& p : v->pooled) {
    if (p.name != "attention train_fwd_bwd fp16") continue;
    INFO(p.gpu);
    CHECK(p.rows == 7);
    CHECK(p.mape < 0.04);
  }
}
