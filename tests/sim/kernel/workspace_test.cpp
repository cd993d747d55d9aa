// SPDX-License-Identifier: MIT
#include "sim/kernel/workspace.hpp"

#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::kernel;

namespace {

ConvKernel square(ConvAlgorithm algorithm) {
  ConvKernel k;
  k.algorithm = algorithm;
  k.problem.n = 8;
  k.problem.c = 32;
  k.problem.k = 64;
  for (const int d : {1, 2}) {
    k.problem.in[d] = k.problem.out[d] = 16;
    k.problem.filter[d] = 3;
    k.problem.pad[d] = 1;
  }
  return k;
}

double bytes(const ConvKernel& kernel) {
  Launch launch;
  launch.detail = kernel;
  return workspace(launch).value;
}

}  // namespace

TEST_CASE("separate Winograd kernels hand 36 points of filters, inputs and products to each other",
          "[kernel][workspace]") {
  // Tiles of 4x4 outputs: 16 of each image, and images padded to 16. 36 x (32 x 64 + 256 x (32 + 64)) values of 4
  // bytes.
  CHECK(bytes(square(ConvAlgorithm::winograd_nonfused)) == 4.0 * 36 * (32 * 64 + 256 * 96));
}

TEST_CASE("fused Winograd keeps transformed filters alone", "[kernel][workspace]") {
  CHECK(bytes(square(ConvAlgorithm::winograd_fused)) == 4.0 * 16 * 32 * 64);
}

TEST_CASE("tensor cores turn tensors around unless channels come last", "[kernel][workspace]") {
  ConvKernel k = square(ConvAlgorithm::implicit_precomp_gemm);
  k.problem.element_bytes = 2;
  CHECK(bytes(k) == 0);
  k.tile.tensor_cores = true;
  CHECK(bytes(k) == 2.0 * (8 * 32 * 256 + 8 * 64 * 256 + 32 * 64 * 9));
  k.problem.channels_last = true;
  CHECK(bytes(k) == 0);
}

TEST_CASE("each split of a filter gradient keeps its sums", "[kernel][workspace]") {
  ConvKernel k = square(ConvAlgorithm::implicit_gemm);
  k.problem.pass = ConvPass::wgrad;
  k.tile.split_k = 4;
  CHECK(bytes(k) == 4.0 * 4 * 64 * 32 * 9);
}

TEST_CASE("a larger batch never needs less workspace of one algorithm", "[kernel][workspace][property]") {
  for (const auto algorithm : {ConvAlgorithm::winograd_nonfused, ConvAlgorithm::winograd_fused, ConvAlgorithm::fft,
                               ConvAlgorithm::implicit_precomp_gemm}) {
    double before = 0;
    for (std::int64_t n = 1; n < 300; n += 13) {
      ConvKernel k = square(algorithm);
      k.problem.n = n;
      CHECK(bytes(k) >= before);
      before = bytes(k);
    }
  }
}

TEST_CASE("other kernels need none of their own", "[kernel][workspace]") {
  Launch launch;
  launch.detail = VectorKernel{};
  CHECK(workspace(launch).value == 0);
}
