// SPDX-License-Identifier: MIT
// The gradient as FlashAttention-2 computes it: a CTA holds 128 keys and walks over blocks of queries with five
// products; dq is summed in fp32 with atomics, dk and dv stay in registers [FA2].
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/attention.hpp"
#include "sim/kernel/attention_shape.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr int kFragments = 0;  ///< 0 and 1
constexpr int kExponent = 2, kSums = 3, kQuery = 4, kGradient = 5;
constexpr double kLanes = 32;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

struct Backward {
  const AttentionPlan& plan;
  const kernel::AttentionKernel& kernel;
  const arch::GpuSpec& gpu;
  Product product;
  Emitter& e;
  std::uint16_t gradient_q = 0, sums = 0;

  double threads() const { return kLanes * plan.warps; }
  double scores() const { return plan.rows * plan.keys / threads(); }

  /// Each product's tile over four by two warps.
  void multiply(double m, double n, double k) { emit_product(e, product, {m / 4, n / 2, k}, kFragments); }

  /// Queries are streamed past every block of keys, those of one head by all CTAs in x.
  Tensor streamed(std::string name, double bytes) const {
    Tensor t = whole_tensor(std::move(name), bytes, true, false);
    const double resident = d(std::max<std::int64_t>(1, gpu.sm.count));
    t.wave_bytes = bytes * std::max(1.0, d(plan.grid[0]) / resident);
    return t;
  }

  void run() {
    const double head = d(kernel.head_dim) * plan.element, value = d(kernel.value_dim) * plan.element;
    const auto query = e.tensor(streamed("q", plan.queries * head));
    const auto gradient = e.tensor(streamed("dy", plan.queries * value));
    const double cache = plan.kv_groups * plan.kv_tokens;
    const auto keys = e.tensor(whole_tensor("k, v", cache * (head + value), true, false));
    const auto result = e.tensor(whole_tensor("dk, dv", plan.sharing * cache * (head + value), true, true));
    Tensor dq = streamed("dq", 4 * plan.queries * d(kernel.head_dim));
    dq.written = true;
    dq.cold = false;  // The kernel before cleared it.
    gradient_q = e.tensor(std::move(dq));
    Tensor rows = streamed("row sums", 8 * plan.queries);
    rows.cold = false;
    sums = e.tensor(std::move(rows));
    const TileCopy load_keys(e, gpu, keys, plan.keys * (head + value), head, plan.warps);
    const TileCopy load_q(e, gpu, query, plan.rows * head, head, plan.warps, place(head));
    const TileCopy load_dy(e, gpu, gradient, plan.rows * value, value, plan.warps, place(value));
    e.address(64);
    load_keys.start(e, kGradient);
    load_keys.land(e, kGradient);
    bring(load_q, load_dy);
    e.math(Op::alu, plan.keys * (plan.head + plan.value) / threads());  // accumulators
    e.open_loop(1);
    set_steps(e, plan);
    step(load_q, load_dy);
    e.close_loop();
    epilogue(result, plan.keys * (head + value), head);
  }

  Place place(double width) const {
    Place p;
    const double group = d(kernel.seq_q) * width;
    p.per_cta[1] = offset(group * d(kernel.heads));
    p.per_cta[2] = offset(group);
    p.per_trip[0] = offset(plan.rows * width);
    return p;
  }

  void bring(const TileCopy& q, const TileCopy& dy) {
    e.address(8);
    q.start(e, kQuery), dy.start(e, kGradient);
    q.land(e, kQuery), dy.land(e, kGradient);
    e.commit_group();
  }

  void step(const TileCopy& q, const TileCopy& dy) {
    Access row = global_access(sums, 1, 32);
    row.l1_hit = 0.5;  // Two warps hold the same rows.
    e.memory(Op::load_global, e.access(row), 4, kSums);
    e.wait_group(0);
    e.barrier();
    multiply(plan.rows, plan.keys, plan.head);  // S = Q K
    probabilities();
    multiply(plan.rows, plan.keys, plan.value);  // dP = dY V
    e.wait(bit(kSums)).math(Op::ffma, 2 * scores(), Next::dependent);
    const double bytes = plan.rows * plan.keys * product.element_bytes / plan.warps;
    const auto staged = e.access(shared_access(256));
    e.math(Op::alu, scores(), Next::dependent);  // packing of P and dS
    e.memory(Op::store_shared, staged, 2 * bytes / 256);
    e.barrier();
    multiply(plan.keys, plan.value, plan.rows);  // dV += P dY
    e.barrier();
    bring(q, dy);
    multiply(plan.rows, plan.head, plan.keys);  // dQ = dS K
    Access red = global_access(gradient_q, 1, 128);
    red.per_trip[0] = offset(plan.rows * plan.head * 4);
    e.memory(Op::atomic, e.access(red), plan.rows * d(kernel.head_dim) / threads());
    multiply(plan.keys, plan.head, plan.rows);  // dK += dS Q
    e.address(12);
  }

  /// P = exp(scale S - lse), spread among the scaling.
  void probabilities() {
    const double pieces = std::max(1.0, std::ceil(scores() / 2));
    e.math(Op::ffma, scores() / pieces, Next::dependent);
    for (double i = 0; i < std::min(pieces, 64.0); ++i) {
      e.variable(Op::mufu, scores() / std::min(pieces, 64.0), kExponent);
      if (i + 1 < pieces) e.math(Op::ffma, scores() / std::min(pieces, 64.0));
    }
    e.wait(bit(kExponent));
  }

  void epilogue(std::uint16_t result, double bytes, double run) {
    const double own = plan.keys * (plan.head + plan.value) / threads();
    e.math(Op::ffma, own, Next::dependent);
    e.math(Op::alu, own / 2, Next::dependent);
    const auto staged = e.access(shared_access(512));
    e.memory(Op::store_shared, staged, bytes / 512 / plan.warps);
    e.barrier();
    e.memory(Op::load_shared, staged, bytes / 512 / plan.warps, kQuery);
    e.wait(bit(kQuery)).address(4);
    emit_stream(e, Op::store_global, result, bytes, run, plan.warps, kNoScoreboard);
  }
};

}  // namespace

Part flash_backward(const kernel::Launch& launch, const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  const AttentionPlan plan = backward_plan(launch, k, gpu);
  Emitter e(launch.name, gpu);
  Backward kernel{plan, k, gpu, product_of(gpu, k.math, launch.tensor_cores), e};
  e.program.mma = kernel.product.shape;
  e.program.warps = plan.warps;
  e.program.registers_per_thread = launch.cta.registers_per_thread;
  const double tiles = 2 * plan.rows * (plan.head + plan.value) + plan.keys * (plan.head + plan.value);
  const double shared = (tiles + 2 * plan.rows * plan.keys) * plan.element;
  e.program.shared_bytes = std::min(shared, gpu.sm.shared_memory_per_cta.value);
  e.program.ctas_per_sm = plan.resident;
  e.program.grid = plan.grid;
  kernel.run();
  return Part{e.finish()};
}

}  // namespace voltaic::cycle::detail
