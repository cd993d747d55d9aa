// SPDX-License-Identifier: MIT
// How the tables of serving stacks and benchmark suites were timed, by the tag of their source.
#pragma once

#include <optional>
#include <string_view>

#include "sim/cost/stack_call.hpp"

namespace voltaic::validation {

struct StackProtocol {
  cost::CallProtocol call;
  bool column_major = false;  ///< m and n are those of a column-major product: our n and m.
  bool appends = false;  ///< A prompt's attention includes the kernel that writes its keys and values to the cache.
};

/// The protocol of a source such as "aic-vllm-0.24.0" or "vidur"; of other sources as far as the table's `method` tells
/// ("graph_avg", "kernel_trace", "event_avg", "wallclock", "sustained"); nullopt where neither is known.
std::optional<StackProtocol> protocol_of(std::string_view source, std::string_view method = "");

}  // namespace voltaic::validation
