// SPDX-License-Identifier: MIT
// Launches of vector kernels on two-byte types as serving stacks write them by hand: one CTA per token, scalar loads.
#pragma once

#include <cstdint>

#include "sim/kernel/vector.hpp"

namespace voltaic::kernel::serving {

/// Two-byte rows are what the serving kernels were measured on.
bool serves(const vector::Pass& pass);

/// An RMS or layer norm, alone or with the residual added on the way: `pass` counts the rows that move.
Launch norm(std::int64_t rows, std::int64_t cols, const vector::Pass& pass);
/// Rotates `query` and then `key` columns of each token.
Launch rope(std::int64_t rows, std::int64_t query, std::int64_t key, double element_bytes);
/// act(gate) * up: `cols` results of a token.
Launch gate(std::int64_t rows, std::int64_t cols, const vector::Pass& pass);
/// ATen's layer norm, four elements of a thread at a time.
Launch layer_norm(std::int64_t rows, std::int64_t cols, const vector::Pass& pass);
/// Rows of a table by index: one kernel for up to 16 indices, another for more [ATEN].
Launch lookup(std::int64_t rows, std::int64_t cols, const vector::Pass& pass, std::int64_t sms);

}  // namespace voltaic::kernel::serving
