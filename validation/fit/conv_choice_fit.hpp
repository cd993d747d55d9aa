// SPDX-License-Identifier: MIT
// The bias with which the convolution library takes each kernel: fitted so that the time of what it takes is right.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "validation/fit/row_times.hpp"

namespace voltaic::validation {

/// One kernel's bias, in logarithms of time: the library takes the smallest ln(time) + bias.
struct ChoiceBias {
  std::string path;
  double value = 0, prior = 0;
};

struct ChoiceFit {
  std::vector<ChoiceBias> biases;
  double error_prior = 0, error = 0;  ///< Mean |predicted / measured - 1| of the kernels taken.
};

/// Coordinate search from the document's biases; rows of one board. Sets the document.
ChoiceFit fit_convolution_choice(const RowTimes& times, std::span<const FitRow> rows,
                                 arch::CalibrationDocument& document);

}  // namespace voltaic::validation
