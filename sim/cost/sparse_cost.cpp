// SPDX-License-Identifier: MIT
#include "sim/cost/sparse_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/overlap.hpp"
#include "sim/memory/cache.hpp"

namespace voltaic::cost {

namespace {

using kernel::Bound;
using kernel::KernelCost;
using kernel::Launch;
using kernel::SparseKernel;

constexpr double kSector = 32;  // bytes
constexpr double kWarp = 32;

double count(std::int64_t n) {
  return static_cast<double>(n);
}

double matrix_bytes(const SparseKernel& k) {
  return count(k.nnz) * (k.index_bytes + k.value_bytes);
}

}  // namespace

SparseCost::SparseCost(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      l2_(memory::l2_bandwidth(gpu.spec, count(gpu.spec.sm.count)).value),
      dram_(gpu.spec.dram.peak_bandwidth.value),
      fixed_s_(gpu.calibration.number("sparse.fixed_s")),
      stream_share_(gpu.calibration.number("sparse.stream_share")),
      gather_share_(gpu.calibration.number("sparse.gather_share")),
      l2_kept_(gpu.calibration.number("sparse.l2_kept")),
      imbalance_(std::max(1.0, gpu.calibration.number("sparse.imbalance"))),
      overlap_(std::max(1.0, gpu.calibration.number("sparse.overlap"))),
      element_bytes_(gpu.calibration.number("sparse.columns.element_bytes")),
      element_height_(gpu.calibration.number("sparse.columns.height")),
      element_exponent_(gpu.calibration.number("sparse.columns.exponent")),
      row_bytes_(gpu.calibration.number("sparse.columns.row_bytes")),
      row_cycles_(gpu.calibration.number("sparse.row_cycles")),
      unroll_(std::max(1.0, gpu.calibration.number("sparse.unroll"))),
      warps_per_sm_(std::max(1.0, gpu.calibration.number("sparse.warps_per_sm"))),
      atomic_factor_(gpu.calibration.number("sparse.atomic_factor")) {}

/// One column of B after another: neighbours along a row of A seldom share a sector, the more seldom the taller B.
SparseCost::Legs SparseCost::by_columns(const Launch& launch, const SparseKernel& k) const {
  const double element =
      std::min(kSector, element_bytes_ * std::pow(count(k.cols) / element_height_, element_exponent_));
  Legs legs;
  legs.matrix = matrix_bytes(k) / (stream_share_ * dram_);
  legs.l2_bytes = count(k.features) * (count(k.nnz) * element + count(k.rows) * row_bytes_);
  legs.l2 = legs.l2_bytes / l2_;
  legs.dram_bytes = launch.work.traffic().value;
  legs.dram = std::max(0.0, legs.dram_bytes - matrix_bytes(k)) / (gather_share_ * dram_);
  return legs;
}

SparseCost::Legs SparseCost::by_rows(const Launch& launch, const SparseKernel& k) const {
  const double row = count(k.features) * k.element_bytes;
  const double gathered = count(k.nnz) * std::ceil(row / kSector) * kSector * (k.sampled ? 2 : 1);
  const double dense = std::min(count(k.cols), count(k.nnz)) * row;
  const double miss = std::clamp(1 - l2_kept_ * gpu_.l2.capacity.value / std::max(dense, 1.0), 0.0, 1.0);
  Legs legs;
  legs.matrix = matrix_bytes(k) / (stream_share_ * dram_);
  legs.l2_bytes = gathered * (k.transposed ? atomic_factor_ : 1) + count(k.rows) * row;
  legs.l2 = legs.l2_bytes / l2_;
  const double compulsory = launch.work.traffic().value;
  legs.dram_bytes = compulsory + miss * std::max(0.0, gathered - dense);
  legs.dram = std::max(0.0, legs.dram_bytes - matrix_bytes(k)) / (gather_share_ * dram_);
  const double rows = std::max(1.0, count(k.rows));
  const double pieces = std::max(1.0, std::ceil(count(k.features) / kWarp));
  const double warp = row_cycles_ + count(k.nnz) / rows / unroll_ * gpu_.l2.latency.value;
  const double at_once = warps_per_sm_ * count(gpu_.sm.count);
  legs.wait = std::max(1.0, rows * pieces / at_once) * warp / gpu_.clocks.boost.value;
  return legs;
}

KernelCost SparseCost::operator()(const Launch& launch, const SparseKernel& k) const {
  const Legs legs = k.column_major ? by_columns(launch, k) : by_rows(launch, k);
  double t = 0;
  for (const double leg : {legs.matrix, legs.l2, legs.dram, legs.wait}) t = smooth_max2(t, leg, overlap_);
  const double spread = k.column_major ? 1 : imbalance_;
  KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.time = Seconds{fixed_s_ + spread * t};
  cost.leg(Bound::dram) = Seconds{std::max(legs.matrix, legs.dram)};
  cost.leg(Bound::l2) = Seconds{legs.l2};
  cost.leg(Bound::latency) = Seconds{fixed_s_ + legs.wait};
  cost.parts.fixed = Seconds{fixed_s_};
  cost.dram_traffic = Bytes{legs.dram_bytes};
  cost.l2_traffic = Bytes{legs.l2_bytes};
  return cost;
}

}  // namespace voltaic::cost
