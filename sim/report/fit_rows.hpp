// SPDX-License-Identifier: MIT
// The answer of `voltaic fit`, as tables and JSON show it. Filled by sim/study/fit.cpp, computed nowhere else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/prediction.hpp"

namespace voltaic::report {

/// Something that would make the workload fit.
struct FitChange {
  std::string what;  ///< The options to add: "--recompute full", "--gpu h200-sxm5-141gb"; "ZeRO stage 1 over 4 GPUs".
  std::int64_t memory_bytes = 0;     ///< On each GPU.
  std::int64_t capacity_bytes = 0;   ///< Of each GPU.
  std::optional<double> time_ratio;  ///< Time per sample over that of the request as asked.
  std::string note;                  ///< What the change means beyond memory and time; may be empty.
};

struct Fit {
  Prediction asked;                              ///< The request as asked, as if it fitted.
  std::optional<std::int64_t> max_batch;         ///< 0: not even one sample fits.
  std::optional<std::int64_t> max_seq;           ///< In decode: tokens in the cache.
  std::string max_batch_reason, max_seq_reason;  ///< Why there is none, or what limits it beside memory.
  std::vector<FitChange> changes;                ///< Cheapest first; empty where the request fits.
};

}  // namespace voltaic::report
