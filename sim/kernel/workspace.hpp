// SPDX-License-Identifier: MIT
// Device memory that a library's kernel asks for beside its tensors while it runs.
#pragma once

#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// Bytes of scratch of one launch. Convolutions [Lavin16]:
///     Winograd, not fused   transformed filters, inputs and products: points * (K C + tiles * (C + K)) values
///     Winograd, fused       transformed filters alone
///     FFT                   complex spectra of all three tensors
///     on tensor cores       copies of the tensors in [N, spatial, C] where they lie as [N, C, spatial]
///     gradient of filters   partial sums of each split
/// Everything else works in the library's own standing workspace, or in none.
Bytes workspace(const Launch& launch);

}  // namespace voltaic::kernel
