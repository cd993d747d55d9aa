// SPDX-License-Identifier: MIT
// What all boards with one chip share: arch/chips/*.json.
#pragma once

#include <string_view>

#include "arch/detail/description.hpp"

namespace voltaic::arch::detail {

/// Takes the numbers on which the description is silent from the file of its chip, sources included. A chip without a
/// file gets those of the chip that stands for its architecture, and a note.
void take_from_chip(Description& description);

/// Reads one file of arch/chips.
void decode_chip(const nlohmann::ordered_json& root, const std::string& file, Description& description);

}  // namespace voltaic::arch::detail
