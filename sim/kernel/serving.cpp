// SPDX-License-Identifier: MIT
#include "sim/kernel/serving.hpp"

#include <algorithm>
#include <cmath>

namespace voltaic::kernel::serving {

namespace {

using vector::Pass;

constexpr std::int64_t kMostThreads = 1024, kWarp = 32;

double steps(std::int64_t cols, std::int64_t wide) {
  return std::ceil(static_cast<double>(cols) / static_cast<double>(std::max<std::int64_t>(wide, 1)));
}

VectorKernel& detail(Launch& launch) {
  return std::get<VectorKernel>(launch.detail);
}

int threads_for(std::int64_t cols, std::int64_t most = kMostThreads) {
  return static_cast<int>(std::clamp<std::int64_t>(cols, 1, most));
}

}  // namespace

bool serves(const Pass& pass) {
  return pass.element_bytes == 2;
}

Launch norm(std::int64_t rows, std::int64_t cols, const Pass& pass) {
  Launch launch = vector::rowwise("rms_norm_kernel", VectorKind::serving_norm, rows, cols, threads_for(cols), pass);
  // One load and one store of a row; a residual that is added on the way doubles both.
  const double moved = (pass.read + pass.written) / std::max(1.0, pass.elements * pass.element_bytes);
  detail(launch).passes = steps(cols, launch.cta.threads);
  detail(launch).warp_passes = steps(cols, kWarp) * std::max(1.0, moved / 2);
  return launch;
}

Launch rope(std::int64_t rows, std::int64_t query, std::int64_t key, double element_bytes) {
  const double n = static_cast<double>(rows) * (static_cast<double>(query) + static_cast<double>(key));
  const Pass pass{n, n * element_bytes, n * element_bytes, 1, element_bytes};
  const int threads = threads_for(query / 2, 512);
  Launch launch =
      vector::rowwise("rotary_embedding_kernel", VectorKind::serving_rope, rows, query + key, threads, pass);
  // A thread turns a pair of columns.
  detail(launch).passes =
      steps(query, 2 * static_cast<std::int64_t>(threads)) + steps(key, 2 * static_cast<std::int64_t>(threads));
  detail(launch).warp_passes = steps(query, 2 * kWarp) + steps(key, 2 * kWarp);
  launch.work.other_flop = 3 * n;
  return launch;
}

Launch gate(std::int64_t rows, std::int64_t cols, const Pass& pass) {
  Launch launch = vector::rowwise("act_and_mul_kernel", VectorKind::serving_gate, rows, cols, threads_for(cols), pass);
  detail(launch).passes = steps(cols, launch.cta.threads);
  detail(launch).warp_passes = steps(cols, kWarp);
  launch.work.special = pass.elements;
  return launch;
}

Launch layer_norm(std::int64_t rows, std::int64_t cols, const Pass& pass) {
  constexpr int kThreads = 128;
  const std::int64_t wide = pass.element_bytes < 2 ? 8 : 4;  // elements of one load: 8 bytes
  Launch launch =
      vector::rowwise("vectorized_layer_norm_kernel", VectorKind::half_layer_norm, rows, cols, kThreads, pass);
  detail(launch).passes = steps(cols, wide * kThreads);
  detail(launch).warp_passes = static_cast<double>(cols) / static_cast<double>(wide * kWarp);
  launch.work.other_flop = 5 * pass.elements;
  return launch;
}

Launch lookup(std::int64_t rows, std::int64_t cols, const Pass& pass, std::int64_t sms) {
  constexpr std::int64_t kFewIndices = 16;
  const bool few = rows <= kFewIndices;
  Launch launch =
      vector::rowwise(few ? "indexSelectSmallIndex" : "indexSelectLargeIndex",
                      few ? VectorKind::index_select_small : VectorKind::index_select_large, rows, cols, 128, pass);
  const double per_cta = launch.cta.threads;
  const double ctas = std::ceil((few ? static_cast<double>(cols) : pass.elements) / per_cta);
  const double most = 8 * static_cast<double>(std::max<std::int64_t>(sms, 1));
  launch.grid[0] = rows > 0 ? static_cast<std::int64_t>(std::clamp(ctas, 1.0, most)) : 0;
  launch.work.other_flop = 0;
  return launch;
}

}  // namespace voltaic::kernel::serving
