// SPDX-License-Identifier: MIT
// The experts' block of one GPU of a group, as the stack that was measured runs it.
#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "sim/kernel/experts.hpp"
#include "validation/compare/predict_stack.hpp"

namespace voltaic::validation {

std::vector<kernel::Launch> lower_moe(const MoeCall& call, const kernel::Target& target) {
  if (bytes_per_element(call.math) != 2 || !target.gpu.has_tensor_path(call.math)) {
    throw UnsupportedError(
        fmt::format("{} has no fused mixture of experts in {}", target.gpu.name, to_string(call.math)));
  }
  kernel::ExpertBlock block;
  block.tokens = {call.tokens, call.top_k, call.experts, call.expert_parallel, call.routing, call.skew, call.leftover};
  block.hidden = call.hidden;
  block.inner = std::max<std::int64_t>(1, call.inner / call.tensor_parallel);
  block.math = call.math;
  block.weight_bytes = bytes_per_element(call.weights);
  constexpr double kScaleBytes = 2, kScaleGroup = 128;
  if (!is_floating(call.weights)) block.weight_bytes += kScaleBytes / kScaleGroup;
  block.stack = call.stack;
  return kernel::expert_launches(block);
}

}  // namespace voltaic::validation
