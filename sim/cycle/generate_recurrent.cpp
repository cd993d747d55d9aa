// SPDX-License-Identifier: MIT
// Recurrent layers: one product and one pointwise kernel per dependent step, or all steps in one persistent kernel
// that keeps its weights in registers and meets at a barrier of the whole grid.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/copy.hpp"
#include "sim/cycle/detail/emit.hpp"
#include "sim/cycle/detail/product.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/kernel/recurrent.hpp"

namespace voltaic::cycle {
namespace {

using namespace detail;
using kernel::RecurrentKernel;
using kernel::RecurrentPass;

constexpr double kLanes = 32, kMost = 1e15;
constexpr int kFragments = 0, kWeights = 2, kState = 3, kGates = 4, kSpecial = 5;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

std::int64_t whole(double v) {
  return static_cast<std::int64_t>(std::clamp(std::ceil(v - 1e-9), 1.0, kMost));
}

Tensor tensor_of(std::string name, double bytes, bool cold, bool written = false) {
  Tensor t;
  t.name = std::move(name);
  t.unique_bytes = t.wave_bytes = bytes;
  t.cold = cold;
  t.written = written;
  return t;
}

struct Recurrent {
  const kernel::Launch& launch;
  const RecurrentKernel& k;
  const arch::GpuSpec& gpu;
  Product product;

  bool forward() const { return k.pass == RecurrentPass::forward; }
  double gates() const { return kernel::gates(k.cell); }
  /// Product of a step: results by batch, over k. Going backward the gates' gradients make the state's.
  double results() const { return forward() ? gates() * d(k.hidden) : d(k.hidden); }
  double depth() const { return forward() ? d(k.hidden) : gates() * d(k.hidden); }

  /// Special functions and other operations of one hidden element.
  double special() const { return gates() + (k.cell == kernel::RecurrentCell::lstm ? 1 : 0); }

  void pointwise_math(Emitter& e, double elements) const {
    e.math(Op::ffma, elements * 3 * gates(), Next::dependent);
    e.variable(Op::mufu, elements * special(), kSpecial);
    e.wait(bit(kSpecial)).math(Op::ffma, elements * 2 * special(), Next::dependent);
  }

  struct Tile {
    double rows = 32, columns = 32, split = 1;
    double tiles_m = 1, tiles_n = 1;
    int warps = 4;
  };
  /// Of tiles of 32 to 128 results by 32 to 128 of the batch the one whose rounds of CTAs take least: products, and
  /// operands that pass through shared memory at a sixteenth of their rate. Going backward the sum over the gates may
  /// be divided among CTAs.
  Tile tile_of(double cells) const {
    constexpr double kOperands = 16;
    Tile best;
    double least = 0;
    for (const double rows : {128.0, 64.0, 32.0}) {
      for (const double columns : {128.0, 64.0, 32.0}) {
        const double m = std::ceil(results() / rows), n = std::ceil(d(k.batch) / columns);
        for (double split = 1; split <= (forward() ? 1 : gates()); ++split) {
          const double rounds = std::ceil(m * n * split * cells / sms());
          const double cost = rounds / split * (rows * columns + kOperands * (rows + columns));
          if (least > 0 && !(cost < least)) continue;
          least = cost;
          best = {rows, columns, split, m, n, rows * columns >= 4096 ? 8 : 4};
        }
      }
    }
    return best;
  }

  /// Weights stream past the states of the step before; nobody reads them twice in a step but tiles along the batch.
  Part step_product(double cells, double steps, const Tile& tile) const {
    constexpr double kSlice = 64;  // bytes of a row in one slice
    Emitter e(launch.name, gpu);
    e.program.mma = product.shape;
    e.program.warps = tile.warps;
    e.program.registers_per_thread = launch.cta.registers_per_thread;
    e.program.grid = {whole(tile.tiles_m), whole(tile.tiles_n * tile.split), whole(cells)};
    const double slice = std::max(product.step(), kSlice / k.element_bytes);
    const double row = slice * k.element_bytes;
    const double rows = std::min(tile.rows, results()), columns = std::min(tile.columns, d(k.batch));
    const auto weights = e.tensor(tensor_of("weights", cells * results() * depth() * k.element_bytes, steps <= 1));
    const auto state = e.tensor(tensor_of("state", cells * d(k.batch) * depth() * k.element_bytes, false));
    const double partial = cells * d(k.batch) * results() * k.element_bytes * tile.split;
    const auto sums = e.tensor(tensor_of("gate sums", partial, false, true));
    Place w, s;
    w.per_cta[0] = offset(tile.rows * depth() * k.element_bytes);
    w.per_cta[2] = offset(results() * depth() * k.element_bytes);
    w.per_trip[0] = s.per_trip[0] = offset(row);
    const TileCopy load_w(e, gpu, weights, rows * row, row, tile.warps, w);
    const TileCopy load_s(e, gpu, state, columns * row, row, tile.warps, s);
    // Two stages through registers, four past them.
    const int stages = load_w.asynchronous() ? 4 : 2;
    e.program.shared_bytes = std::min(stages * (tile.rows + tile.columns) * row, gpu.sm.shared_memory_per_cta.value);
    e.address(40);
    for (int i = 0; i + 1 < stages; ++i) bring(e, load_w, load_s, i == 0);
    if (!load_w.asynchronous()) e.barrier();
    const WarpProduct work{tile.rows / (tile.warps / 2), tile.columns / 2, slice};
    // What a CTA fetches ahead is part of its slices.
    e.open_loop(std::max(1.0, depth() / tile.split / slice - (stages - 1)));
    if (load_w.asynchronous()) {
      e.wait_group(stages - 2);
      e.barrier();
      bring(e, load_w, load_s, false);
      emit_product(e, product, work, kFragments);
    } else {
      load_w.start(e, kWeights), load_s.start(e, kState);
      e.address(6);
      emit_product(e, product, work, kFragments);
      load_w.land(e, kWeights), load_s.land(e, kState);
      e.barrier();
    }
    e.close_loop();
    for (int i = 0; i + 1 < stages; ++i) {
      if (load_w.asynchronous()) {
        e.wait_group(stages - 2 - i);
        e.barrier();
      }
      emit_product(e, product, work, kFragments);
    }
    const double out = rows * columns * k.element_bytes;
    emit_stream(e, Op::store_global, sums, out, rows * k.element_bytes, tile.warps, kNoScoreboard);
    return Part{e.finish(), steps, steps};
  }

