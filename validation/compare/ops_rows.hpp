// SPDX-License-Identifier: MIT
// Tables of traced networks: every node of one layer, run alone, forward and backward.
//
// Columns: model, gpu, mode (inf|train), seq, batch, name, call, target, kind, in_shapes, in_contig, out_shape, dtype,
// host_only, repeat, fw_us, bw_us, acc_us; optional bw_work, clk_ramp. Protocol: one eager call between two events,
// buffers reused, best five of 25. Backward is the sum over the node's autograd nodes, each called and timed alone with
// gradients recorded, and over the additions to kept gradients.
#pragma once

#include <string>

#include "validation/compare/validate.hpp"

namespace voltaic::validation {

bool is_ops_table(const CsvTable& table);
/// Appends pairs (op: the table's kind, "host" for calls that launch nothing; mode: forward, backward; origin: inf,
/// train, with " clk_ramp" where the clock was still rising), skipped rows and `ops_errors`. Kernels: all rows are
/// report rows. Host times of section "single_op", session "operations", were read from bert_large rows whose
/// `model|mode|precision|batch` is on the fit side and in which the host decides: those are fit rows.
void predict_ops_rows(Runner& runner, const CsvTable& table, const std::string& split, Validation& out);

}  // namespace voltaic::validation
