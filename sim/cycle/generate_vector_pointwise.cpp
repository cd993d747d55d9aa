// SPDX-License-Identifier: MIT
// Pointwise kernels: threads that load a few elements of each operand, compute and store them. Contiguous operands in
// vectors of four elements, others one by one with index arithmetic.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/vector.hpp"

namespace voltaic::cycle::detail {
namespace {

using kernel::VectorKind;

constexpr double kPerThread = 4;   ///< Elements of a thread in one trip [ATEN].
constexpr double kLaneBytes = 16;  ///< Of the widest load.

struct Style {
  double lane_bytes = kLaneBytes;  ///< Of one load or store.
  ElementWork per_element;         ///< Beside the function.
  bool barrier = false;            ///< One in each trip.
  double per_thread = kPerThread;
};

/// Bytes per element of one operand, as an average over operands.
double operand_bytes(double bytes, double elements, int operands) {
  return bytes / (elements * std::max(1, operands));
}

Style style_of(const kernel::VectorKernel& k, double elements) {
  Style s;
  s.lane_bytes = std::min(kLaneBytes, kPerThread * std::max(1.0, k.element_bytes));
  const double one = std::clamp(k.element_bytes, 1.0, kLaneBytes);
  switch (k.kind) {
    case VectorKind::elementwise_broadcast:
      // A division by multiplication and shift for each dim and operand.
      s.lane_bytes = one;
      s.per_element = {0, 4, 4, 0, 1};
      break;
    case VectorKind::copy_strided:
      s.lane_bytes = one;
      s.per_element = {0, 4, 4, 0, 1};
      break;
    case VectorKind::half_elementwise:
    case VectorKind::half_activation:
      s.per_element = {0, 1.5, 0, 0, 1};  // Widening, and packing of pairs.
      break;
    case VectorKind::dropout:
      s.per_element = function_work("dropout");
      s.barrier = true;
      break;
    case VectorKind::copy: s.lane_bytes = kLaneBytes; break;
    default: break;
  }
  if (elements < 1) s.per_thread = 1;
  return s;
}

}  // namespace

Part pointwise(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 24);
  const Style style = style_of(kernel, b.elements);
  const double run = static_cast<double>(kernel.cols) * kernel.element_bytes;
  const bool short_runs = kernel.kind == VectorKind::copy_strided && run < 32;
  b.prologue();
  b.open(b.elements / (b.ctas * b.warps * 32 * style.per_thread));
  const int operands = std::max(1, kernel.tensor_inputs);
  const double asked = b.read + b.again, beyond = b.read + b.again_beyond_l1;
  if (short_runs) b.scatter_lanes(std::max(1.0, run));
  const double least = 1.0 / 32;  // bytes: an operand that is next to nothing
  for (int i = 0; i < operands && operand_bytes(asked, b.elements, operands) > 0; ++i) {
    b.e.address(2);
    const double lane = std::max(least, style.lane_bytes);
    b.load(b.input, asked / operands, beyond / operands, lane);
  }
  b.scatter_lanes(0);
  const ElementWork work = b.work_left(style.per_element) + style.per_element;
  b.compute(b.per_thread(), work);
  b.e.address(2);
  b.store(b.written, style.lane_bytes);
  if (style.barrier) b.e.barrier();
  b.close();
  return b.finish();
}

}  // namespace voltaic::cycle::detail
