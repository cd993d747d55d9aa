// SPDX-License-Identifier: MIT
// Names that a profiler shows, as kernels of the model.
#include "validation/fit/observed.hpp"

#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

ObservedKernel seen(std::string name, std::int64_t tile_m = 0, std::int64_t tile_n = 0, std::string algorithm = "") {
  ObservedKernel out;
  out.name = std::move(name);
  out.algorithm = std::move(algorithm);
  out.tile_m = tile_m;
  out.tile_n = tile_n;
  return out;
}

kernel::ConvProblem square(std::int64_t size) {
  kernel::ConvProblem p;
  p.n = 8;
  p.c = p.k = 64;
  for (int axis = 1; axis < 3; ++axis) {
    p.in[axis] = p.out[axis] = size;
    p.filter[axis] = 3;
    p.pad[axis] = 1;
  }
  return p;
}

}  // namespace

TEST_CASE("a matrix kernel is named by its tile, its slicing and its library", "[validation][observed]") {
  CHECK(product_kernel_name(seen("volta_sgemm_128x64_tn", 64, 128)) == "64x128");
  CHECK(product_kernel_name(seen("volta_sgemm_32x32_sliced1x4_tn", 32, 32)) == "32x32s");
  CHECK(product_kernel_name(seen("cutlass_80_simt_sgemm_256x128_8x4_nn", 256, 128)) == "256x128c");
  CHECK(product_kernel_name(seen("", 64, 128)).empty());
  CHECK(product_kernel_name(seen("volta_sgemm_128x64_tn")).empty());
  CHECK(product_kernel_name(seen("volta_sgemm_128x64_tn", -64, 128)).empty());
}

TEST_CASE("a convolution kernel is named by its algorithm and tile", "[validation][observed]") {
  const auto name = [](const char* kernel, const char* algorithm, std::int64_t size = 56) {
    return convolution_kernel_name(seen(kernel, 0, 0, algorithm), square(size));
  };
  CHECK(name("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "winograd_fused") == "fused148");
  CHECK(name("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile442t_nt_v1", "winograd_fused") == "fused442");
  CHECK(name("volta_sgemm_64x64_nn", "winograd_nonfused") == "nonfused_64x64");
  CHECK(name("ampere_scudnn_128x64_relu_medium_nn_v1", "implicit_precomp_gemm") == "128x64_relu_medium");
  CHECK(name("volta_scudnn_128x64_3dconv_fprop_small_nn_v0", "") == "3dconv_128x64_relu_small");
  CHECK(name("cf32gemm", "fft") == "fft32");
  CHECK(name("cf32gemm", "fft", 14) == "fft16");
  CHECK(name("implicit_convolve_sgemm", "implicit_gemm") == "implicit");
  CHECK(name("explicit_convolve_sgemm", "explicit_gemm") == "explicit");
  CHECK(name("volta_scudnn_128x64_nhwc_nn", "").empty());
  CHECK(name("something_else", "").empty());
}

TEST_CASE("launches carry the kernel that was seen, with its parts of k", "[validation][observed]") {
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb");
  KernelRow row;
  row.kind = RowKind::product;
  row.product.m = 128;
  row.product.n = 256;
  row.product.k = 4096;
  row.product.transpose_b = true;
  row.observed = seen("volta_sgemm_128x64_tn", 64, 128);
  row.observed.split_k = 5;
  const auto launches = observed_launches(row, gpu);
  REQUIRE(launches.has_value());
  const auto& tile = std::get<kernel::GemmKernel>(launches->front().detail).tile;
  CHECK(tile.name == "64x128");
  CHECK(tile.split_k == 5);
  // 5 x 128 x 256 partial sums fit the workspace: a second kernel adds them.
  CHECK(launches->size() == 2);
  // grid_z of a batched product is its batch.
  row.product.linear = row.product.transpose_b = false;
  row.product.batch = 5;
  row.observed = seen("volta_sgemm_64x64_nn", 64, 64);
  row.observed.split_k = 5;
  const auto batched = observed_launches(row, gpu);
  REQUIRE(batched.has_value());
  CHECK(std::get<kernel::GemmKernel>(batched->front().detail).tile.split_k == 1);
}

TEST_CASE("a kernel that the calibration does not have, or none at all, has no launches", "[validation][observed]") {
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb");
  KernelRow row;
  row.kind = RowKind::product;
  row.product.m = row.product.n = row.product.k = 256;
  CHECK_FALSE(observed_launches(row, gpu).has_value());
  row.observed = seen("volta_sgemm_512x512_tn", 512, 512);
  CHECK_FALSE(observed_launches(row, gpu).has_value());
  row.kind = RowKind::convolution;
  row.convolution = square(56);
  row.observed = seen("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1");
  CHECK(observed_launches(row, gpu).has_value());
  row.convolution.stride[1] = row.convolution.stride[2] = 2;
  CHECK_FALSE(observed_launches(row, gpu).has_value());
  row.kind = RowKind::vector;
  CHECK_FALSE(observed_launches(row, gpu).has_value());
}
