// SPDX-License-Identifier: MIT
// Encoders and decoders that label each pixel or voxel.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> segmentation_models() {
  return {};
}

}  // namespace voltaic::workloads
