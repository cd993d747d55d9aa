// SPDX-License-Identifier: MIT
// Builders of recommendation networks and what they share.
#pragma once

#include <span>
#include <string>

#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

/// Dense layers of these widths, each with its activation. `dropout` follows each activation.
TensorId tower(GraphWriter& w, const std::string& scope, TensorId x, std::span<const Dim> widths, double dropout = 0);

/// Mean cross entropy of clicks against scores [B, 1]; in inference the scores become probabilities. Ends the graph.
void predict_click(GraphWriter& w, Workload& workload, TensorId scores);

/// How unevenly rows of tables are asked for: `--dim zipf=105` says that the row of rank r is read as often as
/// r^-1.05; absent: all alike.
double zipf_exponent(const BuildOptions& options);

/// One row of a joint table for each of ids[B, columns]: [B, columns, width].
TensorId look_up(GraphWriter& w, const std::string& name, TensorId ids, Dim rows, Dim width, double zipf);

void build_ncf(const BuildOptions& options, Workload& workload);
void build_vae_cf(const BuildOptions& options, Workload& workload);
void build_dlrm(const BuildOptions& options, Workload& workload);
void build_dcn_v2(const BuildOptions& options, Workload& workload);
void build_wide_deep(const BuildOptions& options, Workload& workload);

}  // namespace voltaic::workloads
