// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/product.hpp"

#include <algorithm>
#include <cmath>

namespace voltaic::cycle::detail {
namespace {

constexpr double kLanes = 32;
constexpr double kMatrixLoad = 512;  // bytes of LDSM.x4
constexpr double kVectorLoad = 512;  // bytes of LDS.128, all lanes
constexpr double kMostUnrolled = 16;

double up(double value, double unit) {
  return std::ceil(std::max(value, 1.0) / unit - 1e-9) * unit;
}

/// Shapes of the warp-wide instructions [CPG]: Volta's HMMA.884 in four steps over its quad pairs.
MmaShape shape_of(arch::Architecture a, DataType t) {
  switch (a) {
    case arch::Architecture::volta: return {16, 16, 4, t, false, 4};
    case arch::Architecture::turing:
      if (t == DataType::int8) return {8, 8, 16, t, false, 1};
      if (t == DataType::int4) return {8, 8, 32, t, false, 1};
      return {16, 8, 8, t, false, 1};
    default: break;
  }
  switch (t) {
    case DataType::fp64: return {8, 8, 4, t, false, 1};
    case DataType::fp32:
    case DataType::tf32: return {16, 8, 8, t, false, 1};
    case DataType::int8:
    case DataType::fp8: return {16, 8, 32, t, false, 1};
    case DataType::int4: return {16, 8, 64, t, false, 1};
    default: return {16, 8, 16, t, false, 1};
  }
}

Product lanes_product(const arch::GpuSpec& gpu, DataType t) {
  Product p;
  const auto& pipe = gpu.pipeline;
  p.element_bytes = bytes_per_element(t);
  p.latency = pipe.fma_latency.value;
  if (t == DataType::fp64) {
    p.op = Op::dfma;
    p.latency = pipe.fp64_latency.value;
  } else if (t == DataType::fp16 && gpu.sm.cuda_core[t] > gpu.sm.cuda_core[DataType::fp32]) {
    p.op = Op::hfma2;
    p.macs = 2 * kLanes;
    p.latency = pipe.half_latency.value;
  } else if (!is_floating(t)) {
    p.op = Op::imad;
    p.macs = t == DataType::int8 ? 4 * kLanes : t == DataType::int64 ? kLanes / 4 : kLanes;
    p.latency = pipe.imad_latency.value;
  }
  return p;
}

}  // namespace

double Product::step() const {
  return tensor() ? shape.k : std::max(1.0, 16 / element_bytes);
}

Product product_of(const arch::GpuSpec& gpu, DataType math, bool tensor_cores) {
  Product p = lanes_product(gpu, math);
  double rate = gpu.sm.cuda_core[math];
  if (tensor_cores && gpu.has_tensor_path(math)) {
    p.op = Op::mma;
    p.shape = shape_of(gpu.architecture, math);
    p.macs = p.shape.macs() / p.shape.issues;
    p.latency = gpu.pipeline.mma_latency.value;
    p.matrix_loads = gpu.architecture != arch::Architecture::volta && p.element_bytes <= 4;
    rate = gpu.sm.tensor[math];
  }
  if (!(rate > 0)) rate = gpu.sm.fp32_lanes;
  p.interval = p.macs * std::max(1, gpu.sm.sub_partitions) / std::max(rate, 1.0);
  if (p.tensor()) p.latency += p.interval;
  return p;
}

namespace {

/// Loads of one operand for `rows` x `k` elements.
class Operand {
 public:
  Operand(Emitter& e, const Product& p, double rows, double k, bool in_registers) {
    if (in_registers) return;
    double bytes = rows * k * p.element_bytes;
    double request = kVectorLoad;
    op_ = Op::load_shared;
    if (p.matrix_loads) {
      op_ = Op::load_matrix;
      request = kMatrixLoad;
    } else if (p.tensor()) {
      lanes_ = 2;  // Two quad pairs hold the same fragment: one pass serves both.
    } else {
      lanes_ = rows > 32 ? 4 : 8;  // Lanes of one row or column of the warp's grid share what they read.
    }
    count_ = std::max(1.0, std::ceil(bytes * lanes_ / request - 1e-9));
    access_ = e.access(shared_access(std::max(16.0, bytes / count_)));
  }
  void load(Emitter& e, double steps, int board) const {
    if (count_ > 0) e.memory(op_, access_, count_ * steps, board);
  }

 private:
  Op op_ = Op::load_shared;
  double lanes_ = 1, count_ = 0;
  std::uint16_t access_ = 0;
};

double instructions_per_step(const Product& p, const WarpProduct& w) {
  if (p.tensor()) {
    return up(w.m, p.shape.m) / p.shape.m * up(w.n, p.shape.n) / p.shape.n * p.shape.issues;
  }
  return std::max(1.0, std::ceil(w.m * w.n * p.step() / p.macs - 1e-9));
}

}  // namespace

double padded_macs(const Product& p, const WarpProduct& w) {
  return instructions_per_step(p, w) * p.macs * std::ceil(std::max(w.k, 1.0) / p.step() - 1e-9);
}

void emit_product(Emitter& e, const Product& p, const WarpProduct& w, int board) {
  const double step = p.step();
  const double steps = std::ceil(std::max(w.k, 1.0) / step - 1e-9);
  const Operand a(e, p, p.tensor() ? up(w.m, p.shape.m) : w.m, step, w.a_in_registers);
  const Operand b(e, p, p.tensor() ? up(w.n, p.shape.n) : w.n, step, w.b_in_registers);
  const double count = instructions_per_step(p, w);
  // The next step adds to the same accumulators: few independent instructions leave part of the latency open.
  const double open = p.latency - (count - 1) * p.interval;
  // A program without room for another loop has its steps in pieces.
  const bool room = e.program.loops.size() < kLoopDepth;
  const double pieces = room ? steps : std::min(steps, kMostUnrolled);
  const double each = steps / pieces;
  const auto load = [&](int at) {
    a.load(e, each, at);
    b.load(e, each, at);
  };
  const auto multiply = [&](int at) {
    e.wait(w.a_in_registers && w.b_in_registers ? std::uint8_t{0} : bit(at));
    e.stalled(p.op, each * count, open);
  };
  load(board);
  if (pieces <= kMostUnrolled) {
    for (double i = 0; i < pieces; ++i) {
      const int now = board + static_cast<int>(i) % 2;
      if (i + 1 < pieces) load(board + (now == board ? 1 : 0));
      multiply(now);
    }
  } else {
    e.open_loop(std::ceil(steps / 2));
    load(board + 1);
    multiply(board);
    load(board);
    multiply(board + 1);
    e.close_loop();
  }
  e.stalled(Op::nop, 1, p.latency);
}

}  // namespace voltaic::cycle::detail
