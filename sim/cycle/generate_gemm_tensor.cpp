// SPDX-License-Identifier: MIT
// Matrix products on tensor cores, as CUTLASS's and cuBLAS's kernels run them. Volta: HMMA.884 in four steps, fragments
// by LDS.128 from a swizzled tile, two buffers filled through registers. Turing: the same with HMMA.1688 and LDSM.
// Ampere: HMMA.16816 and its like, LDSM, several stages of asynchronous copies. Weights of 2:4 and of quantised
// products take their own paths from shared memory.
#include <algorithm>
#include <cmath>

#include "sim/cycle/generate_gemm.hpp"

namespace voltaic::cycle::gemm {
namespace {

constexpr double kLanes = 32, kQuad = 16, kLine = 128;
constexpr double kLeastAsync = 4;  ///< Bytes of the narrowest asynchronous copy.

/// The part of a CTA's tile that one warp multiplies: halved along the longer side until every warp has one. Where
/// weights are converted only their side is split, so that each is converted once per CTA.
struct WarpTile {
  double m = 64, n = 64;
};

WarpTile warp_tile(const Product& p) {
  WarpTile w{static_cast<double>(p.tile.tile_m), static_cast<double>(p.tile.tile_n)};
  for (int warps = p.tile.warps; warps > 1; warps /= 2) (w.m >= w.n && !p.dequantise ? w.m : w.n) /= 2;
  return {std::max(1.0, w.m), std::max(1.0, w.n)};
}

Group::Load shared_loads(Emitter& e, Op op, double bytes, double request, double distinct) {
  const double count = std::max(1.0, std::ceil(bytes / request - 1e-9));
  Access a = detail::shared_access(bytes / count);
  a.wavefronts = a.ideal_wavefronts =
      static_cast<std::uint16_t>(std::clamp(std::ceil(distinct / count / kLine - 1e-9), 1.0, 32.0));
  return {op, e.access(a), count};
}

class TensorKernel {
 public:
  TensorKernel(const Product& p, const arch::GpuSpec& gpu)
      : p_(p), gpu_(gpu), e_(p.name, gpu), warp_(warp_tile(p)), volta_(gpu.architecture == arch::Architecture::volta) {
    shape_program(e_, p, gpu);
    e_.program.mma = mma_shape(p.math, p.sparse, gpu.architecture);
  }

  Program run() {
    const MmaShape& mma = e_.program.mma;
    const double accumulators = warp_.m * warp_.n / kLanes;
    const int groups = std::max(1, static_cast<int>(std::ceil(p_.tile.tile_k / static_cast<double>(mma.k) - 1e-9)));
    Feed feed;
    feed.async = gpu_.architecture >= arch::Architecture::ampere && std::min(p_.a.widest, p_.b.widest) >= kLeastAsync;
    feed.stages = std::max(2, p_.tile.stages);
    feed.a = tile_store(p_.a, p_.a.element);
    feed.b = tile_store(p_.b, p_.b.element);
    const Group group = group_of_k();
    emit_prologue(e_, accumulators, requests_per_step(p_), gpu_);
    emit_main_loop(e_, p_, group, groups, feed);
    if (p_.stores) store_tile(accumulators);
    return e_.finish();
  }

 private:
  /// Cycles that one instruction takes its pipe.
  double interval() const {
    const MmaShape& mma = e_.program.mma;
    const double rate = (mma.sparse ? gpu_.sm.tensor_sparse : gpu_.sm.tensor)[mma.type];
    return rate > 0 ? mma.macs() / mma.issues * gpu_.sm.sub_partitions / rate : 1;
  }

  Group group_of_k() {
    const MmaShape& mma = e_.program.mma;
    Group g;
    const double a_bytes = std::max(warp_.m, static_cast<double>(mma.m)) * mma.k * p_.math_bytes;
    const double b_elements = std::max(warp_.n, static_cast<double>(mma.n)) * mma.k;
    g.fragments.push_back(fragment(p_.a, a_bytes, p_.math_bytes));
    g.fragments.push_back(fragment(p_.b, b_elements * p_.b_shared_bytes, p_.b_shared_bytes));
    if (mma.sparse) {  // two bits for each element that stayed
      g.fragments.push_back(shared_loads(e_, Op::load_shared, kLine, kLine, b_elements / 8));
    }
    if (p_.dequantise) g.convert = conversion(b_elements / kLanes);
    g.math = Op::mma;
    g.count = std::ceil(warp_.m / mma.m) * std::ceil(warp_.n / mma.n) * mma.issues;
    // A step waits for the same one of the group before.
    const double latency = interval() + gpu_.pipeline.mma_latency.value;
    g.last_stall = static_cast<int>(std::clamp(latency - (g.count - 1) * interval(), 1.0, 255.0));
    return g;
  }

  /// Fragments of `bytes` of one operand in a group of k.
  Group::Load fragment(const Operand& o, double bytes, double element) {
    if (volta_) {
      // Two quad pairs multiply the same rows: each element goes to two lanes, in one pass.
      const double request = std::min(kLanes * kQuad, std::max(2 * bytes, kLanes * 8));
      return shared_loads(e_, Op::load_shared, 2 * bytes, request, bytes);
    }
    if (p_.math == DataType::fp64) return shared_loads(e_, Op::load_shared, bytes, kLanes * 8, bytes);
    // LDSM turns rows of 16-bit elements, no others.
    if (element != 2 && !o.along_k) return shared_loads(e_, Op::load_shared, bytes, kLanes * 4, bytes);
    return shared_loads(e_, Op::load_matrix, bytes, kLanes * kQuad, bytes);
  }

