// SPDX-License-Identifier: MIT
// Answers as pages for a terminal.
#pragma once

#include <span>
#include <string>

#include "sim/report/fit_rows.hpp"
#include "sim/report/prediction.hpp"
#include "sim/report/study_rows.hpp"
#include "sim/report/text_table.hpp"

namespace voltaic::report {

/// The answer in the first line; then where the time goes, what bounds it, memory, throughput, the longest layers.
std::string predict_page(const Prediction& prediction, const PageStyle& style);
/// The predict page, then every layer and kernel with its legs, and what would help most.
std::string explain_page(const Prediction& prediction, const PageStyle& style);
std::string compare_page(const Comparison& comparison, const PageStyle& style);
std::string sweep_page(std::span<const SweepPoint> points, const PageStyle& style);
std::string fit_page(const Fit& fit, const PageStyle& style);
std::string workload_page(const WorkloadView& workload, const PageStyle& style);

}  // namespace voltaic::report
