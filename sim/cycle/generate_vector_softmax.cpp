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

constexpr ElementWork kQuotient{5, 3, 0, 2, 1};  ///< What a division counts.

constexpr ElementWork kFold{1, 0, 0, 0, 1};

/// How a CTA walks along a row: what lies before the first whole vector one element to a thread, then vectors while all
/// threads have one, then the rest one element to a thread again.
struct RowSteps {
  double cols = 1, threads = 32;
  double vectors = 0, singles = 0;
  double in_vectors = 0;  ///< Share of the row.
};

constexpr double kVector = 4;  ///< Elements.

RowSteps steps_of(const kernel::VectorKernel& kernel, double threads) {
  constexpr double kMeanShift = 2;  // elements from a vector's start to the row's
  RowSteps r;
  r.cols = static_cast<double>(std::max<std::int64_t>(kernel.cols, 1));
  r.threads = threads;
  const bool aligned = kernel.cols % 4 == 0;
  const double head = aligned ? 0 : std::min(r.cols, threads - kMeanShift);
  const double vectors = std::floor((r.cols - head) / (kVector * threads));
  const double tail = r.cols - head - vectors * kVector * threads;
  r.vectors = vectors;
  r.singles = (aligned ? 0 : 1) + std::ceil(tail / threads);
  r.in_vectors = vectors * kVector * threads / r.cols;
  return r;
}

/// What is left of a row's length after whole steps: an integer division by way of a reciprocal.
void remainder(VectorBuilder& b) {
  constexpr int kSteps = 8;  // products and corrections that depend on each other
  b.e.variable(Op::convert, 2, kSpecial);
  b.e.wait(bit(kSpecial)).variable(Op::mufu, 1, kSpecial);
  b.e.wait(bit(kSpecial)).variable(Op::convert, 1, kSpecial);
  b.e.wait(bit(kSpecial));
  for (int i = 0; i < kSteps; ++i) b.e.math(Op::imad, 1, Next::dependent);
}

/// The fold over a CTA: the first lanes add up a warp's values each, which lie in one bank, then one thread the sums.
void fold_in_columns(VectorBuilder& b) {
  const std::uint16_t own = b.e.access(shared_access(4 * kLanes));
  const std::uint16_t column = b.e.access(shared_access(4 * b.warps, b.warps));
  const std::uint16_t one = b.e.access(shared_access(4));
  const auto add_up = [&b](std::uint16_t access, double values, double together) {
    for (double done = 0; done < values; done += together) {
      b.e.memory(Op::load_shared, access, together, kExchange);
      b.e.wait(bit(kExchange));
      for (double i = 0; i < together; ++i) b.e.math(Op::ffma, 1, Next::dependent);
    }
  };
  b.e.barrier();
  b.e.memory(Op::store_shared, own);
  b.e.barrier();
  b.e.only_warps(1);
  add_up(column, kLanes, kLanes);
  b.e.memory(Op::store_shared, one);
  b.e.all_warps();
  b.e.barrier();
  b.e.only_warps(1);
  add_up(one, b.warps, std::min(b.warps, 4.0));
  b.e.memory(Op::store_shared, one);
  b.e.all_warps();
  b.e.barrier();
  b.e.memory(Op::load_shared, one, 1, kExchange);
  b.e.wait(bit(kExchange)).math(Op::alu, 1, Next::dependent);
}

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
  if (kernel.backward) {
    b.compute(real, one, 0);
  } else {
    b.divide(held);
  }
  b.compute(real, b.work_left(fixed), 0);
  b.e.address(held);
  b.store(b.written, lane);
  b.close();
  return b.finish();
}

Part softmax_in_ctas(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu) {
  VectorBuilder b(launch, kernel, gpu, 32);
  const RowSteps row = steps_of(kernel, b.warps * kLanes);
  b.misaligned(std::fmod(row.cols * kernel.element_bytes, 32) != 0);
  const double rows_per_cta = static_cast<double>(std::max<std::int64_t>(kernel.rows, 1)) / b.ctas;
  const int passes = kernel.backward ? 2 : 3;
  const double rereads = passes - 1;
  const bool rows_in_turn = rows_per_cta > 1 + 1e-9;
  b.grid_stride(false);
  b.prologue(20);
  if (rows_in_turn) b.open(std::ceil(rows_per_cta));
  const ElementWork counted =
      kernel.backward ? ElementWork{3, 0, 0, 0, 1} : 2.0 * kFold + 2.0 * exponential() + kQuotient;
  const ElementWork left = b.work_left(counted);
  for (int pass = 0; pass < passes; ++pass) {
    const bool last = pass + 1 == passes;
    // The share of the row that these loads bring, `n` elements of it to a thread.
    const auto step = [&](double share, double lane_bytes, double n) {
      b.e.address(2);
      if (pass == 0) {
        b.load(share * b.read, lane_bytes);
      } else {
        b.load(b.input, share * b.again / rereads, share * b.again_beyond_l1 / rereads, lane_bytes);
      }
      b.compute(n, kernel.backward ? (last ? 2.0 * kFold : kFold)
                   : last          ? exponential()
                   : pass == 0     ? kFold
                                   : exponential() + kFold);
      if (!last) return;
      if (!kernel.backward) b.divide(std::ceil(n - 1e-9));
      b.compute(n, left, 0);
      b.store(share * b.written, lane_bytes);
    };
    const double vector = std::min(16.0, kVector * kernel.element_bytes);
    remainder(b);
    if (row.vectors > 0) {
      b.open(row.vectors);
      step(row.in_vectors, vector, kVector * row.in_vectors * row.cols / (row.vectors * kVector * row.threads));
      b.close();
    }
    for (double i = 0; i < row.singles; ++i) {
      const double share = (1 - row.in_vectors) / row.singles;
      step(share, std::max(1.0, kernel.element_bytes), share * row.cols / row.threads);
    }
    if (!last) fold_in_columns(b);
  }
  if (rows_in_turn) b.close();
  return b.finish();
}

}  // namespace voltaic::cycle::detail
