// SPDX-License-Identifier: MIT
// Language models beyond what model configurations describe.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> language_models() {
  return {};
}

}  // namespace voltaic::workloads
