// SPDX-License-Identifier: MIT
// Matrix products on CUDA cores, as cuBLAS's sgemm kernels and CUTLASS's SIMT kernels run them: 8x8 outputs per thread
// (4x8 and 4x4 of small tiles), operands k-major in a double-buffered tile in shared memory, fragments by LDS.128 one k
// ahead of the multiplications. Sliced kernels ("32x32_sliced1x4") give each quarter of a 32-long step to a quarter of
// the warps, which add up their outputs through shared memory at the end.
#include <algorithm>
#include <cmath>

#include "sim/cycle/generate_gemm.hpp"

namespace voltaic::cycle::gemm {
namespace {

constexpr double kLanes = 32, kQuad = 16;
constexpr int kSliceStep = 8;  ///< Of k, in one step of one slice.

/// How one instruction multiplies: k packed into a lane (four int8), or two columns (halves).
struct Arithmetic {
  Op op = Op::ffma;
  double per_lane = 1;  ///< Outputs of one instruction and lane.
  double packed_k = 1;
};

Arithmetic arithmetic(DataType math) {
  switch (math) {
    case DataType::fp64: return {Op::dfma, 1, 1};
    case DataType::fp16:
    case DataType::bf16: return {Op::hfma2, 2, 1};
    case DataType::int8: return {Op::imad, 1, 4};
    case DataType::int4: return {Op::imad, 1, 8};
    case DataType::int32:
    case DataType::int64: return {Op::imad, 1, 1};
    default: return {Op::ffma, 1, 1};
  }
}

struct ThreadTile {
  double m = 8, n = 8;
  double slices = 1;
};

ThreadTile thread_tile(const kernel::GemmTile& t) {
  ThreadTile out;
  out.slices = std::max(1, t.tile_k / kSliceStep);
  while (out.slices > t.warps) out.slices /= 2;
  const double outputs = std::max(1.0, t.tile_m * t.tile_n * out.slices / (kLanes * t.warps));
  out.n = outputs >= 32 ? 8 : outputs >= 16 ? 4 : std::min(outputs, 2.0);
  out.m = std::max(1.0, std::ceil(outputs / out.n));
  return out;
}

/// A fragment of `bytes` per lane in one k: quads where it is that wide. Lanes of a warp lie 4 x 8 over their tile, so
/// half of them or more ask for what another one asks for: a quad takes two passes instead of the four of 32 different
/// ones, and never fewer.
Group::Load fragment(Emitter& e, double bytes) {
  const double width = std::min(bytes, kQuad);
  Access a = detail::shared_access(kLanes * width);
  a.wavefronts = a.ideal_wavefronts = width >= kQuad ? 2 : 1;
  return {Op::load_shared, e.access(a), std::ceil(bytes / width - 1e-9)};
}

/// How a lane stores what it loaded: rows along k are turned, an element at a time; others go as they came.
Feed::Store tile_store(Emitter& e, const Operand& o, double element, double tile_k, double warps) {
  const double bytes = o.tile * tile_k * element / (kLanes * warps);
  const double width = o.along_k ? std::max(4.0, std::min(element, 8.0)) : std::min(kQuad, std::max(4.0, o.widest));
  Feed::Store out;
  out.access = e.access(detail::shared_access(kLanes * width));
  out.count = std::max(1.0, std::ceil(bytes / width - 1e-9));
  if (o.widest < 4) out.pack = std::ceil(bytes / o.widest / 2);
  return out;
}

/// Slices add up their outputs: every thread stores its own and sums a part of all.
void add_slices(Emitter& e, double outputs, double slices, Op add) {
  const std::uint16_t quad = e.access(detail::shared_access(kLanes * kQuad));
  const double quads = std::ceil(outputs * 4 / kQuad);
  e.barrier();
  e.memory(Op::store_shared, quad, quads);
  e.barrier();
  e.memory(Op::load_shared, quad, quads, 0);
  e.wait(detail::bit(0));
  e.math(add, outputs * (slices - 1) / slices);
}

}  // namespace

Program simt_program(const Product& p, const arch::GpuSpec& gpu) {
  Emitter e(p.name, gpu);
  shape_program(e, p, gpu);
  const Arithmetic math = arithmetic(p.math);
  const ThreadTile thread = thread_tile(p.tile);
  const double outputs = thread.m * thread.n;
  const double element = p.math_bytes;

  Group group;
  group.fragments = {fragment(e, thread.m * element * math.packed_k), fragment(e, thread.n * element * math.packed_k)};
  group.math = math.op;
  group.count = std::ceil(outputs / math.per_lane);
  group.last_stall = std::max(1, e.latency(math.op) - static_cast<int>(group.count) + 1);
  const int groups = std::max(1, static_cast<int>(std::ceil(p.tile.tile_k / thread.slices / math.packed_k - 1e-9)));

  Feed feed;
  feed.a = tile_store(e, p.a, element, p.tile.tile_k, e.program.warps);
  feed.b = tile_store(e, p.b, element, p.tile.tile_k, e.program.warps);
  emit_prologue(e, outputs, requests_per_step(p), gpu);
  emit_main_loop(e, p, group, groups, feed);

  const Op add = math.op == Op::hfma2 || math.op == Op::dfma ? math.op : Op::ffma;
  if (thread.slices > 1) add_slices(e, outputs, thread.slices, add);
  Epilogue end;
  end.values = outputs / thread.slices;
  end.scale = add;
  end.most_run = 128;
  end.shuffled = p.c.widest < kQuad;  // narrow stores are made contiguous first
  if (p.stores) emit_epilogue(e, p, end, gpu);
  return e.finish();
}

}  // namespace voltaic::cycle::gemm
