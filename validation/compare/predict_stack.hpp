// SPDX-License-Identifier: MIT
// Rows of serving-stack and suite tables, predicted: the project's own lowering under the protocol of each source.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "sim/kernel/lowering.hpp"
#include "validation/compare/stack_rows.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {

/// Rows whose operation `wants` are predicted or counted with the reason; others count as left out by --op.
void predict_stack_rows(Runner& runner, const CsvTable& table, StackTable kind,
                        const std::function<bool(std::string_view)>& wants, Validation& out);

/// The launches of one row as the library on this GPU makes them. Throws UnsupportedError.
std::vector<kernel::Launch> lower_stack(const StackWork& work, const kernel::Target& target);

/// The experts' block alone.
std::vector<kernel::Launch> lower_moe(const MoeCall& call, const kernel::Target& target);

}  // namespace voltaic::validation
