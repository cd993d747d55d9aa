// SPDX-License-Identifier: MIT
// Networks that draw images.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> generative_models() {
  return {};
}

}  // namespace voltaic::workloads
