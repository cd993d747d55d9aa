// SPDX-License-Identifier: MIT
// Speech recognition and synthesis.
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

std::span<const ZooModel> speech_models() {
  return {};
}

}  // namespace voltaic::workloads
