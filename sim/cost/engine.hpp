// SPDX-License-Identifier: MIT
// The engines that turn a launch into time, and the library rules that need them.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::cost {

/// `cycle` is named here with the others; it is made where it meets its reference (sim/engines.hpp).
enum class EngineKind : std::uint8_t { roofline, analytic, cycle };
std::string_view to_string(EngineKind kind);

/// Roofline or analytic engine for one resolved GPU. `gpu` must outlive it.
std::unique_ptr<kernel::CostModel> make_engine(EngineKind kind, const arch::ResolvedGpu& gpu);

/// Kernel choice of cuBLAS and cuDNN for one resolved GPU (sim/cost/gemm_choice.cpp, conv_choice.cpp); times by the
/// analytic engine.
std::unique_ptr<kernel::LibraryChoice> make_library(const arch::ResolvedGpu& gpu);

}  // namespace voltaic::cost
