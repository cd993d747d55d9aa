// SPDX-License-Identifier: MIT
// Radix sorts as CUB launches them.
#pragma once

#include <vector>

#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// Pairs of a key and a value to be sorted together.
struct SortProblem {
  double pairs = 0;
  double key_bytes = 4;
  double value_bytes = 8;
  double key_bits = 32;  ///< That tell keys apart.
};

/// Bits that tell `count` numbers from 0 apart.
double index_bits(double count);

/// Up to 4096 pairs are sorted by one CTA. More take a histogram (keys read once), its sum, and per 8-bit digit one
/// pass that reads and writes keys and values.
void push_radix_sort(std::vector<Launch>& launches, const SortProblem& problem);

/// Rows of up to 4096 pairs, each sorted by a CTA in shared memory. Four bits of a key cost its threads as much as 16
/// elements of a pooling window (assumed: 8e9 32-bit keys per second on an A100).
Launch block_sort(std::int64_t rows, std::int64_t cols, const SortProblem& row);

}  // namespace voltaic::kernel
