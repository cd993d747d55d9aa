// SPDX-License-Identifier: MIT
// What the answer would be after one change.
#pragma once

#include <string>

namespace voltaic::report {

struct Sensitivity {
  std::string path;       ///< "gpu.dram.peak_bandwidth"
  std::string change;     ///< "*1.1"
  double time_ratio = 1;  ///< New time over old.
};

}  // namespace voltaic::report
