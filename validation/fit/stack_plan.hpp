// SPDX-License-Identifier: MIT
// What is fitted on rows of serving stacks: by law, the numbers of its kernels with bounds and how far what ships may
// be off, and those of the protocols under which the rows were timed.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "validation/fit/least_squares.hpp"
#include "validation/fit/stack_times.hpp"

namespace voltaic::validation {

enum class LawKind : std::uint8_t { product, attention_prompt, attention_decode, serving, experts, other };

/// The law that takes most of a row's time to say; rows of one law are fitted together.
struct StackLaw {
  LawKind kind = LawKind::other;
  std::string name;  ///< Its member in the calibration: "two_byte", "flash2_paged", "serving_norm", "vllm_triton".
  friend auto operator<=>(const StackLaw&, const StackLaw&) = default;
};
std::string to_string(const StackLaw& law);
/// Where its numbers stand: "gemm_tensor.laws.two_byte"; empty for kernels whose law is fitted on other tables.
std::string section_of(const StackLaw& law);

/// The kernel a row is about: the last one, less the sum of a split product's parts. What is written or quantised
/// before it is not. Null for a row without launches.
const kernel::Launch* main_launch(const StackFitRow& row);

/// By row. `rows` have launches.
std::vector<StackLaw> laws_of(const StackTimes& times, const arch::CalibrationDocument& document,
                              const std::vector<StackFitRow>& rows);

/// The member of "protocols" that a call's times come from: "protocols.aic-vllm.prefill"; empty where none does.
/// Members that hold quantiles alone are passed over.
std::string protocol_entry(const arch::ParameterTree& tree, const cost::CallProtocol& protocol, std::string_view call);

/// Numbers that the rows of one law may move, with what `document` says as prior. A number that a board, a stack or a
/// release has of its own is fitted there. An effect that the prior says is absent stays absent.
std::vector<FitParameter> stack_plan(const StackLaw& law, const StackTimes& times,
                                     const arch::CalibrationDocument& document, const std::vector<StackFitRow>& rows);

}  // namespace voltaic::validation
