// SPDX-License-Identifier: MIT
#include "sim/kernel/gather.hpp"

#include <algorithm>
#include <cmath>

#include "sim/kernel/popularity.hpp"
#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

constexpr double kSector = 32;
constexpr double kTableShare = 0.5;  // assumed: of L2

}  // namespace

RowBytes row_bytes(const RowAccess& access, const arch::GpuSpec& gpu) {
  RowBytes bytes;
  if (!(access.rows >= 1) || !(access.lookups > 0) || !(access.row_bytes > 0)) return bytes;
  const double table = access.rows * access.row_bytes;
  const double moved = access.lookups * access.row_bytes;
  const double cache = kTableShare * gpu.l2.capacity.value;
  const double sharing = std::max(1.0, std::floor(kSector / access.row_bytes));  // Rows of one sector.
  const double unit = std::ceil(access.row_bytes * sharing / kSector) * kSector;
  const Lookups rows{access.rows, access.lookups, access.exponent};
  const Lookups units{std::max(1.0, access.rows / sharing), access.lookups, access.exponent};
  const RowTraffic traffic = row_traffic(units, cache / unit);
  bytes.once = (sharing > 1 ? row_traffic(rows, 0).distinct : traffic.distinct) * access.row_bytes;
  const double fetched = std::min(traffic.distinct * unit, table) + (traffic.fetched - traffic.distinct) * unit;
  if (table > cache) {  // Smaller tables may be there already.
    bytes.far = std::max(0.0, fetched - bytes.once);
    bytes.cold = bytes.once;
  }
  bytes.again = std::max(bytes.far, moved - bytes.once);
  return bytes;
}

RowAccess access_of(const graph::Tensor& table, const graph::Tensor& index) {
  RowAccess access;
  access.rows = table.shape.empty() ? 1 : static_cast<double>(table.shape.front());
  access.row_bytes = access.rows > 0 ? table.bytes() / access.rows : 0;
  access.lookups = static_cast<double>(index.elements());
  return access;
}

void set_rereads(Launch& launch, const RowBytes& bytes) {
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.reread_bytes = bytes.again;
  detail.far_bytes = bytes.far;
  detail.cold_bytes = bytes.cold;
}

Launch lookup_launch(std::string name, const graph::Tensor& moved, const RowBytes& rows, double index_bytes,
                     const arch::GpuSpec& gpu, int ctas_per_sm) {
  const vector::Pass pass{static_cast<double>(moved.elements()), rows.once + index_bytes, moved.bytes(), 1,
                          bytes_per_element(moved.dtype)};
  Launch launch = vector::elementwise("", pass, VectorKind::embedding);
  launch.name = std::move(name);
  launch.grid[0] = std::min<std::int64_t>(launch.grid[0] * 4, std::max<std::int64_t>(gpu.sm.count, 1) * ctas_per_sm);
  launch.work.other_flop = 0;
  set_rereads(launch, rows);
  return launch;
}

}  // namespace voltaic::kernel
