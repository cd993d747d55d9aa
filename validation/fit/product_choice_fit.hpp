// SPDX-License-Identifier: MIT
// The rule by which the matrix library takes a kernel on CUDA cores, from the kernels that were seen.
//
// Two steps over the candidates (kernel, parts of k) that the fit rows show often enough: first the weights that make
// the observed candidates most likely under a softmax of the score (multinomial logit), then from one, two and four
// times those the weights with the least expected |ln(time of the candidate / time of the observed one)|: ties between
// equally fast kernels are forgiven, dear mistakes are not. Both by L-BFGS on decorrelated terms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "validation/fit/row_times.hpp"

namespace voltaic::validation {

struct ProductChoiceFit {
  std::int64_t rows = 0, candidates = 0, weights = 0;
  double hit_prior = 0, hit = 0;    ///< Share of the rows whose kernel is taken.
  double loss_prior = 0, loss = 0;  ///< Mean |ln(time taken / time of the observed kernel)|, capped at 0.5.
  bool kept_prior = false;          ///< Too few rows, a fixed rule, or no better than the prior.
};

/// `rows`: fit rows of one kind with their observed kernels. Sets splits, scores and shared weights in `document` and
/// in `fitted`.
ProductChoiceFit fit_product_choice(const RowTimes& times, std::span<const FitRow> rows, bool linear,
                                    arch::CalibrationDocument& document, arch::CalibrationDocument& fitted);

}  // namespace voltaic::validation
