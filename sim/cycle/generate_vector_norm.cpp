// SPDX-License-Identifier: MIT
// Norms: a CTA per row (or channel) that gathers statistics, folds them and passes over the row again.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/vector.hpp"

namespace voltaic::cycle::detail {
namespace {

using kernel::VectorKind;

constexpr double kLanes = 32;
/// Welford's update: the count's reciprocal (MUFU.RCP, Newton, check), the distance, mean and sum of squares.
constexpr ElementWork kWelford{7, 2, 0, 1, 1};
/// The update of mean and sum of squares by `n` elements, each after the one before.
void welford(VectorBuilder& b, double n) {
  for (double i = 0; i < std::round(n); ++i) {
    b.chain(Op::ffma, 1);
    b.reciprocal(1);
    b.chain(Op::ffma, 4);
  }
}

/// Two partial results made one: weights from counts, means, squares.
void join(VectorBuilder& b) {
  b.chain(Op::ffma, 1);
  b.e.math(Op::ffma);
  b.e.stalled(Op::alu, 1, b.e.latency(Op::alu) + b.gpu.pipeline.branch_latency.value);  // Counts of zero.
  b.reciprocal(1);
  b.e.math(Op::ffma, 4);
  b.chain(Op::ffma, 4);
}

/// Mean, squares and count of a CTA: shuffles in warps, then halves of the warps hand theirs to the others.
void fold_moments(VectorBuilder& b) {
  for (double width = 1; width < kLanes; width *= 2) {
    b.e.variable(Op::shuffle, 3, kExchange);
    b.e.wait(bit(kExchange));
    join(b);
  }
  if (b.warps <= 1) return;
  const std::uint16_t one = b.e.access(shared_access(4));
  for (int half = static_cast<int>(b.warps + 1) / 2; half > 0; half = half == 1 ? 0 : (half + 1) / 2) {
    b.e.only_warps(half);  // As many write as read.
    b.e.memory(Op::store_shared, one, 3);
    b.e.all_warps();
    b.e.barrier();
    b.e.only_warps(half);
    b.e.memory(Op::load_shared, one, 3, kExchange);
    b.e.wait(bit(kExchange));
    join(b);
    b.e.all_warps();
    b.e.barrier();
  }
  b.e.only_warps(1);
  b.e.memory(Op::store_shared, one, 2);
  b.e.all_warps();
  b.e.barrier();
  b.e.memory(Op::load_shared, one, 2, kExchange);
  b.e.wait(bit(kExchange)).math(Op::ffma, 1, Next::dependent);
}

struct Row {
  double rows_per_cta = 1, bytes = 0, steps = 1;
  double vector = 16;  ///< Bytes of a lane's load.
  bool held = false;   ///< In registers, read once.
};

/// Generated kernels keep rows in registers; ATen's read them again, from L1 where the law says no more.
bool keeps_rows(const kernel::Launch& launch, const kernel::VectorKernel& kernel) {
  return !(kernel.reread_bytes > 0) && launch.library != "ATen" && launch.library != "cuDNN";
}

Row row_of(const VectorBuilder& b) {
  const kernel::VectorKernel& k = b.kernel;
  Row r;
  r.rows_per_cta = static_cast<double>(std::max<std::int64_t>(k.rows, 1)) / b.ctas;
  r.vector = k.cols % 4 == 0 ? std::min(16.0, 4 * std::max(1.0, k.element_bytes)) : std::max(1.0, k.element_bytes);
  const double elements = static_cast<double>(std::max<std::int64_t>(k.cols, 1));
  r.steps = std::max(1.0, std::ceil(elements * k.element_bytes / (r.vector * b.warps * kLanes) - 1e-9));
  r.held = keeps_rows(b.launch, k);
  return r;
}

bool gathers_moments(VectorKind kind) {
  return kind == VectorKind::layer_norm || kind == VectorKind::half_layer_norm || kind == VectorKind::batch_norm;
}

}  // namespace

Part norm_rows(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const Row row = row_of(b);
  const bool forward = !kernel.backward && gathers_moments(kernel.kind);
  const bool turns = row.rows_per_cta > 1 + 1e-9;
  b.grid_stride(false);
  b.prologue(16);
  b.misaligned(std::fmod(static_cast<double>(kernel.cols) * kernel.element_bytes, 32) != 0);
  if (turns) b.open(std::ceil(row.rows_per_cta));
  const ElementWork sums{3, 0, 0, 0, 1}, result{3, 1, 0, 0, 1};
  const ElementWork gather = forward ? kWelford : sums;
  b.open(row.steps);
  b.e.address(2);
  b.load(b.read, row.vector);
  if (forward) {
    b.e.wait(bit(kLoads));
    welford(b, std::ceil(b.per_thread() - 1e-9));
  } else {
    b.compute(b.per_thread(), gather);
  }
  b.close();
  if (forward) {
    fold_moments(b);
  } else {
    b.cta_fold(2);
  }
  b.e.variable(Op::mufu, 1, kSpecial);
  b.e.wait(bit(kSpecial)).math(Op::ffma, 2, Next::dependent);
  b.open(row.steps);
  b.e.address(2);
  if (!row.held) {
    // Without a law of its own the second reading finds the row in L1.
    const double again = b.again > 0 ? b.again : b.read;
    b.load(b.input, again, b.again > 0 ? b.again_beyond_l1 : 0, row.vector);
  }
  b.load_shared_operand(kernel.kind == VectorKind::batch_norm ? 0 : 2, row.vector);
  b.compute(b.per_thread(), result + b.work_left(gather + result));
  b.store(b.written, row.vector);
  b.close();
  if (turns) b.close();
  return b.finish();
}

Part serving_rows(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 28);
  const bool norm = kernel.kind == VectorKind::serving_norm;
  const double turns = static_cast<double>(std::max<std::int64_t>(kernel.rows, 1)) / b.ctas;
  const double one = std::max(1.0, kernel.element_bytes);
  const double steps = std::max(1.0, kernel.passes);
  const ElementWork widen{0, 1, 0, 0, 1}, square{1, 0, 0, 0, 1}, scale{2, 1, 0, 0, 1};
  b.grid_stride(false);
  b.prologue(12);
  if (turns > 1 + 1e-9) b.open(std::ceil(turns));
  if (norm) {
    b.open(steps);
    b.e.address(2);
    b.load(b.read, one);
    b.compute(b.per_thread(), square + widen);
    b.close();
    b.cta_fold(1);
    b.e.variable(Op::mufu, 1, kSpecial);
    b.e.wait(bit(kSpecial)).math(Op::ffma, 1, Next::dependent);
  }
  b.open(steps);
  b.e.address(4);
  if (norm) {
    b.load(b.input, b.read, 0, one);
    b.load_shared_operand(1, one);
  } else {
    // Two values of a pair, or gate and up.
    b.load(0.5 * b.read, one);
    b.load(0.5 * b.read, one);
    if (kernel.kind == VectorKind::serving_rope) b.load_shared_operand(2, one);
  }
  const ElementWork work =
      norm ? scale + widen : 2.0 * widen + function_work(kernel.kind == VectorKind::serving_gate ? "silu_mul" : "rope");
  b.compute(b.per_thread(), work + b.work_left(work + (norm ? square : ElementWork{})));
  b.store(b.written, one);
  b.close();
  if (turns > 1 + 1e-9) b.close();
  return b.finish();
}

}  // namespace voltaic::cycle::detail
