// SPDX-License-Identifier: MIT
#include "sim/kernel/sparse.hpp"

#include <algorithm>
#include <cmath>

namespace voltaic::kernel {

namespace {

constexpr double kWarp = 32;
constexpr double kWarpsPerCta = 4;

std::string_view name_of(const SparseKernel& k) {
  if (k.sampled) return "sddmm_csr_kernel";
  if (k.column_major) return "csrmm_kernel";
  return k.transposed ? "csrmm_t2_kernel" : "csrmm_v2_kernel";
}

std::int64_t ctas(const SparseKernel& k) {
  const double rows = static_cast<double>(std::max<std::int64_t>(1, k.rows));
  const double pieces = std::max(1.0, std::ceil(static_cast<double>(k.features) / kWarp));
  return static_cast<std::int64_t>(std::min(9e18, std::ceil(rows / kWarpsPerCta) * pieces));
}

}  // namespace

Launch sparse_launch(const SparseKernel& k) {
  const auto rows = static_cast<double>(k.rows);
  const auto cols = static_cast<double>(k.cols);
  const auto features = static_cast<double>(k.features);
  const auto nnz = static_cast<double>(k.nnz);
  Launch launch;
  launch.name = name_of(k);
  launch.library = "cuSPARSE";
  launch.family = "sparse";
  launch.grid[0] = ctas(k);
  launch.cta.threads = static_cast<int>(kWarp * kWarpsPerCta);
  launch.math = k.math;
  launch.work.mac = nnz * features;
  const double matrix = nnz * k.index_bytes + (rows + 1) * k.index_bytes;
  // Rows of B that nothing refers to are not read.
  const double dense = std::min(cols, nnz) * features * k.element_bytes;
  const double result = rows * features * k.element_bytes;
  if (k.sampled) {
    launch.work.read = Bytes{matrix + dense + result};
    launch.work.written = Bytes{nnz * k.value_bytes};
  } else {
    launch.work.read = Bytes{matrix + nnz * k.value_bytes + dense};
    launch.work.written = Bytes{result};
  }
  launch.detail = k;
  return launch;
}

}  // namespace voltaic::kernel
