// SPDX-License-Identifier: MIT
// What the programs of vector kernels share: how a launch's bytes spread over CTAs, warps and trips, what functions
// cost per element, and reductions within warps and CTAs.
#pragma once

#include <string_view>
#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/detail/emit.hpp"
#include "sim/cycle/program.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cycle::detail {

/// Lane instructions per element, beside loads and stores.
struct ElementWork {
  double ffma = 0, alu = 0, imad = 0;
  double special = 0;  ///< MUFU, conversions and roundings: all on the special-function lanes.
  double rounds = 1;   ///< Special functions that depend on each other.
};
ElementWork operator+(const ElementWork& a, const ElementWork& b);
ElementWork operator*(double n, const ElementWork& w);
/// Of a pointwise function by its name in graphs; unknown ones cost two instructions.
ElementWork function_work(std::string_view function);
/// Of a kernel's function and fused chain.
ElementWork function_work(const kernel::VectorKernel& kernel);

/// Scoreboards as vector programs use them.
inline constexpr int kLoads = 0, kSpecial = 1, kExchange = 2, kIndex = 3;

/// A program under construction with the launch it stands for.
class VectorBuilder {
 public:
  VectorBuilder(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu,
                double registers);

  Emitter e;
  const kernel::Launch& launch;
  const kernel::VectorKernel& kernel;
  const arch::GpuSpec& gpu;
  double ctas = 1, threads = 128, warps = 4;
  double elements = 0;          ///< Computed, or moved where nothing is.
  std::uint16_t input, output;  ///< Tensors.

  // Bytes of the whole grid.
  double read = 0, written = 0;
  double again = 0;            ///< Read once more, as threads ask for them,
  double again_beyond_l1 = 0;  ///< as L2 is asked.

  /// A loop over what a CTA does, and what it adds to the number of requests.
  void open(double mean_trips);
  void close();
  double trips() const { return trips_; }
  /// Elements of one thread in one trip of the loops that are open.
  double per_thread() const { return elements / (ctas * warps * 32 * trips_); }

  /// Loads that move `asked` bytes of the grid, of which `beyond_l1` leave L1, in requests of `lane_bytes` a lane.
  void load(std::uint16_t tensor, double asked, double beyond_l1, double lane_bytes, int board = kLoads);
  /// A first reading.
  void load(double asked, double lane_bytes, int board = kLoads) { load(input, asked, asked, lane_bytes, board); }
  /// Of `stores` warps only; 0: all.
  void store(double bytes, double lane_bytes, int stores = 0);
  /// Requests in a row are strided: sectors of their own for each lane.
  void scatter_lanes(double run_bytes) { run_bytes_ = run_bytes; }
  /// Requests begin in the middle of a sector.
  void misaligned(bool on) { misaligned_ = on; }
  /// Requests of atomics.
  void atomics(double bytes, double lane_bytes);
  /// Operands that all CTAs share and L1 holds: weights of a norm.
  void load_shared_operand(double count, double lane_bytes);
  /// Consecutive trips lie one grid apart.
  void grid_stride(bool on) { grid_stride_ = on; }

  /// Address arithmetic, bounds and parameters before the first load.
  void prologue(double alu = 10);
  /// Waits for the loads, then `n` times the work, in elements of one thread.
  void compute(double n, const ElementWork& work, std::uint8_t waits = bit(kLoads));
  /// What `launch.work` computes beyond `counted` per element, on top of the kernel's functions.
  ElementWork work_left(const ElementWork& counted) const;

  /// Quotients and reciprocals of one element after another: each has a check and a branch around its slow path, which
  /// keep the compiler from overlapping them.
  void divide(double n);
  void reciprocal(double n);
  /// One operation of a class whose result the next one needs, `n` times.
  void chain(Op op, double n);
  /// Result of the special-function lanes that is waited for.
  void special(Op op);

  /// All lanes of a warp get the fold of their values: `values` at once, `lanes` wide, `ops` instructions each step.
  void warp_fold(double values, double lanes, double ops = 1);
  /// The fold over a CTA through shared memory: partial results of warps, a barrier, the first warp, a barrier.
  void cta_fold(double values, double ops = 1);

  Part finish();

 private:
  void emit(Op op, std::uint16_t tensor, double asked, double beyond_l1, double lane_bytes, int board, double senders);
  double trips_ = 1;
  std::vector<double> open_;
  double run_bytes_ = 0;
  bool misaligned_ = false, grid_stride_ = true;
  std::uint16_t shared_operand_ = 0;
  bool has_shared_operand_ = false;
};

/// Rereads of a kernel: what leaves L1, and what leaves L2 where nothing of the first reading was left.
struct Reread {
  double asked = 0, beyond_l1 = 0, far = 0;
};
Reread reread_of(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu,
                 double resident_ctas);

Part pointwise(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part softmax_in_warps(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part softmax_in_ctas(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part norm_rows(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part serving_rows(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part reduction(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part column_sums(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part lookup(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part windows(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);
Part walk(const kernel::Launch& launch, const kernel::VectorKernel& kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::cycle::detail
