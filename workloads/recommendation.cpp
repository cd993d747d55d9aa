// SPDX-License-Identifier: MIT
// Embedding tables, interactions and small dense towers.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> recommendation_models() {
  return {};
}

}  // namespace voltaic::workloads
