// SPDX-License-Identifier: MIT
// Stand-ins for families whose lowering file is not there yet: the operation is counted as unmodelled, with its bytes.
// Weak, so that the real function wins once its file exists.
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

#define VOLTAIC_MISSING(function)                                                                           \
  __attribute__((weak)) Lowered function(const graph::OpGraph& g, const graph::Node& node, const Target&) { \
    Lowered out;                                                                                            \
    out.unmodelled_reason = "no lowering rule yet";                                                         \
    for (const auto id : node.inputs) out.unmodelled_bytes += Bytes{g.tensor(id).bytes()};                  \
    for (const auto id : node.outputs) out.unmodelled_bytes += Bytes{g.tensor(id).bytes()};                 \
    return out;                                                                                             \
  }

VOLTAIC_MISSING(lower_normalization)
VOLTAIC_MISSING(lower_pointwise)
VOLTAIC_MISSING(lower_softmax)
VOLTAIC_MISSING(lower_reduction)
VOLTAIC_MISSING(lower_pooling)
VOLTAIC_MISSING(lower_embedding)
VOLTAIC_MISSING(lower_data_movement)
VOLTAIC_MISSING(lower_loss)
VOLTAIC_MISSING(lower_optimizer)

#undef VOLTAIC_MISSING

}  // namespace voltaic::kernel
