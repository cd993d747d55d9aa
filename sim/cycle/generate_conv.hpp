// SPDX-License-Identifier: MIT
// What the generators of convolutions share.
#pragma once

#include <vector>

#include "sim/cycle/generate_gemm.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::cycle::conv {

/// A kernel that reads one tensor and writes another: changes of layout, transforms of images, filters and results.
struct Stream {
  std::string name;
  double items = 1;              ///< One per thread.
  double loads = 1, stores = 1;  ///< Per item.
  double load_bytes = 4;         ///< Of one load, neighbouring items beside each other.
  double store_bytes = 4;
  double additions = 0;                 ///< Per item.
  double read_unique = 0, written = 0;  ///< Bytes.
  double reused = 0;                    ///< Share of loads that L1 serves.
};
Part stream_part(const Stream& stream, const arch::GpuSpec& gpu);

/// The implicit product of a convolution, with the changes of layout around it that tensor-core kernels need.
std::vector<Part> implicit_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                 const arch::GpuSpec& gpu);
/// Winograd in one kernel: F(2x2, 3x3).
Part winograd_fused_part(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu);
/// Transforms around a batched product: Winograd's F(4x4, 3x3) and F(5x5, 5x5), FFT, im2col.
std::vector<Part> winograd_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                 const arch::GpuSpec& gpu);
std::vector<Part> fft_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu);
std::vector<Part> explicit_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                 const arch::GpuSpec& gpu);
/// One thread per output, as ATen's depthwise kernels.
Part depthwise_part(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu);

/// A batched product on CUDA cores between transforms.
struct Batched {
  double batch = 1, m = 1, n = 1, k = 1;
  double scale = 1;  ///< Real multiplications of one of the product: 4 of a complex one.
};
Part batched_part(const kernel::Launch& launch, const kernel::GemmTile& tile, const Batched& batched,
                  const arch::GpuSpec& gpu);

}  // namespace voltaic::cycle::conv
