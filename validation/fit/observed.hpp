// SPDX-License-Identifier: MIT
// The kernel that a profiler saw, as one of the model's own.
#pragma once

#include <optional>
#include <vector>

#include "arch/loader.hpp"
#include "validation/compare/kernel_rows.hpp"

namespace voltaic::validation {

/// Launches of the row with the kernel that was observed; nullopt when the row names none, or one that the calibration
/// of this GPU does not have.
std::optional<std::vector<kernel::Launch>> observed_launches(const KernelRow& row, const arch::ResolvedGpu& gpu);

/// The calibration's name of an observed matrix kernel: "64x128", "32x32s" (k sliced over warp groups), "256x128c"
/// (another library's template); empty when the row names none.
std::string product_kernel_name(const ObservedKernel& observed);
/// The same for convolutions: "fused148", "nonfused_64x64", "128x64_relu_small", "fft32".
std::string convolution_kernel_name(const ObservedKernel& observed, const kernel::ConvProblem& problem);

}  // namespace voltaic::validation