  static void bring(Emitter& e, const TileCopy& weights, const TileCopy& state, bool first) {
    weights.start(e, kWeights), state.start(e, kState);
    if (weights.asynchronous()) {
      e.commit_group();
    } else if (first) {
      weights.land(e, kWeights), state.land(e, kState);
    }
  }

  /// Gate sums, what the input adds to each gate, states: a thread per hidden element.
  Part step_pointwise(double cells, double steps, double split) const {
    constexpr double kWarps = 8;
    Emitter e(launch.name + " pointwise", gpu);
    e.program.warps = static_cast<int>(kWarps);
    e.program.registers_per_thread = 40;
    const double elements = cells * d(k.batch) * d(k.hidden);
    e.program.grid[0] = whole(elements / (kLanes * kWarps));
    const double bytes = elements * k.element_bytes;
    const double run = kLanes * k.element_bytes;
    const auto sums = e.access(
        global_access(e.tensor(tensor_of("gate sums", (forward() ? gates() : 1) * split * bytes, false)), 1, run));
    const auto inputs = e.access(global_access(e.tensor(tensor_of("gates", gates() * bytes, true)), 1, run));
    const auto state = e.access(global_access(e.tensor(tensor_of("state", 2 * bytes, false)), 1, run));
    const auto out = e.access(global_access(e.tensor(tensor_of("saved", 2 * bytes, true, true)), 1, run));
    e.address(12);
    e.memory(Op::load_global, sums, (forward() ? gates() : 1) * split, kGates);
    e.memory(Op::load_global, inputs, gates(), kGates);
    e.memory(Op::load_global, state, 2, kGates);
    e.wait(bit(kGates));
    pointwise_math(e, 1);
    e.memory(Op::store_global, out, 2);
    return Part{e.finish(), steps, steps};
  }

  std::vector<Part> steps() const {
    const kernel::Wavefront front = kernel::wavefront(k);
    const Tile tile = tile_of(front.cells);
    return {step_product(front.cells, front.diagonals, tile), step_pointwise(front.cells, front.diagonals, tile.split)};
  }

  static constexpr double kPersistentWarps = 8;
  double sms() const { return d(std::max<std::int64_t>(1, gpu.sm.count)); }

  Emitter persistent(const std::string& name) const {
    Emitter e(name, gpu);
    e.program.mma = product.shape;
    e.program.warps = static_cast<int>(kPersistentWarps);
    e.program.registers_per_thread = 255;
    e.program.ctas_per_sm = 1;
    e.program.grid[0] = gpu.sm.count > 0 ? gpu.sm.count : 1;
    return e;
  }

  /// Weights to registers, once.
  Part load_weights() const {
    Emitter e = persistent(launch.name);
    const double bytes = results() * depth() * k.element_bytes;
    const auto weights = e.tensor(tensor_of("weights", bytes, true));
    e.address(48);
    emit_stream(e, Op::load_global, weights, bytes / sms(), depth() * k.element_bytes, e.program.warps, kWeights);
    e.wait(bit(kWeights)).address(1);
    return Part{e.finish(), 1, 1};
  }