  /// Quantised weights to halves: bytes are spread by PRMT, nibbles cut out by LOP3, the offset is subtracted and the
  /// scale multiplied in pairs. BF16 has no such offset trick: it goes through FP32.
  std::vector<Group::Work> conversion(double weights) const {
    const bool nibbles = p_.b_shared_bytes < 1;
    const double spread = nibbles ? 0.625 : 0.5;
    if (p_.math == DataType::bf16)
      return {{Op::alu, weights * (spread + 0.5)}, {Op::ffma, weights}, {Op::hfma2, weights / 2}};
    return {{Op::alu, weights * spread}, {Op::hfma2, weights}};
  }

  Feed::Store tile_store(const Operand& o, double element) {
    const double bytes = o.tile * p_.tile.tile_k * element / (kLanes * e_.program.warps);
    Feed::Store out;
    out.access = e_.access(detail::shared_access(kLanes * std::min(kQuad, std::max(bytes, 4.0))));
    out.count = std::max(1.0, std::ceil(bytes / kQuad - 1e-9));
    if (o.widest < 4) out.pack = std::ceil(bytes / o.widest / 2);
    return out;
  }

  void store_tile(double accumulators) {
    Epilogue end;
    end.values = accumulators;
    end.accumulator_bytes = p_.math == DataType::fp64 ? 8 : 4;
    end.pieces = std::clamp(static_cast<int>(warp_.m / 8), 1, 16);
    end.shuffled = true;
    end.scale = p_.math == DataType::fp64 ? Op::dfma : Op::ffma;
    end.narrow_by_xu = gpu_.architecture < arch::Architecture::ampere;
    emit_epilogue(e_, p_, end, gpu_);
  }

  const Product& p_;
  const arch::GpuSpec& gpu_;
  Emitter e_;
  WarpTile warp_;
  bool volta_;
};

}  // namespace

/// Shapes of the warp-wide instructions [CPG]. Each of Volta's four quad pairs multiplies 8x8x4; two share their rows
/// and two their columns.
MmaShape mma_shape(DataType math, bool sparse, arch::Architecture architecture) {
  MmaShape s{16, 8, 16, math, sparse, 1};
  if (architecture == arch::Architecture::volta) return {16, 16, 4, math, sparse, 4};
  if (architecture == arch::Architecture::turing) {
    if (math == DataType::int8) return {8, 8, 16, math, sparse, 1};
    if (math == DataType::int4) return {8, 8, 32, math, sparse, 1};
    s.k = 8;
    return s;
  }
  if (math == DataType::fp64) return {8, 8, 4, math, false, 1};
  if (math == DataType::tf32 || math == DataType::fp32) s.k = 8;
  if (math == DataType::int8 || math == DataType::fp8) s.k = 32;
  if (math == DataType::int4) s.k = 64;
  if (sparse) s.k *= 2;
  return s;
}

Program tensor_program(const Product& p, const arch::GpuSpec& gpu) {
  return TensorKernel(p, gpu).run();
}

/// Warps that each multiply one row of weights by the few activations: lanes walk along k, 16 bytes of weights at a
/// time, their sums meet by shuffles.
Program gemv_program(const Product& p, const arch::GpuSpec& gpu) {
  Emitter e(p.name, gpu);
  shape_program(e, p, gpu);
  const double k_lane = kQuad / std::max(p.b_shared_bytes, 0.25);
  const double k = p.steps * p.tile.tile_k * p.k_filled;
  const double trips = std::max(1.0, std::ceil(k / (k_lane * kLanes)));
  const double rows = p.rows;
  const double filled = k / (trips * k_lane * kLanes);
  const std::uint16_t weights = e.tensor(p.b.tensor);
  const std::uint16_t activations = e.tensor(p.a.tensor);
  emit_prologue(e, 2 * rows, 2, gpu);
  const std::uint16_t loop = e.open_loop(trips);
  Access w = detail::global_access(weights, 1, std::max(1.0, kLanes * kQuad * filled));
  w.per_trip[loop] = static_cast<std::int64_t>(kLanes * kQuad);
  w.per_warp = static_cast<std::int64_t>(std::min(p.b.pitch, 1e12));
  w.per_cta[0] = w.per_warp * e.program.warps;
  e.memory(Op::load_global, e.access(w), 1, 0);
  Access a = detail::global_access(activations, 1, std::max(1.0, kLanes * kQuad * filled));
  a.l1_hit = 1 - 1.0 / std::max(1, e.program.warps);
  a.per_trip[loop] = static_cast<std::int64_t>(kLanes * k_lane * p.a.element);
  e.memory(Op::load_global, e.access(a), std::ceil(rows * k_lane * p.a.element / kQuad), 1);
  e.address(4);
  e.wait(detail::bit(0));
  if (p.b_shared_bytes < 2) {
    e.math(Op::alu, k_lane / 2);
    e.math(Op::hfma2, k_lane);
  }
  e.wait(detail::bit(1)).math(Op::hfma2, std::ceil(rows * k_lane / 2), detail::Next::dependent);
  e.close_loop();
  for (int i = 0; i < 5; ++i) {
    e.variable(Op::shuffle, rows, 0);
    e.wait(detail::bit(0)).math(Op::ffma, rows, detail::Next::dependent);
  }
  const std::uint16_t result = e.tensor(p.c.tensor);
  e.math(Op::alu, 2, detail::Next::dependent);
  e.memory(Op::store_global, e.access(detail::global_access(result, 1, p.c.element)), std::ceil(rows));
  return e.finish();
}

}  // namespace voltaic::cycle::gemm
