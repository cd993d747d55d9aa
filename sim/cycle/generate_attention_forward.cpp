// SPDX-License-Identifier: MIT
// FlashAttention-2 and -3 as they run on Ampere: a CTA holds a tile of queries and walks over blocks of keys; scores
// stay in registers, keys and values come by asynchronous copies one product ahead [FA2].
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/attention.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr int kFragments = 0;  ///< Scoreboards 0 and 1: matrix loads.
constexpr int kSoftmax = 2;    ///< 2 and 3.
constexpr int kTable = 4;      ///< Page table, queries.
constexpr double kLanes = 32;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

struct Flash {
  const AttentionPlan& plan;
  const kernel::AttentionKernel& kernel;
  const arch::GpuSpec& gpu;
  Product product;
  Emitter& e;
  std::uint16_t query = 0, keys = 0, values = 0, result = 0, table = 0;

  double warp_rows() const { return std::max(1.0, plan.rows / plan.warps); }

  void tensors() {
    const bool cold = !kernel.warm;
    const double all = plan.resident * d(std::max<std::int64_t>(1, gpu.sm.count));
    query = e.tensor(whole_tensor("q", plan.queries * d(kernel.head_dim) * plan.element, cold, false));
    keys = e.tensor(streamed_tensor("k", plan, d(kernel.head_dim), all, cold));
    values = e.tensor(streamed_tensor("v", plan, d(kernel.value_dim), all, cold));
    const bool partial = kernel.split_variant && plan.splits > 1;
    const double bytes = plan.queries * d(kernel.value_dim);
    result = e.tensor(whole_tensor("o", partial ? 4 * bytes * plan.splits : bytes * plan.element, cold, true));
    if (plan.paged) {
      Tensor t = whole_tensor("block_table", 4 * d(kernel.batch) * std::ceil(plan.kv_tokens / 16), true, false);
      const Tensor& k = e.program.tensors[keys];
      t.wave_bytes = t.unique_bytes * std::max(1.0, k.wave_bytes / std::max(k.unique_bytes, 1.0));
      table = e.tensor(std::move(t));
    }
  }

  Place place(double width, std::uint16_t loop) const {
    Place p;
    const double group = plan.kv_tokens * width * plan.element;
    p.per_cta[1] = offset(group * (kernel.decode ? 1 : d(kernel.kv_heads)));
    p.per_cta[2] = offset(kernel.decode ? group / plan.splits : group / plan.sharing);
    p.per_trip[loop] = offset(plan.keys * width * plan.element);
    return p;
  }

  /// Where a block's pages lie: each thread looks its row up and works out the address.
  void look_up(std::uint16_t access) {
    if (!plan.paged) return;
    e.address(4);
    e.memory(Op::load_global, access, 1, kTable);
    e.wait(bit(kTable)).math(Op::imad, 2, Next::dependent);
    e.math(Op::imad, 2, Next::dependent);
  }

  void run() {
    tensors();
    const double block = std::min(plan.keys, plan.kv_tokens) * plan.element;
    const std::uint16_t loop = 0;
    const TileCopy load_q(e, gpu, query, plan.valid_rows * d(kernel.head_dim) * plan.element,
                          d(kernel.head_dim) * plan.element, plan.warps);
    const TileCopy load_k(e, gpu, keys, block * d(kernel.head_dim), d(kernel.head_dim) * plan.element, plan.warps,
                          place(d(kernel.head_dim), loop));
    const TileCopy load_v(e, gpu, values, block * d(kernel.value_dim), d(kernel.value_dim) * plan.element, plan.warps,
                          place(d(kernel.value_dim), loop));
    Access entry = global_access(table, 1, 4);
    entry.l1_hit = 0.75;  // Four warps of the CTA read the same entries.
    const std::uint16_t pages = plan.paged ? e.access(entry) : std::uint16_t{0};
    e.address(48);     // block indices, swizzled addresses
    if (plan.paged) {  // where the sequence begins and how long it is
      e.memory(Op::load_global, e.access(global_access(table, 1, 8)), 2, kTable);
      e.wait(bit(kTable)).math(Op::imad, 4, Next::dependent);
    }
    load_q.start(e, kTable);
    look_up(pages);
    load_k.start(e, kTable);
    load_q.land(e, kTable), load_k.land(e, kTable);
    e.commit_group();
    e.math(Op::alu, output_elements());  // accumulators
    steps(load_k, load_v, pages);
    epilogue();
  }

  double output_elements() const { return warp_rows() * plan.value / kLanes; }
  double score_elements() const { return warp_rows() * plan.keys / kLanes; }
  /// Rows of which a thread holds a part: two of each 16.
  double row_sets() const { return std::max(1.0, warp_rows() / 8); }

  /// The last step has no keys to fetch; where the number of steps differs from CTA to CTA it is in the loop with the
  /// others and fetches a block more.
  void steps(const TileCopy& load_k, const TileCopy& load_v, std::uint16_t pages) {
    if (plan.rising || plan.mean > 1) {
      AttentionPlan but_last = plan;
      if (!plan.rising) but_last.mean = std::max(1.0, plan.mean - 1);
      e.open_loop(1);
      set_steps(e, but_last);
      step(load_k, load_v, pages, true);
      e.close_loop();
    }
    if (!plan.rising) step(load_k, load_v, pages, false);
  }

