// SPDX-License-Identifier: MIT
// Sequence to sequence networks.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> translation_models() {
  return {};
}

}  // namespace voltaic::workloads
