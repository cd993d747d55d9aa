// SPDX-License-Identifier: MIT
#include "sim/engine/sim_time.hpp"

#include <cmath>

#include "arch/units/error.hpp"

namespace voltaic::engine {

SimTime to_sim_time(Seconds t) {
  ensure(std::isfinite(t.value) && t.value >= 0, "a duration must be finite and not negative");
  constexpr double kLargest = 9.0e6;
  if (t.value > kLargest) throw UnsupportedError("a run of more than 9e6 simulated seconds (104 days) is out of range");
  return {std::llround(t.value * 1e12)};
}

}  // namespace voltaic::engine