  void step(const TileCopy& load_k, const TileCopy& load_v, std::uint16_t pages, bool more) {
    e.wait_group(0);
    e.barrier();
    look_up(pages);
    e.address(6);
    load_v.start(e, kTable);
    load_v.land(e, kTable);
    e.commit_group();
    emit_product(e, product, {warp_rows(), plan.keys, plan.head}, kFragments);
    e.wait_group(0);
    e.barrier();
    if (more) {
      look_up(pages);
      e.address(6);
      load_k.start(e, kTable);
      load_k.land(e, kTable);
      e.commit_group();
    }
    emit_softmax(e, {score_elements(), row_sets(), output_elements()}, kSoftmax);
    WarpProduct weighted{warp_rows(), plan.value, plan.keys};
    weighted.a_in_registers = true;
    emit_product(e, product, weighted, kFragments);
  }

  /// Sums of rows over the quad, division, and the result through shared memory to whole rows.
  void epilogue() {
    for (int i = 0; i < 2; ++i) {
      e.wait(bit(kSoftmax)).variable(Op::shuffle, row_sets(), kSoftmax);
      e.wait(bit(kSoftmax)).math(Op::ffma, row_sets(), Next::dependent);
    }
    e.variable(Op::mufu, row_sets(), kSoftmax);
    e.wait(bit(kSoftmax)).math(Op::ffma, output_elements(), Next::dependent);
    const bool partial = kernel.split_variant && plan.splits > 1;
    const double width = partial ? 4 : plan.element;
    if (!partial) e.math(Op::alu, output_elements() / 2, Next::dependent);  // packing
    const double bytes = warp_rows() * plan.value * width;
    const auto staged = e.access(shared_access(512));
    e.memory(Op::store_shared, staged, bytes / 512);
    e.barrier();
    e.memory(Op::load_shared, staged, bytes / 512, kTable);
    e.wait(bit(kTable)).address(4);
    const double run = d(kernel.value_dim) * width;
    emit_stream(e, Op::store_global, result, plan.valid_rows * run, run, plan.warps, kNoScoreboard);
  }
};

}  // namespace

/// Maximum, exponentials and sums of a block's scores; earlier sums and results shrink by the change of the maximum.
/// Special functions are spread among the rest as the compiler does, so that their pipe is fed while others issue.
void emit_softmax(Emitter& e, const SoftmaxStep& s, int board) {
  const int maximum = board, exponent = board + 1;
  e.math(Op::ffma, s.scores, Next::dependent);  // FMNMX
  for (int i = 0; i < 2; ++i) {                 // over the quad that shares a row
    e.variable(Op::shuffle, s.row_sets, maximum);
    e.wait(bit(maximum)).math(Op::ffma, s.row_sets, Next::dependent);
  }
  e.math(Op::ffma, 2 * s.row_sets, Next::dependent);
  e.variable(Op::mufu, s.row_sets, maximum);
  e.math(Op::ffma, s.row_sets, Next::dependent);
  const double pieces = std::clamp(std::ceil(s.scores / 2), 1.0, 32.0);
  const auto upto = [pieces](double all, double i) { return std::floor(all * std::clamp(i, 0.0, pieces) / pieces); };
  const auto piece = [&](double all, double i) { return upto(all, i) - upto(all, i - 1); };
  const double scores = std::ceil(s.scores), outputs = std::ceil(s.outputs);
  e.math(Op::ffma, piece(scores, 1), Next::dependent);  // scale and subtract
  for (double i = 1; i <= pieces; ++i) {
    e.variable(Op::mufu, piece(scores, i), exponent);
    if (i + 1 <= pieces) e.math(Op::ffma, piece(scores, i + 1));
    if (i == 1) e.wait(bit(maximum));
    e.math(Op::ffma, piece(outputs, i));
    // Results of three pieces before have come meanwhile: sums and packing.
    if (i <= 3) continue;
    e.math(Op::ffma, piece(scores, i - 3)), e.math(Op::alu, piece(scores, i - 3) / 2);
  }
  const double left = scores - upto(scores, pieces - 3);
  e.wait(bit(exponent)).math(Op::ffma, left);
  e.math(Op::alu, left / 2, Next::dependent);
}

Part flash_forward(const kernel::Launch& launch, const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  const AttentionPlan plan = forward_plan(launch, k, gpu);
  Emitter e(launch.name, gpu);
  Flash flash{plan, k, gpu, product_of(gpu, k.math, true), e};
  e.program.mma = flash.product.shape;
  e.program.warps = plan.warps;
  e.program.registers_per_thread = launch.cta.registers_per_thread;
  const double shared = (plan.rows * plan.head + plan.keys * (plan.head + plan.value)) * plan.element;
  e.program.shared_bytes = std::min(shared, gpu.sm.shared_memory_per_cta.value);
  e.program.ctas_per_sm = plan.resident;
  e.program.grid = plan.grid;
  flash.run();
  return Part{e.finish()};
}

}  // namespace voltaic::cycle::detail
