// SPDX-License-Identifier: MIT
// Device memory of a step by part, as answers show it. Filled by sim/memory_use.cpp, computed nowhere else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sim/graph/op_graph.hpp"

namespace voltaic::report {

/// Bytes. The first eight add up to the total.
struct MemoryUse {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer_state = 0;
  std::int64_t activations = 0;  ///< What the peak needs beyond weights, gradients and optimizer state.
  std::int64_t kv_cache = 0;
  std::int64_t workspace = 0;  ///< Of libraries: standing, and of the kernel at the peak.
  std::int64_t allocator = 0;  ///< Whole blocks and segments, and fragments between them.
  std::int64_t context = 0;    ///< Driver, loaded kernels, libraries.
  std::int64_t capacity = 0;   ///< What the driver hands out before the context.
  std::string peak_layer;      ///< Where the peak lies.
  graph::Phase peak_phase = graph::Phase::forward;

  static constexpr std::size_t kParts = 8;
  /// Parts by the names of their JSON keys, in the order of reports.
  std::array<std::pair<std::string_view, std::int64_t>, kParts> parts() const {
    return {{{"weights", weights},
             {"gradients", gradients},
             {"optimizer", optimizer_state},
             {"activations", activations},
             {"kv_cache", kv_cache},
             {"workspace", workspace},
             {"allocator", allocator},
             {"context", context}}};
  }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : parts()) sum += bytes;
    return sum;
  }
  bool fits() const { return total() <= capacity; }
  /// The part that takes most; the first of equal ones.
  std::string_view largest() const {
    const auto all = parts();
    std::size_t most = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i].second > all[most].second) most = i;
    }
    return all[most].first;
  }
};

/// A part's name as pages write it.
inline std::string_view spoken(std::string_view part) {
  return part == "kv_cache" ? "KV cache" : part;
}

}  // namespace voltaic::report
