// SPDX-License-Identifier: MIT
#include "sim/report/prediction.hpp"

namespace voltaic::report {

const CapPoint* least_energy(const std::vector<CapPoint>& points) {
  const CapPoint* best = nullptr;
  for (const CapPoint& c : points) {
    if (best == nullptr || c.energy < best->energy || (c.energy == best->energy && c.cap > best->cap)) best = &c;
  }
  return best;
}

}  // namespace voltaic::report
