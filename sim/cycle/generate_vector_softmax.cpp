// SPDX-License-Identifier: MIT
// Softmax as ATen has it: rows of up to 1024 columns in the registers of a warp, longer ones by a CTA in passes.
#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/cycle/detail/vector.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr double kLanes = 32;

ElementWork exponential() {
  return function_work("exp") + ElementWork{1, 0, 0, 0, 1};  // less the maximum
}

/// By the row's sum, whose reciprocal is there already: Newton's steps and the check of each quotient.
constexpr ElementWork kQuotient{5, 2, 0, 0, 1};

double padded(std::int64_t cols) {
  return static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(cols, 1, 1 << 30))));
}

}  // namespace

Part softmax_in_warps(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  const double wide = padded(kernel.cols);
  const double rows = static_cast<double>(std::max<std::int64_t>(kernel.rows, 1));
  const double lanes = std::min(wide, kLanes);
  const double batch = std::clamp(std::round(rows / std::max(1.0, launch.ctas() * 4) * lanes / kLanes), 1.0, 2.0);
  const double held = wide / lanes * batch;  // elements of a lane
  VectorBuilder b(launch, kernel, gpu, 24 + held * (kernel.backward ? 2 : 1));
  const double rows_per_warp = rows / (b.ctas * b.warps);
  b.misaligned(std::fmod(static_cast<double>(kernel.cols) * kernel.element_bytes, 32) != 0 && wide > kLanes);
  b.prologue(16);
  b.e.address(held);  // Bounds of each element.
  // What a warp cannot hold at once it takes in turns: generated kernels have grids of their own.
  b.open(std::ceil(rows_per_warp / (batch * kLanes / lanes) - 1e-9));
  const double lane = std::min(4.0, std::max(1.0, kernel.element_bytes));
  b.load(b.input, b.read + b.again, b.read + b.again_beyond_l1, lane);
  const ElementWork one{1, 0, 0, 0, 1};
  const ElementWork fixed = kernel.backward ? ElementWork{3, 0, 0, 0, 1} : one + exponential() + one + kQuotient;
  if (!kernel.backward) {
    b.compute(held, one);
    b.warp_fold(batch, lanes);
    b.compute(held, exponential(), 0);
  }
  b.compute(held, kernel.backward ? ElementWork{2, 0, 0, 0, 1} : one);
  b.warp_fold(batch, lanes);
  const double real = b.per_thread();
  b.compute(kernel.backward ? real : held, kernel.backward ? one : kQuotient, 0);
  b.compute(real, b.work_left(fixed), 0);
  b.e.address(held);
  b.store(b.written, lane);
  b.close();
  return b.finish();
}

Part softmax_in_ctas(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const bool aligned = kernel.cols % 4 == 0;
  const double vector = std::min(16.0, 4 * kernel.element_bytes);
  const double rows_per_cta = static_cast<double>(std::max<std::int64_t>(kernel.rows, 1)) / b.ctas;
  const int passes = kernel.backward ? 2 : 3;
  const double rereads = passes - 1;
  const double step = vector * b.warps * kLanes;
  const double read_trips = std::ceil(b.read / (b.ctas * rows_per_cta) / step - 1e-9);
  // A row that begins between vectors takes a step of single elements more.
  const double steps = std::max(1.0, read_trips) + (aligned ? 0 : 1);
  const bool rows_in_turn = rows_per_cta > 1 + 1e-9;
  b.grid_stride(false);
  b.prologue(20);
  if (rows_in_turn) b.open(std::ceil(rows_per_cta));
  const ElementWork one{1, 0, 0, 0, 1};
  const ElementWork counted =
      kernel.backward ? ElementWork{3, 0, 0, 0, 1} : 2.0 * one + 2.0 * exponential() + kQuotient;
  for (int pass = 0; pass < passes; ++pass) {
    const bool last = pass + 1 == passes;
    b.open(steps);
    b.e.address(2);
    const double single = last && !aligned ? kernel.element_bytes : vector;
    if (pass == 0) {
      b.load(b.read, single);
    } else {
      b.load(b.input, b.again / rereads, b.again_beyond_l1 / rereads, single);
    }
    const double n = b.per_thread();
    if (kernel.backward) {
      b.compute(n, last ? ElementWork{2, 0, 0, 0, 1} : one);
    } else {
      b.compute(n, pass == 0 ? one : pass == 1 ? exponential() + one : exponential() + kQuotient);
    }
    if (last) {
      b.compute(n, b.work_left(counted), 0);
      b.misaligned(!aligned);
      b.store(b.written, single);
      b.misaligned(false);
    }
    b.close();
    if (!last) b.cta_fold(1);
  }
  if (rows_in_turn) b.close();
  return b.finish();
}

}  // namespace voltaic::cycle::detail
