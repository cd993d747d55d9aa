// SPDX-License-Identifier: MIT
#include "sim/kernel/sorting.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel {

namespace {

constexpr double kOneCta = 4096;
constexpr double kDigitBits = 8;
constexpr double kBlockDigitBits = 4;

Launch streaming(std::string name, const vector::Pass& pass) {
  Launch launch = vector::elementwise("", pass);
  launch.name = std::move(name);
  launch.library = "CUB";
  launch.family = "reduction";
  launch.work.other_flop = 0;
  return launch;
}

}  // namespace

double index_bits(double count) {
  return std::max(1.0, std::ceil(std::log2(std::max(2.0, count))));
}

void push_radix_sort(std::vector<Launch>& launches, const SortProblem& p) {
  if (!(p.pairs > 0)) return;
  if (p.pairs <= kOneCta) {
    Launch launch = block_sort(1, static_cast<std::int64_t>(p.pairs), p);
    launch.name = "DeviceRadixSortSingleTileKernel";
    return vector::push(launches, std::move(launch));
  }
  const double digits = std::ceil(p.key_bits / kDigitBits);
  const double counts = 4 * std::exp2(kDigitBits) * digits;
  vector::push(launches,
               streaming("DeviceRadixSortHistogramKernel", {p.pairs, p.key_bytes * p.pairs, counts, 1, p.key_bytes}));
  vector::push(launches, streaming("DeviceRadixSortExclusiveSumKernel", {counts / 4, counts, counts, 1, 4}));
  const double moved = (p.key_bytes + p.value_bytes) * p.pairs;
  for (double d = 0; d < digits; ++d) {
    vector::push(launches, streaming("DeviceRadixSortOnesweepKernel", {p.pairs, moved, moved, 2, p.key_bytes}));
  }
}

Launch block_sort(std::int64_t rows, std::int64_t cols, const SortProblem& row) {
  const double n = static_cast<double>(rows) * static_cast<double>(cols);
  const double moved = (row.key_bytes + row.value_bytes) * n;
  Launch launch = streaming("radixSortKVInPlace", {n, moved, moved, 2, row.key_bytes});
  launch.grid[0] = rows;
  launch.cta.threads = static_cast<int>(std::clamp<std::int64_t>((cols + 31) / 32 * 32, 32, 256));
  constexpr double kMostShared = 48.0 * 1024;
  launch.cta.shared_memory =
      Bytes{std::min(kMostShared, (row.key_bytes + row.value_bytes) * static_cast<double>(cols))};
  const double digits = std::ceil(row.key_bits / kBlockDigitBits);
  auto& detail = std::get<VectorKernel>(launch.detail);
  detail.kind = VectorKind::pooling;
  constexpr std::int64_t kTapsPerDigit = 16;
  detail.cols = static_cast<std::int64_t>(digits) * kTapsPerDigit;
  detail.passes = 4 * digits;  // Ranks, their sum and an exchange through shared memory, between barriers.
  return launch;
}

}  // namespace voltaic::kernel
