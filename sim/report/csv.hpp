// SPDX-License-Identifier: MIT
// Answers as comma-separated values: a header, then one row per kernel, point or layer; quoted where needed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/report/fit_rows.hpp"
#include "sim/report/prediction.hpp"
#include "sim/report/study_rows.hpp"

namespace voltaic::report {

std::string csv_cell(std::string_view text);
/// One row per layer and kernel.
std::string prediction_csv(const Prediction& prediction);
std::string comparison_csv(const Comparison& comparison);
std::string sweep_csv(std::span<const SweepPoint> points);
std::string fit_csv(const Fit& fit);
std::string workload_csv(const WorkloadView& workload);

}  // namespace voltaic::report
