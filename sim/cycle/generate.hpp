// SPDX-License-Identifier: MIT
// From a launch to the programs its warps run. One file per kernel family; each emits what the library's kernel does,
// instruction class by instruction class, and how its tensors are touched.
#pragma once

#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/program.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cycle {

/// Programs of one launch, in order. Empty for what does not run on SMs (copies between host and device).
std::vector<Part> generate(const kernel::Launch& launch, const arch::GpuSpec& gpu);

/// The families behind it.
std::vector<Part> generate_gemm(const kernel::Launch& launch, const kernel::GemmKernel& kernel,
                                const arch::GpuSpec& gpu);
std::vector<Part> generate_conv(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                const arch::GpuSpec& gpu);
std::vector<Part> generate_vector(const kernel::Launch& launch, const kernel::VectorKernel& kernel,
                                  const arch::GpuSpec& gpu);
std::vector<Part> generate_attention(const kernel::Launch& launch, const kernel::AttentionKernel& kernel,
                                     const arch::GpuSpec& gpu);
std::vector<Part> generate_experts(const kernel::Launch& launch, const kernel::ExpertKernel& kernel,
                                   const arch::GpuSpec& gpu);
std::vector<Part> generate_recurrent(const kernel::Launch& launch, const kernel::RecurrentKernel& kernel,
                                     const arch::GpuSpec& gpu);
std::vector<Part> generate_sparse(const kernel::Launch& launch, const kernel::SparseKernel& kernel,
                                  const arch::GpuSpec& gpu);

}  // namespace voltaic::cycle
