// SPDX-License-Identifier: MIT
// Physical anchors of matrix products: peaks that nothing beats, and rates that fall where a unit is missing.
#include <cmath>

#include "tests/sim/cost/gemm_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using test::Gemm;
using test::product;

TEST_CASE("FP16 4096^3 on A100 lies between its peak and two thirds of it", "[cost][gemm]") {
  // 2 x 4096^3 = 137.4 GFLOP over 312 TFLOP/s = 0.44 ms.
  const double t = Gemm("a100-sxm4-40gb").seconds(product(4096, 4096, 4096, DataType::fp16));
  CHECK(t >= 0.440e-3);
  CHECK(t <= 0.66e-3);
}

TEST_CASE("FP32 4096^3 without TF32 keeps to the CUDA cores", "[cost][gemm]") {
  // 137.4 GFLOP over 19.49 TFLOP/s = 7.05 ms; over 15.67 TFLOP/s (V100-SXM2 at 1530 MHz) = 8.77 ms.
  const double a100 = Gemm("a100-sxm4-40gb").seconds(product(4096, 4096, 4096, DataType::fp32));
  CHECK(a100 >= 7.05e-3);
  CHECK(a100 <= 9e-3);
  const double v100 = Gemm("v100-sxm2-16gb").seconds(product(4096, 4096, 4096, DataType::fp32));
  CHECK(v100 >= 8.75e-3);
  CHECK(v100 <= 11e-3);
}

TEST_CASE("TF32 4096^3 on A100 never beats its own peak", "[cost][gemm]") {
  // 137.4 GFLOP over 156 TFLOP/s = 0.881 ms.
  const double t = Gemm("a100-sxm4-40gb").seconds(product(4096, 4096, 4096, DataType::tf32));
  CHECK(t >= 0.881e-3);
  CHECK(t <= 1.3e-3);
}

TEST_CASE("65536^3 in FP16 counts beyond 32 bits", "[cost][gemm]") {
  // 2^48 multiply-adds = 563 TFLOP over 312 TFLOP/s = 1.80 s, 2.5e9 cycles of an SM.
  const Gemm g("a100-sxm4-40gb");
  const auto p = product(65536, 65536, 65536, DataType::fp16);
  const auto launches = g.launches(p, g.tile(p));
  CHECK(launches[0].work.mac == std::pow(2.0, 48));
  const auto c = g.cost(launches[0]);
  CHECK(c.time.value >= 1.80);
  CHECK(c.time.value <= 3);
  CHECK(c.cycles().value > 2147483648.0);
}

TEST_CASE("without tensor cores FP16 runs at the rate of the CUDA cores", "[cost][gemm]") {
  // A100: 256 FMA per cycle and SM instead of 1024: 137.4 GFLOP over 78 TFLOP/s = 1.76 ms.
  const auto p = product(4096, 4096, 4096, DataType::fp16);
  const Gemm g("a100-sxm4-40gb", {"gpu.sm.tensor_cores=0"});
  CHECK_FALSE(g.tile(p).tensor_cores);
  const double t = g.seconds(p);
  CHECK(t >= 1.76e-3);
  CHECK(t <= 2.4e-3);
}

TEST_CASE("INT8 on V100 runs at the DP4A rate", "[cost][gemm]") {
  // 256 multiply-adds per cycle and SM: 137.4 GOP over 62.7 TOP/s = 2.19 ms.
  const Gemm g("v100-sxm2-16gb");
  const auto p = product(4096, 4096, 4096, DataType::int8);
  CHECK_FALSE(g.tile(p).tensor_cores);
  CHECK(g.seconds(p) >= 2.19e-3);
  CHECK(g.seconds(p) <= 3e-3);
}

TEST_CASE("a decode-like product is bound by its weights", "[cost][gemm]") {
  // 8192 x 8192 x 2 B = 134 MB at 1555 GB/s = 86 us.
  const Gemm g("a100-sxm4-40gb");
  for (const std::int64_t m : {1, 4, 16}) {
    const auto p = product(m, 8192, 8192, DataType::fp16);
    const auto c = g.cost(g.launches(p, g.tile(p))[0]);
    CHECK(c.bound() == kernel::Bound::dram);
    CHECK(c.time.value >= 80e-6);
    CHECK(c.time.value <= 140e-6);
  }
}

TEST_CASE("rows off 16-byte boundaries cost tensor-core time", "[cost][gemm]") {
  const Gemm g("a100-sxm4-40gb");
  CHECK(g.seconds(product(4096, 4096, 4095, DataType::fp16)) >
        1.3 * g.seconds(product(4096, 4096, 4096, DataType::fp16)));
}

TEST_CASE("a power limit lowers the clock of long tensor products only", "[cost][gemm]") {
  const Gemm pcie("a100-pcie-40gb");
  const Gemm sxm("a100-sxm4-40gb");
  const auto big = product(8192, 8192, 8192, DataType::fp16);
  CHECK(pcie.seconds(big) > 1.1 * sxm.seconds(big));
  const auto small = product(16, 1024, 1024, DataType::fp16);
  CHECK_THAT(pcie.seconds(small), WithinRel(sxm.seconds(small), 0.01));
}
