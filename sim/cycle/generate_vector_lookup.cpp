// SPDX-License-Identifier: MIT
// Rows by index, windows over images: loads whose addresses come from other loads, and loads that overlap in L1.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/vector.hpp"

namespace voltaic::cycle::detail {
namespace {

using kernel::VectorKind;

constexpr double kLanes = 32;
constexpr double kIndexBytes = 8;

/// Bytes of indices among those read: what is read beyond the rows that are written, or one index per row.
double index_bytes(const VectorBuilder& b) {
  const double rows = static_cast<double>(std::max<std::int64_t>(b.kernel.rows, 1));
  const double beyond = b.read + b.again - b.written;
  const double known = b.kernel.cols > 1 ? kIndexBytes * rows : beyond;
  return std::clamp(known, 0.0, 0.5 * b.read);
}

/// Loads of rows that each lane has under way; the kernel's law is in its element size.
double lane_bytes(const kernel::VectorKernel& k) {
  return std::clamp(k.element_bytes, 1.0, 16.0);
}

}  // namespace

Part lookup(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const double one = lane_bytes(kernel);
  const double indices = index_bytes(b);
  const double rows = b.read + b.again - indices;
  const double moved = std::max(rows, kernel.kind == VectorKind::scatter ? 0.0 : b.written);
  const bool few = kernel.kind == VectorKind::index_select_small;
  const double trips = few ? static_cast<double>(std::max<std::int64_t>(kernel.rows, 1))
                           : std::max(1.0, moved / (b.ctas * b.warps * kLanes * one));
  const double cut = indices / std::max(1.0, b.read);
  b.prologue(16);
  b.open(trips);
  // Which row and column: divisions by multiplication and shift.
  b.compute(1, {0, 4, 4, 0, 1}, 0);
  b.load(indices, kIndexBytes, kIndex);
  b.e.wait(bit(kIndex)).address(4);
  b.load(b.input, rows, (1 - cut) * b.read + b.again_beyond_l1, one);
  b.compute(b.per_thread(), b.work_left({}));
  if (kernel.kind == VectorKind::scatter) {
    b.atomics(b.written, one);
  } else {
    b.store(b.written, one);
  }
  b.close();
  return b.finish();
}

/// Each thread visits the elements of its results' windows, of which L1 has most already.
Part windows(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const double one = lane_bytes(kernel);
  const double lanes = b.ctas * b.warps * kLanes;
  const double visits = b.elements / lanes;  // of one thread: results times window
  const double results = std::max(1.0, static_cast<double>(std::max<std::int64_t>(kernel.rows, 1)) / lanes);
  const double window = std::max(1.0, visits / results);
  const double unrolled = std::min(4.0, window);
  const bool turns = results > 1 + 1e-9;
  const ElementWork visit{1, 4, 2, 0, 1};  // Bounds and address of an element, and the fold.
  b.prologue(24);
  if (turns) b.open(results);
  b.compute(1, {0, 8, 4, 0, 1}, 0);
  if (kernel.passes > 0) {  // Through shared memory, in place.
    b.load(b.read, 16);
    b.e.wait(bit(kLoads)).memory(Op::store_shared, b.e.access(shared_access(128)));
  }
  b.open(std::ceil(window / unrolled - 1e-9));
  if (kernel.passes > 0) {
    b.e.memory(Op::load_shared, b.e.access(shared_access(128)), unrolled, kExchange);
    b.e.wait(bit(kExchange));
  } else {
    const double asked = std::max(b.read + b.again, b.elements * one);
    b.load(b.input, asked, b.read + b.again_beyond_l1, one);
  }
  b.compute(b.per_thread(), visit + b.work_left(visit));
  if (kernel.passes > 0) b.e.barrier();
  b.close();
  b.store(b.written, std::max(4.0, one));
  if (turns) b.close();
  return b.finish();
}

}  // namespace voltaic::cycle::detail
