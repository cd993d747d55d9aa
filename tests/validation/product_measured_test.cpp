// SPDX-License-Identifier: MIT
// Tensor-core products of serving stacks and suites against their measurements, on rows that nothing was fitted on;
// without the measured packs this test only says so.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"
#include "validation/compare/validate.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

struct Limit {
  const char *file, *gpu, *dtype, *origin;
  double mape, bias;  ///< At most, and at most either way.
  std::int64_t rows;
};

/// What the laws reach, and a little.
constexpr Limit kLimits[] = {
    {"tensorcore_gemm/gemm_a100_sxm_aic.csv.gz", "A100-SXM4-80GB", "bf16", "aic-sglang-0.5.10", 0.056, 0.01, 9998},
    {"tensorcore_gemm/gemm_a100_sxm_aic.csv.gz", "A100-SXM4-80GB", "int8", "aic-trtllm-1.0.0", 0.076, 0.025, 1675},
    {"tensorcore_gemm/gemm_a100_sxm_aic.csv.gz", "A100-SXM4-80GB", "w8a16", "aic-trtllm-1.0.0", 0.082, 0.025, 1675},
    {"tensorcore_gemm/gemm_a100_sxm_aic.csv.gz", "A100-SXM4-80GB", "w4a16", "aic-trtllm-1.0.0", 0.085, 0.03, 1675},
    {"tensorcore_gemm/gemm_h100_sxm_aic.csv.gz", "H100-SXM5-80GB", "bf16", "aic-vllm-0.24.0", 0.056, 0.01, 9998},
    {"tensorcore_gemm/gemm_h100_sxm_aic.csv.gz", "H100-SXM5-80GB", "fp8", "aic-vllm-0.24.0", 0.069, 0.035, 9998},
    {"tensorcore_gemm/gemm_h200_sxm_aic.csv.gz", "H200-SXM-141GB", "bf16", "aic-vllm-0.22.0", 0.048, 0.01, 9998},
    {"llm_ops/vidur_ops_a100.csv.gz", "A100-SXM4-80GB", "fp16", "vidur", 0.061, 0.01, 10216},
    {"deepbench/gemm.csv", "V100", "FP16_tensorcore_mixed", "deepbench", 0.085, 0.05, 44},
};

}  // namespace

TEST_CASE("tensor-core products come out as measured, on rows that nothing was fitted on",
          "[validation][gemm][measured]") {
  std::string last;
  Validation v;
  for (const Limit& limit : kLimits) {
    const auto path = test::measured_path(limit.file);
    if (!path) {
      WARN("measured pack absent: skipped");
      return;
    }
    if (last != limit.file) {
      Runner runner;
      ValidateOptions options;
      options.split = "report";
      options.ops = {"gemm"};
      v = validate(runner, {path->string()}, options);
      last = limit.file;
    }
    INFO(limit.file << ' ' << limit.dtype << ' ' << limit.origin);
    const auto found = std::find_if(v.groups.begin(), v.groups.end(), [&](const Group& g) {
      return g.gpu == limit.gpu && g.dtype == limit.dtype && g.origin == limit.origin && g.op == "gemm";
    });
    REQUIRE(found != v.groups.end());
    CHECK(found->rows == limit.rows);
    CHECK(found->mape < limit.mape);
    CHECK(std::abs(found->bias) < limit.bias);
  }
}
