// SPDX-License-Identifier: MIT
// Does a workload fit on a GPU, how far could it grow, and what is the smallest change that makes it fit?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/report/fit_rows.hpp"
#include "sim/request.hpp"

namespace voltaic::study {

/// The largest n >= 1 whose excess is not positive, found from any `start`; 0 where even 1 has too much. `excess` is
/// bytes beyond capacity, nothing for sizes that do not exist. Memory is nearly a straight line in n, so a line through
/// two probes leads; bisection keeps the search short where it does not. The result and its successor have been probed.
using Excess = std::function<std::optional<double>(std::int64_t n)>;
std::int64_t largest_that_fits(const Excess& excess, std::int64_t start);

/// Memory under ZeRO [Rajbhandari20]: optimizer state (stage 1), gradients too (2), weights too (3) in equal parts over
/// `gpus`; activations and all else stay whole.
std::int64_t zero_bytes(const report::MemoryUse& use, int stage, std::int64_t gpus);

/// Answers from real plans; times from predictions of each change. Throws as Runner::predict does for the request
/// itself; changes that the GPU or the workload does not have are left out.
report::Fit fit(Runner& runner, const Request& request);

}  // namespace voltaic::study
