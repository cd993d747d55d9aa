// SPDX-License-Identifier: MIT
// The protocol of measured kernel tables: one eager call between two events on an idle GPU, buffers reused.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/vector_cost.hpp"

namespace voltaic::cost {

/// What the events see of one vector operation:
///     T = (H^q + (L + k)^q)^(1/q)      H host floor, L host time left before the kernel, k kernel time
/// H, L and q per operation from calibration section "single_op"; k with the clock that idle gaps leave.
/// Fitted: [NEUDATA] FP32 eager rows.
class SingleOp {
 public:
  explicit SingleOp(const arch::ResolvedGpu& gpu);
  /// Time between the events of a call that makes this one launch, a vector kernel.
  Seconds time(const kernel::Launch& launch) const;

 private:
  struct Floor {
    double floor_s = 0, launch_s = 0, exponent = 16;
  };
  const Floor& floor_of(const kernel::VectorKernel& kernel) const;

  VectorCost cost_;
  std::vector<std::pair<std::string, Floor>> floors_;
  Floor fallback_;
};

}  // namespace voltaic::cost
