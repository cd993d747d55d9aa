// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>

#include "sim/cost/engine.hpp"
#include "sim/cost/serving_cost.hpp"
#include "sim/kernel/serving.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::Launch;
using kernel::VectorKernel;
using kernel::vector::Pass;

namespace {

Pass pass(std::int64_t rows, std::int64_t cols, double tensors) {
  const double n = static_cast<double>(rows) * static_cast<double>(cols);
  return {n, 2 * (tensors - 1) * n, 2 * n, static_cast<int>(tensors) - 1, 2};
}

double microseconds(const char* gpu, const Launch& launch) {
  const auto board = arch::resolve_gpu(gpu);
  return 1e6 * cost::ServingCost(board)(launch, std::get<VectorKernel>(launch.detail)).time.value;
}

Launch of_kind(Launch launch, kernel::VectorKind kind, std::int64_t rows, std::int64_t cols) {
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.kind = kind;
  detail.rows = rows;
  detail.cols = cols;
  return launch;
}

Launch add(std::int64_t rows, std::int64_t cols) {
  return of_kind(kernel::vector::elementwise("add", pass(rows, cols, 3)), kernel::VectorKind::half_elementwise, rows,
                 cols);
}

Launch norm(std::int64_t rows, std::int64_t cols) {
  return kernel::serving::norm(rows, cols, pass(rows, cols, 2));
}
Launch gate(std::int64_t rows, std::int64_t cols) {
  return kernel::serving::gate(rows, cols, pass(rows, cols, 3));
}
Launch lookup(std::int64_t rows, std::int64_t cols, std::int64_t sms) {
  return kernel::serving::lookup(rows, cols, pass(rows, cols, 2), sms);
}

constexpr const char* kA100 = "a100-sxm4-80gb";
constexpr const char* kA40 = "a40";
constexpr const char* kH100 = "h100-sxm5-80gb";

}  // namespace

TEST_CASE("serving kernels take the times that the fit's own program gives", "[cost][serving]") {
  // Worked out apart, with constants of four figures.
  constexpr double kFigures = 2e-3;
  CHECK_THAT(microseconds(kA100, add(1024, 8192)), WithinRel(25.02, kFigures));
  CHECK_THAT(microseconds(kA100, norm(4, 8192)), WithinRel(7.095, kFigures));
  CHECK_THAT(microseconds(kA100, norm(4096, 4096)), WithinRel(99.74, kFigures));
  CHECK_THAT(microseconds(kA40, norm(1024, 8192)), WithinRel(82.568, kFigures));
  CHECK_THAT(microseconds(kA100, kernel::serving::rope(1024, 8192, 1024, 2)), WithinRel(41.468, kFigures));
  CHECK_THAT(microseconds(kH100, kernel::serving::rope(512, 1024, 256, 2)), WithinRel(2.883, kFigures));
  CHECK_THAT(microseconds(kA100, gate(216, 22016)), WithinRel(27.434, kFigures));
  CHECK_THAT(microseconds(kH100, gate(2048, 3584)), WithinRel(25.104, kFigures));
  CHECK_THAT(microseconds(kA100, lookup(8, 4096, 108)), WithinRel(7.655, kFigures));
  CHECK_THAT(microseconds(kA40, lookup(1024, 4096, 84)), WithinRel(49.263, kFigures));
  CHECK_THAT(microseconds(kH100, lookup(1024, 8192, 132)), WithinRel(56.003, kFigures));
}

TEST_CASE("an SM of 1536 threads holds one CTA of 1024, so waves are as many as rows over SMs", "[cost][serving]") {
  // A40: 84 SMs. 84 rows are one wave, 85 are two.
  CHECK(microseconds(kA40, norm(85, 1024)) > 1.1 * microseconds(kA40, norm(84, 1024)));
  // A100: two CTAs on each of 108 SMs.
  CHECK_THAT(microseconds(kA100, norm(85, 1024)), WithinRel(microseconds(kA100, norm(84, 1024)), 0.02));
}

TEST_CASE("few indices are walked by every CTA: eight tokens take longer than thirty-two", "[cost][serving]") {
  CHECK(microseconds(kA100, lookup(8, 4096, 108)) > 1.5 * microseconds(kA100, lookup(32, 4096, 108)));
  CHECK(lookup(16, 4096, 108).name == "indexSelectSmallIndex");
  CHECK(lookup(17, 4096, 108).name == "indexSelectLargeIndex");
}

TEST_CASE("serving kernels: more tokens are never faster, nothing beats the roofline, sizes without sense stay finite",
          "[cost][serving][property]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  for (const auto& name : arch::gpu_names()) {
    const auto gpu = arch::resolve_gpu(name);
    const auto engine = cost::make_engine(cost::EngineKind::analytic, gpu);
    for (int kind = 0; kind < 5; ++kind) {
      double before = 0;
      for (const std::int64_t rows : {17, 18, 84, 108, 217, 1000, 4096, 70000}) {
        const Launch launch = kind == 0   ? add(rows, 5120)
                              : kind == 1 ? norm(rows, 5120)
                              : kind == 2 ? gate(rows, 5120)
                              : kind == 3 ? kernel::serving::rope(rows, 4096, 1024, 2)
                                          : lookup(rows, 5120, gpu.spec.sm.count);
        const auto cost = engine->cost(launch);
        CAPTURE(name, kind, rows);
        CHECK(cost.time.value >= before * (1 - 1e-6));
        CHECK(cost.time >= cost.roofline);
        CHECK(engine->cost(launch).time == cost.time);
        before = cost.time.value;
      }
    }
    for (const auto& [rows, cols] : {std::pair{kHuge, std::int64_t{1}}, {std::int64_t{1}, kHuge}, {kHuge, kHuge}}) {
      CHECK(std::isfinite(engine->cost(norm(rows, cols)).time.value));
      CHECK(std::isfinite(engine->cost(gate(rows, cols)).time.value));
      CHECK(std::isfinite(engine->cost(kernel::serving::rope(rows, cols, cols, 2)).time.value));
      CHECK(std::isfinite(engine->cost(lookup(rows, cols, 108)).time.value));
    }
  }
}
