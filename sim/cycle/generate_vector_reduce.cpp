// SPDX-License-Identifier: MIT
// Reductions: threads fold what they load, then warps, then the CTA; sums down the columns of a gradient; and loops
// that walk over rows or steps one after another.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/vector.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr double kLanes = 32;
constexpr double kUnrolled = 4;  ///< Vector loads of a thread under way [ATEN].

}  // namespace

Part reduction(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const double vector = std::min(16.0, 4 * std::max(1.0, kernel.element_bytes));
  const double of_cta = (b.read + b.again) / b.ctas;
  const double trips = std::max(1.0, of_cta / (vector * kUnrolled * b.warps * kLanes));
  // A result per CTA and less is stored at the end, scans store as they go.
  const bool scans = b.written > 0.25 * b.read;
  const ElementWork fold{1, 0.5, 0, 0, 1};
  b.grid_stride(false);
  b.prologue(24);
  b.open(std::ceil(trips - 1e-9));
  b.e.address(2);
  b.load(b.input, b.read + b.again, b.read + b.again_beyond_l1, vector);
  b.compute(b.per_thread(), fold + b.work_left(fold));
  if (scans) b.store(b.written, vector);
  b.close();
  b.cta_fold(1);
  if (!scans) b.store(b.written, 4, 1);
  return b.finish();
}

/// CTAs of 32 rows by 32 columns walk down the rows, eight of each operand under way, and exchange their sums.
Part column_sums(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  constexpr double kRowsUnderWay = 8;
  VectorBuilder b(launch, kernel, gpu, 40);
  const double one = std::max(1.0, kernel.element_bytes);
  const int operands = std::max(1, kernel.tensor_inputs);
  const double bytes = (b.read + b.again) / (b.ctas * b.warps * kLanes * operands);
  const ElementWork sums{3, 1, 0, 0, 1};
  b.grid_stride(false);
  b.prologue(20);
  b.open(std::ceil(std::max(1.0, bytes / (one * kRowsUnderWay)) - 1e-9));
  b.e.address(kRowsUnderWay);
  for (int i = 0; i < operands; ++i) {
    b.load(b.input, (b.read + b.again) / operands, (b.read + b.again_beyond_l1) / operands, one);
  }
  b.load_shared_operand(2, 4);  // Mean and deviation of the rows.
  b.compute(b.per_thread(), sums + b.work_left(sums));
  b.close();
  b.cta_fold(2);
  b.store(b.written, 4, 2);
  return b.finish();
}

/// Losses over labels, lattices over time: one trip after another, each waiting for the loads of an index or of what
/// the trip before wrote.
Part walk(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const double one = std::max(1.0, kernel.element_bytes);
  const bool steps = kernel.passes > 0;
  const double trips = steps ? kernel.passes : b.elements / (b.ctas * b.warps * kLanes);
  const ElementWork own{1, 2, 0, 0, 1};
  b.prologue(20);
  b.open(std::ceil(std::max(1.0, trips) - 1e-9));
  b.e.address(2);
  // Labels first, or neighbours' values of the last step; then the entry.
  b.load(0.5 * b.read, 8, kIndex);
  b.e.wait(bit(kIndex)).address(3);
  const double rest = 0.5 * b.read + b.again;
  b.load(b.input, rest, 0.5 * b.read + b.again_beyond_l1, std::max(one, 4.0));
  ElementWork work = own + b.work_left(own);
  work.rounds = 2;
  b.compute(b.per_thread(), work);
  const bool stores = steps || b.written > 64 * b.ctas;
  if (stores) b.store(b.written, std::max(one, 4.0));
  if (steps) b.e.barrier();
  b.close();
  if (!steps) b.cta_fold(2);
  if (!stores) b.store(b.written, 4, 1);
  return b.finish();
}

}  // namespace voltaic::cycle::detail
