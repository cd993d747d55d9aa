// SPDX-License-Identifier: MIT
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

Lowered lower_matrix(const graph::OpGraph&, const graph::Node&, const Target&) {
  return {};
}

}  // namespace voltaic::kernel
