// SPDX-License-Identifier: MIT
// CUTLASS fused attention (memory_efficient): works on every GPU and type. Both products run as a GEMM's main loop
// does, slices of both operands through shared memory; the probabilities pass through it too.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/attention.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr int kFragments = 0;  ///< 0 and 1
constexpr int kSoftmax = 2;    ///< 2 and 3
constexpr int kLeft = 4, kRight = 5;
constexpr double kLanes = 32;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

struct Efficient {
  const AttentionPlan& plan;
  const kernel::AttentionKernel& kernel;
  const arch::GpuSpec& gpu;
  Product product;
  Emitter& e;

  /// k of one slice: 64 bytes of a row on tensor cores, 32 on lanes.
  double slice() const { return std::max(product.step(), (product.tensor() ? 64 : 32) / product.element_bytes); }
  /// Two by two warps over a tile.
  double warps_m() const { return plan.warps >= 4 ? 2 : 1; }
  double warps_n() const { return std::max(1.0, plan.warps / warps_m()); }
  double threads() const { return kLanes * plan.warps; }

  void run() {
    const bool cold = !kernel.warm;
    const double all = plan.resident * d(std::max<std::int64_t>(1, gpu.sm.count));
    const double head = d(kernel.head_dim) * plan.element, value = d(kernel.value_dim) * plan.element;
    Tensor q = whole_tensor("q", plan.queries * head, cold, false);
    const auto query = e.tensor(std::move(q));
    const auto keys = e.tensor(streamed_tensor("k", plan, d(kernel.head_dim), all, cold));
    const auto values = e.tensor(streamed_tensor("v", plan, d(kernel.value_dim), all, cold));
    const auto result = e.tensor(whole_tensor("o", plan.queries * value * plan.splits, cold, true));
    const double part = slice() * plan.element;
    const TileCopy load_q(e, gpu, query, plan.valid_rows * part, part, plan.warps);
    const TileCopy load_k(e, gpu, keys, std::min(plan.keys, plan.kv_tokens) * part, part, plan.warps, place(head, 0));
    const double rows_of_values = std::min({slice(), plan.keys, plan.kv_tokens});
    const TileCopy load_v(e, gpu, values, rows_of_values * value, value, plan.warps, place(value, 0));
    e.address(48);
    e.math(Op::alu, plan.rows * plan.value / threads());
    e.open_loop(1);
    set_steps(e, plan);
    e.address(16);
    load_q.start(e, kLeft), load_k.start(e, kRight);
    land(load_q, load_k);
    slices(load_q, load_k, {plan.rows / warps_m(), plan.keys / warps_n(), slice()}, std::ceil(plan.head / slice()));
    softmax();
    load_v.start(e, kRight);
    land(load_v, load_v);
    slices(load_v, load_v, {plan.rows / warps_m(), plan.value / warps_n(), slice()}, std::ceil(plan.keys / slice()));
    e.close_loop();
    e.variable(Op::mufu, std::max(1.0, plan.rows / threads()), kSoftmax);
    const double outputs = plan.rows * plan.value / threads();
    e.wait(bit(kSoftmax)).math(Op::ffma, outputs, Next::dependent);
    if (plan.element < 4) e.math(Op::alu, outputs / 2, Next::dependent);
    emit_stream(e, Op::store_global, result, plan.valid_rows * value, value, plan.warps, kNoScoreboard);
  }

  Place place(double width, std::uint16_t loop) const {
    Place p;
    p.per_cta[2] = offset(plan.kv_tokens * width / plan.sharing);
    p.per_trip[loop] = offset(plan.keys * width);
    return p;
  }

  void land(const TileCopy& left, const TileCopy& right) {
    if (left.asynchronous()) {
      e.commit_group();
      e.wait_group(0);
    }
    if (&left != &right) left.land(e, kLeft);
    right.land(e, kRight);
    e.barrier();
  }

  /// The next slice is under way while this one multiplies; the last one fetches nothing. Few slices are unrolled.
  void slices(const TileCopy& left, const TileCopy& right, const WarpProduct& work, double trips) {
    constexpr double kMostUnrolled = 16;
    if (trips > kMostUnrolled) {
      e.open_loop(trips - 1);
      slice_with_next(left, right, work);
      e.close_loop();
    } else {
      for (double i = 0; i + 1 < trips; ++i) slice_with_next(left, right, work);
    }
    emit_product(e, product, work, kFragments);
    e.barrier();
  }

  void slice_with_next(const TileCopy& left, const TileCopy& right, const WarpProduct& work) {
    if (&left != &right) left.start(e, kLeft);
    right.start(e, kRight);
    e.address(6);
    emit_product(e, product, work, kFragments);
    land(left, right);
  }

  /// Maxima of rows meet in shared memory, and the probabilities are left there for the second product.
  void softmax() {
    const double scores = plan.rows * plan.keys / threads(), outputs = plan.rows * plan.value / threads();
    emit_softmax(e, {scores, std::max(1.0, plan.rows / warps_m() / 8), outputs}, kSoftmax);
    const auto maxima = e.access(shared_access(128));
    e.memory(Op::store_shared, maxima);
    e.barrier();
    e.memory(Op::load_shared, maxima, 1, kSoftmax);
    const double bytes = plan.rows * plan.keys * product.element_bytes / plan.warps;
    const auto staged = e.access(shared_access(256));
    e.wait(bit(kSoftmax)).memory(Op::store_shared, staged, bytes / 256);
    e.barrier();
  }
};

}  // namespace

Part efficient_forward(const kernel::Launch& launch, const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  const AttentionPlan plan = forward_plan(launch, k, gpu);
  Emitter e(launch.name, gpu);
  Efficient kernel{plan, k, gpu, product_of(gpu, k.math, launch.tensor_cores), e};
  e.program.mma = kernel.product.shape;
  e.program.warps = plan.warps;
  e.program.registers_per_thread = launch.cta.registers_per_thread;
  // Two slices of both operands and the probabilities.
  const double slices = 2 * (plan.rows + std::max(plan.keys, plan.value)) * kernel.slice() * plan.element;
  const double shared = slices + plan.rows * plan.keys * kernel.product.element_bytes;
  e.program.shared_bytes = std::min(shared, gpu.sm.shared_memory_per_cta.value);
  e.program.ctas_per_sm = plan.resident;
  e.program.grid = plan.grid;
  kernel.run();
  return Part{e.finish()};
}

}  // namespace voltaic::cycle::detail