  /// Every SM reads the whole state, multiplies its rows of the weights (each warp a part of k), adds the warps' sums
  /// in shared memory, applies the gates and tells the others.
  Part persistent_step() const {
    Emitter e = persistent(launch.name + " step");
    const double batch = d(k.batch), state_bytes = batch * depth() * k.element_bytes;
    const auto state = e.tensor(tensor_of("state", state_bytes, false));
    const double own = results() / sms();  // rows of this SM
    const double elements = std::ceil(batch * d(k.hidden) / sms());
    const auto inputs = e.tensor(tensor_of("gates", batch * d(k.hidden) * gates() * k.element_bytes, true));
    const auto out = e.tensor(tensor_of("saved", 2 * batch * d(k.hidden) * k.element_bytes, true, true));
    const auto flags = e.tensor(tensor_of("flags", 4 * sms(), false, true));
    const double warp_elements = std::max(1.0, std::ceil(elements / (kLanes * kPersistentWarps)));
    // Gates of the next step are known beforehand; their loads are under way while the state comes.
    const double run = std::min(elements, kLanes * kPersistentWarps) / kPersistentWarps * k.element_bytes;
    const auto gate = e.access(global_access(inputs, 1, std::max(run, k.element_bytes)));
    e.memory(Op::load_global, gate, warp_elements * gates(), kGates);
    const double slice = std::max(product.step(), std::ceil(depth() / kPersistentWarps));
    const TileCopy load(e, gpu, state, state_bytes, depth() * k.element_bytes, e.program.warps);
    e.program.shared_bytes = std::min(state_bytes, gpu.sm.shared_memory_per_cta.value);
    load.start(e, kState);
    if (load.asynchronous()) {
      e.commit_group();
      e.wait_group(0);
    }
    load.land(e, kState);
    e.barrier();
    WarpProduct work{own, batch, slice};
    work.a_in_registers = true;
    emit_product(e, product, work, kFragments);
    exchange(e, own * batch);
    e.wait(bit(kGates));
    pointwise_math(e, warp_elements);
    e.memory(Op::store_global, e.access(global_access(out, 1, std::max(run, k.element_bytes))), 2 * warp_elements,
             kState);
    grid_barrier(e, flags);
    return Part{e.finish(), d(k.steps), 0};
  }

  /// Sums of the warps' parts of k.
  static void exchange(Emitter& e, double values) {
    const auto sums = e.access(shared_access(128));
    e.memory(Op::store_shared, sums, values / kLanes);
    e.barrier();
    const double own = values / kLanes;  // eight parts of an eighth
    e.memory(Op::load_shared, sums, own, kFragments);
    e.wait(bit(kFragments)).math(Op::ffma, own, Next::dependent);
  }

  /// The state is written, one thread counts the CTA in, and polls until the others are there.
  static void grid_barrier(Emitter& e, std::uint16_t flags) {
    const auto flag = e.access(global_access(flags, 1, 4));
    e.wait(bit(kState)).barrier();
    e.only_warps(1);
    // The fence waits until L2 has acknowledged the stores; then the count, and a look that came too early.
    e.memory(Op::atomic, flag, 1, kWeights);
    e.wait(bit(kWeights)).memory(Op::atomic, flag, 1, kWeights);
    e.wait(bit(kWeights)).memory(Op::load_global, flag, 1, kWeights);
    e.wait(bit(kWeights)).memory(Op::load_global, flag, 1, kWeights);
    e.wait(bit(kWeights)).math(Op::alu, 2, Next::dependent);
    e.all_warps();
    e.barrier();
  }

  /// Column sums of the gates' gradients: a thread per column walks over all rows.
  Part bias_gradient() const {
    Emitter e(launch.name, gpu);
    constexpr double kColumns = 256, kUnrolled = 4;
    const double cells = d(k.layers) * d(k.directions);
    const double rows = d(k.steps) * d(k.batch), width = gates() * d(k.hidden);
    e.program.warps = 8;
    e.program.registers_per_thread = 32;
    e.program.grid = {whole(width / kColumns), 1, whole(cells)};
    const double run = std::min(width, kLanes) * k.element_bytes;
    const auto gradients =
        e.access(global_access(e.tensor(tensor_of("gates", cells * rows * width * k.element_bytes, true)), 1, run));
    const auto bias =
        e.access(global_access(e.tensor(tensor_of("bias", cells * width * k.element_bytes, true, true)), 1, run));
    e.address(12);
    e.open_loop(rows / kUnrolled);
    e.memory(Op::load_global, gradients, std::min(kUnrolled, rows), kGates);
    e.address(2);
    for (double i = 0; i < std::min(kUnrolled, rows); ++i) e.wait(bit(kGates)).math(Op::ffma, 1, Next::dependent);
    e.close_loop();
    e.memory(Op::store_global, bias);
    return Part{e.finish()};
  }
};

}  // namespace

std::vector<Part> generate_recurrent(const kernel::Launch& launch, const RecurrentKernel& k, const arch::GpuSpec& gpu) {
  const Recurrent layer{launch, k, gpu, product_of(gpu, k.math, launch.tensor_cores)};
  if (k.pass == RecurrentPass::backward_weights) return {layer.bias_gradient()};
  if (k.persistent) return {layer.load_weights(), layer.persistent_step()};
  return layer.steps();
}

}  // namespace voltaic::cycle
