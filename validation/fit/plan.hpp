// SPDX-License-Identifier: MIT
// What is fitted on which rows: the parameters of each kernel family, their bounds and how far a prior may be wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arch/calibration_document.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/fit/least_squares.hpp"

namespace voltaic::validation {

/// Families are fitted one after another, in this order; a later one sees the earlier ones' values.
enum class FitFamily : std::uint8_t { pointwise, softmax, layer_norm, linear, batched, convolution };
inline constexpr std::size_t kFitFamilies = 6;
std::string_view to_string(FitFamily family);
/// The unit that a number's name ends in: "s" of "launch_s"; empty for shares and exponents.
std::string_view unit_of(std::string_view path);
/// Which of `folds` parts a shape falls into: drawn as the split is, so that it is on the same side on every board.
int fold_of(const std::string& key, int folds);
/// The family a row belongs to.
FitFamily family_of(const KernelRow& row);

/// A board with the sessions its rows were measured in, the reference first.
struct FitBoard {
  std::string name;  ///< Member of "boards" in the calibration file.
  std::vector<std::string> sessions;
  std::string gpu;  ///< Name or file of the GPU.
};

/// Parameters of a family on these boards with priors from `document`. The first board is the reference: in its first
/// session short kernels run at the boost clock, by definition (efficiencies and clock cannot be told apart), and
/// boards without rows inherit its values but for clocks, which are a matter of each board's power limit.
std::vector<FitParameter> fit_plan(FitFamily family, const arch::CalibrationDocument& document,
                                   const std::vector<FitBoard>& boards);

/// Sets the values in the document; values of the reference board are also those of boards without their own.
void apply(const std::vector<FitParameter>& parameters, std::span<const double> values, const std::string& reference,
           arch::CalibrationDocument& document);

}  // namespace voltaic::validation
