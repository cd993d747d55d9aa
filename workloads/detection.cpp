// SPDX-License-Identifier: MIT
// Detectors: a backbone, feature maps of several sizes, heads over them.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> detection_models() {
  return {};
}

}  // namespace voltaic::workloads
