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
  std::string id;  ///< "2026-11-30 ampere", or "none ampere".
};

/// Parsed once per architecture and board, then shared.
Calibration calibration_for(Architecture architecture, const std::string& board);

}  // namespace voltaic::arch::detail
