// SPDX-License-Identifier: MIT
// Recurrent layers as cuDNN runs them: names, grid and work of their dependent steps.
#pragma once

#include "arch/spec.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// Matrices that multiply the state: 1 (vanilla), 4 (lstm), 3 (gru).
double gates(RecurrentCell cell);

/// How the steps of several layers and directions overlap. The directions of a layer run side by side. Layers of one
/// direction follow each other one step apart; with two directions a layer needs the whole layer below.
struct Wavefront {
  double diagonals = 1;  ///< Steps one after another.
  double cells = 1;      ///< Cells in a step, in the mean.
};
Wavefront wavefront(const RecurrentKernel& kernel);

/// True where frameworks ask the library for its persistent kernels: half precision, one layer and direction, up to
/// 1024 units in whole 128s, batches that the GPU is known to run well so [PyTorchRnn].
bool asks_persistent(const RecurrentKernel& kernel, std::int64_t input_size, const arch::GpuSpec& gpu);
/// Half of all registers hold the weights.
bool fits_registers(const RecurrentKernel& kernel, const arch::GpuSpec& gpu);

/// All steps in one record: the recurrent products, and reading and writing of gates and states.
Launch recurrent_launch(const RecurrentKernel& kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::kernel
