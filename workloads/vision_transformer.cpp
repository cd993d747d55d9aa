// SPDX-License-Identifier: MIT
// Transformers over windows of an image.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> vision_transformer_models() {
  return {};
}

}  // namespace voltaic::workloads
