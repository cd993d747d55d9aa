// SPDX-License-Identifier: MIT
// A serving stack's mixture of experts: rows sorted by expert, two grouped products over tiles of an expert's rows,
// activation and sum in between and after.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/copy.hpp"
#include "sim/cycle/detail/emit.hpp"
#include "sim/cycle/detail/product.hpp"
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {
namespace {

using namespace detail;
using kernel::ExpertKernel;
using kernel::ExpertPart;

constexpr double kLanes = 32, kMost = 1e15, kRowBytes = 2;
constexpr int kFragments = 0, kLeft = 2, kRight = 3, kIndex = 4;

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

/// Rows, columns and k of a tile, as the stacks choose them.
struct ExpertTile {
  double rows = 64, columns = 64, slice = 32;
  int stages = 3;
  double group = 8;  ///< Blocks of rows that run side by side over the columns.
  bool striped = false;
};

double blocks_of(const ExpertKernel& k, double rows) {
  std::size_t i = 0;
  while (i + 1 < kernel::kRowBlocks.size() && kernel::kRowBlocks[i] < rows) ++i;
  return std::max(1.0, k.load.blocks[i]);
}

/// Triton: 16 x 32 while tokens are no more than experts, else 64 x 64. The int4 kernel: the least of 8 to 64 rows that
/// holds most of an expert's; the library's: likewise of 16 to 128. Both have 128 columns.
ExpertTile tile_of(const ExpertKernel& k) {
  const bool marlin = k.stack.find("marlin") != std::string::npos;
  if (!marlin && k.stack.find("cutlass") == std::string::npos) {
    return k.tokens <= k.local_experts ? ExpertTile{16, 32, 64, 3, 1, false} : ExpertTile{64, 64, 32, 3, 8, false};
  }
  const double mean = k.load.slots / std::max(1.0, d(k.local_experts));
  double rows = marlin ? 64 : 128;
  for (const double r : {64.0, 48.0, 32.0, 16.0}) {
    if (!marlin && r == 48) continue;
    if (r < rows && mean / r < 0.9) rows = r;
  }
  return {rows, 128, 64, 4, 1, marlin};
}

struct Experts {
  const kernel::Launch& launch;
  const ExpertKernel& k;
  const arch::GpuSpec& gpu;

  Part product() const {
    const bool up = k.part == ExpertPart::up;
    const double n = (up ? d(k.gate_width) * d(k.inner) : d(k.hidden)) * k.share;
    const double depth = up ? d(k.hidden) : d(k.inner);
    ExpertTile tile = tile_of(k);
    const Product p = product_of(gpu, launch.math, true);
    tile.slice = std::max(tile.slice, p.step());
    Emitter e(launch.name, gpu);
    e.program.mma = p.shape;
    e.program.warps = 4;
    e.program.registers_per_thread =
        std::max(launch.cta.registers_per_thread, tile.rows * tile.columns > 4096 ? 168 : 96);
    const double blocks = blocks_of(k, tile.rows), panels = std::ceil(n / tile.columns);
    e.program.grid = {whole(panels), whole(blocks), 1};
    tensors(e, tile, blocks, panels, n, depth, up);
    const double stage = (tile.rows * kRowBytes + tile.columns * k.weight_bytes) * tile.slice;
    e.program.shared_bytes = std::min(tile.stages * stage, gpu.sm.shared_memory_per_cta.value);
    // Rows that exist are loaded, the tile's others are masked.
    const double real = std::min(tile.rows, std::max(1.0, k.load.slots / blocks));
    const double left_run = tile.slice * kRowBytes, right_run = std::max(1.0, tile.slice * k.weight_bytes);
    Place rows, columns;
    rows.per_cta[1] = offset(tile.rows * depth * kRowBytes);
    columns.per_cta[0] = offset(tile.columns * depth * k.weight_bytes);
    rows.per_trip[0] = offset(left_run);
    columns.per_trip[0] = offset(right_run);
    const TileCopy left(e, gpu, kRows, real * left_run, left_run, 4, rows);
    const TileCopy right(e, gpu, kWeightTensor, tile.columns * right_run, right_run, 4, columns);
    prologue(e, left, right, tile);
    e.open_loop(depth / tile.slice);
    if (tile.striped) {
      // Equal stripes of all tiles' steps for as many CTAs as fit: none is left over.
      const double steps = panels * blocks * std::ceil(depth / tile.slice);
      const double ctas = std::min(steps, 2 * d(std::max<std::int64_t>(1, gpu.sm.count)));
      e.program.grid = {whole(ctas), 1, 1};
      e.program.ctas_per_sm = 2;
      e.mean_trips(steps / ctas, ctas);
    }
    main_loop(e, p, tile, left, right);
    e.close_loop();
    epilogue(e, tile, real);
    return Part{e.finish()};
  }

  static constexpr std::uint16_t kRows = 0, kWeightTensor = 1, kResult = 2, kIds = 3;

  /// Blocks of one expert share its weights as far as they run at once; the columns of a block share its rows.
  void tensors(Emitter& e, const ExpertTile& tile, double blocks, double panels, double n, double depth,
               bool up) const {
    const double touched = std::max(1.0, k.load.touched);
    const double rows = up ? k.load.hit : k.load.slots;
    Tensor x = tensor_of("rows", rows * depth * kRowBytes, false);
    const double at_once = 2 * d(std::max<std::int64_t>(1, gpu.sm.count));
    const double waves = std::max(1.0, blocks * panels / at_once);
    const double open = std::min(blocks, std::max(tile.group, at_once / panels));
    x.wave_bytes = std::max(x.unique_bytes, waves * open / blocks * k.load.slots * depth * kRowBytes);
    e.tensor(std::move(x));
    Tensor w = tensor_of("weights", touched * n * depth * k.weight_bytes, true);
    const double together = std::clamp(std::min(blocks / touched, std::max(tile.group, at_once / panels)), 1.0, blocks);
    w.wave_bytes = std::max(w.unique_bytes, blocks / together * n * depth * k.weight_bytes);
    e.tensor(std::move(w));
    e.tensor(tensor_of("results", k.load.slots * n * kRowBytes, true, true));
    e.tensor(tensor_of("ids", 4 * (k.load.slots + blocks), false));
  }

  void prologue(Emitter& e, const TileCopy& left, const TileCopy& right, const ExpertTile& tile) const {
    e.address(24);
    e.memory(Op::load_global, e.access(global_access(kIds, 1, 4 * kLanes)), 2, kIndex);  // expert, rows of the block
    e.wait(bit(kIndex)).math(Op::imad, 12, Next::dependent);
    e.math(Op::alu, tile.rows * tile.columns / (kLanes * 4));
    const int ahead = left.asynchronous() ? tile.stages - 1 : 1;
    for (int i = 0; i < ahead; ++i) {
      left.start(e, kLeft), right.start(e, kRight);
      if (left.asynchronous()) e.commit_group();
    }
    left.land(e, kLeft), right.land(e, kRight);
    if (!left.asynchronous()) e.barrier();
  }

  void main_loop(Emitter& e, const Product& p, const ExpertTile& tile, const TileCopy& left,
                 const TileCopy& right) const {
    if (left.asynchronous()) {
      e.wait_group(tile.stages - 2);
      e.barrier();
    }
    left.start(e, kLeft), right.start(e, kRight);
    if (left.asynchronous()) e.commit_group();
    e.address(8);
    // Two by two warps, or side by side along the columns where rows are few or weights must be widened once only.
    const double across = tile.rows >= 32 && !(k.weight_bytes < kRowBytes) ? 2 : 1;
    WarpProduct work{tile.rows / across, tile.columns / (4 / across), tile.slice};
    if (k.weight_bytes < kRowBytes) {
      widen(e, work.n * work.k);
      work.b_in_registers = true;
    }
    emit_product(e, p, work, kFragments);
    left.land(e, kLeft), right.land(e, kRight);
    if (!left.asynchronous()) e.barrier();
  }

  /// Weights come as packed integers and become halves by masks and one multiply-add a pair; scales are multiplied in.
  void widen(Emitter& e, double elements) const {
    constexpr int kPacked = 5;
    e.memory(Op::load_shared, e.access(shared_access(512)), elements * k.weight_bytes / 512, kPacked);
    e.wait(bit(kPacked)).math(Op::alu, elements / kLanes / 2);
    e.math(Op::hfma2, elements / kLanes, Next::dependent);
  }

  void epilogue(Emitter& e, const ExpertTile& tile, double real) const {
    e.wait_group(0);
    const double outputs = tile.rows * tile.columns / (kLanes * 4);
    e.math(Op::ffma, outputs);  // routing weight
    e.math(Op::alu, outputs / 2, Next::dependent);
    const auto staged = e.access(shared_access(512));
    e.memory(Op::store_shared, staged, tile.rows * tile.columns * kRowBytes / 2048);
    e.barrier();
    e.memory(Op::load_shared, staged, tile.rows * tile.columns * kRowBytes / 2048, kIndex);
    e.wait(bit(kIndex)).address(4);
    const double run = tile.columns * kRowBytes;
    emit_stream(e, Op::store_global, kResult, real * run, run, 4, kNoScoreboard);
  }

  /// Scores to experts (a warp per token), a count of rows per expert by one CTA, and the sorting of rows.
  std::vector<Part> route() const { return {scores(), align(), sort()}; }

  Part scores() const {
    Emitter e("topk_softmax", gpu);
    const double bytes = 4 * d(k.tokens) * d(k.local_experts);
    const auto logits = e.tensor(tensor_of("scores", bytes, false));
    const auto chosen = e.tensor(tensor_of("chosen", 8 * d(k.tokens) * d(k.top_k), true, true));
    e.program.warps = 4;
    e.program.grid[0] = whole(d(k.tokens) / 4);
    const double loads = std::max(1.0, std::ceil(d(k.local_experts) / kLanes));
    const double width = 4 * std::min(kLanes, d(k.local_experts));
    e.address(10);
    e.memory(Op::load_global, e.access(global_access(logits, 1, width)), loads, kIndex);
    e.wait(bit(kIndex)).math(Op::ffma, loads, Next::dependent);
    reduce(e, Op::ffma, 2);
    e.variable(Op::mufu, loads, kLeft);
    e.wait(bit(kLeft)).math(Op::ffma, loads, Next::dependent);
    e.open_loop(d(k.top_k));
    e.math(Op::alu, 2 * loads, Next::dependent);
    reduce(e, Op::alu, 1);
    e.close_loop();
    e.memory(Op::store_global, e.access(global_access(chosen, 1, 8 * d(k.top_k))));
    return Part{e.finish()};
  }

  static void reduce(Emitter& e, Op op, int values) {
    for (int i = 0; i < 5 * values; ++i) {
      e.variable(Op::shuffle, 1, kRight);
      e.wait(bit(kRight)).math(op, 1, Next::dependent);
    }
  }

  /// One CTA counts rows of each expert in shared memory and pads the counts to whole blocks.
  Part align() const {
    Emitter e(launch.name, gpu);
    const double slots = d(k.tokens) * d(k.top_k);
    const auto ids = e.tensor(tensor_of("ids", 4 * slots, false));
    const auto out = e.tensor(tensor_of("blocks", 4 * (d(k.local_experts) + k.load.blocks[4]), true, true));
    constexpr int kWarps = 32;
    e.program.warps = kWarps;
    e.program.shared_bytes = std::min(8 * (d(k.local_experts) + 1), gpu.sm.shared_memory_per_cta.value);
    const auto counter = e.access(shared_access(128));
    e.address(16);
    e.memory(Op::store_shared, counter, d(k.local_experts) / (kLanes * kWarps));
    e.barrier();
    e.open_loop(slots / (kLanes * kWarps));
    e.memory(Op::load_global, e.access(global_access(ids, 1, 128)), 1, kIndex);
    e.wait(bit(kIndex)).memory(Op::store_shared, counter);  // an atomic of shared memory
    e.close_loop();
    e.barrier();
    for (int i = 0; i < 2; ++i) {  // sums over experts: within warps, then over them
      reduce(e, Op::alu, 1);
      e.memory(Op::store_shared, counter);
      e.barrier();
      e.memory(Op::load_shared, counter, 1, kIndex);
      e.wait(bit(kIndex)).math(Op::alu, 2, Next::dependent);
    }
    e.memory(Op::store_global, e.access(global_access(out, 1, 128)),
             (d(k.local_experts) + k.load.blocks[4]) / (kLanes * kWarps));
    return Part{e.finish()};
  }

  /// Every slot finds its place by an atomic on its expert's counter.
  Part sort() const {
    Emitter e("count_and_sort_expert_tokens_kernel", gpu);
    const double slots = d(k.tokens) * d(k.top_k);
    const auto ids = e.tensor(tensor_of("ids", 4 * slots, false));
    const auto counters = e.tensor(tensor_of("counters", 4 * d(k.local_experts), false, true));
    const auto sorted = e.tensor(tensor_of("sorted", 4 * slots, true, true));
    e.program.warps = 8;
    e.program.grid[0] = whole(slots / (kLanes * 8));
    const double lanes = std::min(kLanes, slots);
    e.address(8);
    e.memory(Op::load_global, e.access(global_access(ids, 1, 4 * lanes)), 1, kIndex);
    Access count = global_access(counters, std::min(lanes, d(k.local_experts)), 4);
    e.wait(bit(kIndex)).memory(Op::atomic, e.access(count), 1, kIndex);
    e.wait(bit(kIndex)).math(Op::alu, 2, Next::dependent);
    e.memory(Op::store_global, e.access(global_access(sorted, lanes, 4)));
    return Part{e.finish()};
  }

  /// Activation of a row of gate and up; the sum of a token's rows.
  std::vector<Part> combine() const {
    std::vector<Part> out;
    if (k.with_activation) out.push_back(rowwise("act_and_mul_kernel", k.load.slots, d(k.inner), 2, 1, 6));
    out.push_back(rowwise("moe_sum_kernel", k.load.hit, d(k.hidden), k.load.slots / std::max(1.0, k.load.hit), 0, 1));
    return out;
  }

  /// A CTA per row: so many loads of two bytes per element, one store.
  Part rowwise(const char* name, double rows, double columns, double loads, double special, double math) const {
    Emitter e(name, gpu);
    rows = std::max(1.0, rows * k.share);
    const auto in = e.tensor(tensor_of("in", rows * columns * loads * kRowBytes, false));
    const auto result = e.tensor(tensor_of("out", rows * columns * kRowBytes, true, true));
    const double warps = std::clamp(std::ceil(columns / kLanes), 1.0, 32.0);
    e.program.warps = static_cast<int>(warps);
    e.program.grid[0] = whole(rows);
    const double run = std::min(kLanes, columns) * kRowBytes;
    const auto load = e.access(global_access(in, 1, run)), store = e.access(global_access(result, 1, run));
    e.address(8);
    e.open_loop(columns / (kLanes * warps));
    e.memory(Op::load_global, load, std::max(1.0, std::round(loads)), kLeft);
    e.wait(bit(kLeft)).math(Op::ffma, math + loads, Next::dependent);
    if (special > 0) {
      e.variable(Op::mufu, 2 * special, kRight);
      e.wait(bit(kRight)).math(Op::ffma, 2, Next::dependent);
    }
    e.math(Op::alu, 3, Next::dependent);
    e.memory(Op::store_global, store);
    e.close_loop();
    return Part{e.finish()};
  }
};

}  // namespace

std::vector<Part> generate_experts(const kernel::Launch& launch, const ExpertKernel& k, const arch::GpuSpec& gpu) {
  const Experts experts{launch, k, gpu};
  switch (k.part) {
    case ExpertPart::route: return experts.route();
    case ExpertPart::up:
    case ExpertPart::down: return {experts.product()};
    case ExpertPart::combine: return experts.combine();
  }
  return {};
}

}  // namespace voltaic::cycle
