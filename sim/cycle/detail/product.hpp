// SPDX-License-Identifier: MIT
// Matrix products of one warp from shared memory or registers: which instruction multiplies, how operands reach it.
#pragma once

#include "arch/spec.hpp"
#include "sim/cycle/detail/emit.hpp"

namespace voltaic::cycle::detail {

/// The instruction that multiplies a type on a GPU.
struct Product {
  Op op = Op::ffma;
  MmaShape shape;             ///< Of Op::mma.
  double macs = 32;           ///< Of one warp instruction.
  double interval = 2;        ///< Cycles it takes its pipe.
  double latency = 4;         ///< Of a dependent one.
  double element_bytes = 4;   ///< Of an operand in shared memory.
  bool matrix_loads = false;  ///< LDSM exists and serves the type.
  bool tensor() const { return op == Op::mma; }
  /// Elements of k in one step of a warp's loop.
  double step() const;
};
Product product_of(const arch::GpuSpec& gpu, DataType math, bool tensor_cores);

/// m x n x k of one warp; where an operand is in registers it is not loaded.
struct WarpProduct {
  double m = 16, n = 8, k = 16;
  bool a_in_registers = false, b_in_registers = false;
};
/// Loads of step i + 1 are under way while step i multiplies; uses scoreboards `board` and `board + 1`. The
/// accumulators of the last step are complete when the code ends.
void emit_product(Emitter& emitter, const Product& product, const WarpProduct& work, int board);

/// Multiply-adds of the product with its padding to whole instructions.
double padded_macs(const Product& product, const WarpProduct& work);

}  // namespace voltaic::cycle::detail
