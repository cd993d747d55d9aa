// SPDX-License-Identifier: MIT
// A whole completion of an autoregressive model: the prefill of its prompt, then decode steps over a growing cache.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/report/prediction.hpp"

namespace voltaic {

/// Share of a step by which the time between two priced steps may leave their straight line.
inline constexpr double kStepTolerance = 5e-4;

/// A step that was priced, and how many steps it stands for.
struct PricedStep {
  std::int64_t context = 0;
  double weight = 0;
};

/// Contexts of [first, last] to price, their weights, and the sum  sum_c t(c) ~ sum_i weight_i t(context_i)  that they
/// give: t is taken as linear between neighbours. Time is smooth in the context but for jumps where attention splits
/// its keys anew; intervals are halved until the time in their middle meets the line, or until the area that it leaves
/// is too small to matter. Few steps are priced one by one.
/// `time` is called once for each context that is returned, lowest levels of halving last.
std::vector<PricedStep> price_steps(std::int64_t first, std::int64_t last,
                                    const std::function<double(std::int64_t context)>& time);

struct Completion {
  std::int64_t prompt_tokens = 0;
  std::int64_t generated_tokens = 1;
  std::int64_t first_context = 1;  ///< Keys that the first decode step sees.
};

/// One decode step over a cache of `context` tokens, the newest among them.
using StepFunction = std::function<report::Prediction(std::int64_t context)>;

/// The prefill gives the first token, each step one more. Times, work and energy add up; the memory is that of the last
/// step beside the activations of the larger phase; layers of the prefill and of the steps stand under "prefill/" and
/// "decode/".
report::Prediction complete(report::Prediction prefill, const Completion& completion, const StepFunction& step);

}  // namespace voltaic
