// SPDX-License-Identifier: MIT
// Predictions held against measured tables, row by row, under each table's own timing protocol.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/request.hpp"
#include "validation/compare/csv_table.hpp"

namespace voltaic::validation {

/// One measured row with its prediction.
struct Pair {
  std::string gpu;  ///< As the table spells it.
  std::string op;   ///< The table's word; "network" for end-to-end rows.
  std::string dtype;
  std::string mode;    ///< "inference", "training", "training backward", "inference fusion", ...
  std::string origin;  ///< The table's own subset, where it has one.
  std::string label;   ///< The row in words: "bert_large seq 512 batch 8".
  double measured_s = 0;
  double predicted_s = 0;
  double low_s = 0, high_s = 0;  ///< The model's 90 % interval.
  double size = 0;               ///< FLOP, or bytes of vector operations: the axis of "error by size".
  bool fit = false;              ///< A row that parameters were fitted on.
  std::string explanation;       ///< What the model holds responsible for the time.
  double error() const { return (predicted_s - measured_s) / measured_s; }
};

/// Statistics of the rows that share gpu, op, dtype, mode and origin. Errors are fractions.
struct Group {
  std::string gpu, op, dtype, mode, origin;
  std::int64_t rows = 0;
  double mape = 0, median_ape = 0, p90_ape = 0, bias = 0;
  double interval_coverage = 0;  ///< Share of rows inside the interval.
  double interval_width = 0;     ///< Mean of (high - low) / predicted.
  std::vector<Pair> worst;       ///< Largest absolute errors first, at most ten.
};

/// Errors of one network's operations, each counted as often as it occurs. Where the signed sum lies far below the
/// absolute one, errors of layers cancel.
struct OpsError {
  std::string model, gpu, mode;
  std::int64_t seq = 0, batch = 0;
  double signed_s = 0, absolute_s = 0, measured_s = 0;
};

struct Validation {
  std::vector<Group> groups;                                  ///< In order of first appearance.
  std::vector<Pair> pairs;                                    ///< In table order.
  std::vector<std::pair<std::string, std::int64_t>> skipped;  ///< Reason and rows, sorted by reason.
  std::vector<std::string> files;
  std::vector<OpsError> ops_errors;  ///< By network of the tables of traced operations.
};

/// Reads each table, recognises it by its columns and predicts every row; a row that cannot be predicted is counted
/// with its reason. Throws ConfigError for files that are no known table. `split`: "fit", "report" or "all"; end-to-end
/// rows are all report rows.
Validation validate(Runner& runner, const std::vector<std::string>& files, const std::string& split = "all");

/// Groups of `pairs`; used by validate() and by reports on a subset.
std::vector<Group> group(const std::vector<Pair>& pairs);

/// End-to-end table (`model,gpu,n_gpus,mode,seq,batch,option,...,e2e_ms,fw_ms,bw_ms,...,flag`).
bool is_network_table(const CsvTable& table);
void predict_network_rows(Runner& runner, const CsvTable& table, Validation& out);
/// Counts rows that have no prediction.
void skip(Validation& out, const std::string& reason, std::int64_t rows = 1);

std::string validation_page(const Validation& v, int width);
std::string validation_csv(const Validation& v);
/// The `result` member of the JSON envelope, as text.
std::string validation_json(const Validation& v);

}  // namespace voltaic::validation
