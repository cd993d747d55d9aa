// SPDX-License-Identifier: MIT
// Fitted parameters of one architecture: arch/calibration/ARCHITECTURE.*.json merged, then the board's overrides on
// top.
#pragma once

#include <string>

#include "arch/parameter_tree.hpp"
#include "arch/spec.hpp"

namespace voltaic::arch::detail {

struct Calibration {
  ParameterTree tree;
  std::string id;  ///< "ampere 2026-11-30", or "ampere 2026-11-30 with mine.json".
};

/// Parsed once per architecture and board, then shared. `file`: a calibration file laid over what ships (not shared).
Calibration calibration_for(Architecture architecture, const std::string& board, const std::string& file = "");

}  // namespace voltaic::arch::detail
