// SPDX-License-Identifier: MIT
// The additive causal mask that decoder models build once per pass.
#pragma once

#include "workloads/graph_writer.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

/// [b, 1, s, t] floating mask: lower triangle combined with the padding mask, in the ten or so kernels that the eager
/// framework spends on it.
TensorId additive_causal_mask(GraphWriter& w, const TokenSizes& sizes);

}  // namespace voltaic::workloads
