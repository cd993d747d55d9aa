// SPDX-License-Identifier: MIT
// Predictions held against measured tables, row by row, under each table's own timing protocol.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/request.hpp"
#include "validation/compare/csv_table.hpp"

namespace voltaic::validation {

/// What a row measured.
enum class Unit : std::uint8_t {
  seconds,
  watts,  ///< Mean power of a board.
  ratio,  ///< Of two times of one job: under a power limit over without.
};
/// "s", "w", "ratio": the ending of a key.
std::string_view to_string(Unit unit);

/// One measured row with its prediction.
struct Pair {
  std::string gpu;  ///< As the table spells it.
  std::string op;   ///< The table's word; "network" for end-to-end rows.
  std::string dtype;
  std::string mode;           ///< "forward", "inference", "training", "training backward", "inference fusion", ...
  std::string origin;         ///< The table's own subset, where it has one.
  std::string label;          ///< The row in words: "bert_large seq 512 batch 8".
  Unit unit = Unit::seconds;  ///< Of the four figures that follow.
  double measured = 0;
  double predicted = 0;
  double low = 0, high = 0;  ///< The model's 90 % interval.
  double size = 0;           ///< FLOP, or bytes of vector operations: the axis of "error by size"; 0: none.
  bool fit = false;          ///< A row that parameters were fitted on.
  std::string family;        ///< Which pooled line it belongs to: "pointwise", "products"; empty: none.
  std::string explanation;   ///< What the model holds responsible for the time.
  double error() const { return (predicted - measured) / measured; }
};

/// Statistics of the rows that share gpu, op, dtype, mode and origin. Errors are fractions.
struct Group {
  std::string gpu, op, dtype, mode, origin;
  Unit unit = Unit::seconds;
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

/// Statistics over one family of operations on one GPU, over all of its tables.
struct Pooled {
  std::string name, gpu;
  std::int64_t rows = 0;        ///< Predicted.
  std::int64_t rows_total = 0;  ///< The same and those that a table has but the model cannot predict.
  double mape = 0, median_ape = 0, p90_ape = 0, max_ape = 0, bias = 0;
  double interval_coverage = 0, interval_width = 0;
};

/// A speed-up between two rows of published tables, with that between their predictions.
struct RatioPair {
  std::string kind;   ///< "A100 over V100", "16 bits over 32", "batch scaling".
  std::string label;  ///< The faster row and what it is set against.
  double measured = 0, predicted = 0;
  double error() const { return (predicted - measured) / measured; }
};
/// Statistics of the speed-ups of one kind.
struct Ratio {
  std::string kind;
  std::int64_t pairs = 0;
  double mape = 0, median_ape = 0, p90_ape = 0, bias = 0;
};
/// How many rows of a published table the model could take.
struct Coverage {
  std::string table, what;  ///< File, and which of its rows: "V100 and A100, one GPU".
  std::int64_t rows = 0;    ///< Predicted.
  std::int64_t rows_total = 0;
};

/// What to validate. Rows that are left out are counted as skipped, with the option that says so.
struct ValidateOptions {
  std::string split = "all";           ///< "fit", "report" or "all"; end-to-end rows are all report rows.
  std::vector<std::string> gpus = {};  ///< Only rows of these boards, the table's spelling or ours, or GPU files.
  std::vector<std::string> ops = {};   ///< Only these words of the tables ("network" for end-to-end rows); empty: all.
  std::string calibration = {};        ///< File of fitted values laid over those that ship; empty: none.
  int jobs = 0;                        ///< Threads; 0: all cores. Results do not depend on it.
  cost::EngineKind engine = cost::EngineKind::analytic;  ///< Kernel tables, stack tables and networks.
  cycle::SampleOptions sampling = {};
  std::int64_t rows = 0;   ///< At most this many of each GPU, operation and type; 0: all.
  std::uint64_t seed = 1;  ///< Of that draw.
};

struct Validation {
  std::vector<Group> groups;                                  ///< In order of first appearance.
  std::vector<Pooled> pooled;                                 ///< By family, then GPU in order of first appearance.
  std::vector<Pair> pairs;                                    ///< In table order.
  std::vector<std::pair<std::string, std::int64_t>> skipped;  ///< Reason and rows, sorted by reason.
  std::vector<std::string> files;
  std::vector<OpsError> ops_errors;    ///< By network of the tables of traced operations.
  std::vector<RatioPair> ratio_pairs;  ///< Of published tables.
  std::vector<Ratio> ratios;           ///< By kind, in order of first appearance.
  std::vector<Coverage> coverage;      ///< By published table.
  std::vector<std::string> warnings;   ///< Small errors of networks in which errors of layers cancel.
  /// Rows without a prediction by family and GPU of the pooled line that lacks them.
  std::map<std::pair<std::string, std::string>, std::int64_t> missed;
  ValidateOptions options;

  /// Measured figures that were asked for: predicted, or skipped for another reason than the options.
  std::int64_t asked() const;
};

/// Reads each table, recognises it by its columns and predicts every row; a row that cannot be predicted is counted
/// with its reason. Throws ConfigError for files that are no known table, UsageError for a GPU or operation that no
/// table has.
Validation validate(Runner& runner, const std::vector<std::string>& files, const ValidateOptions& options = {});

/// Groups of `pairs`; used by validate() and by reports on a subset.
std::vector<Group> group(const std::vector<Pair>& pairs);
/// Pooled lines of `v.pairs` and `v.missed`. Whole networks have a line over all GPUs too.
std::vector<Pooled> pool(const Validation& v);
std::vector<Ratio> ratios(const std::vector<RatioPair>& pairs);
/// A line for each network whose error is small while the errors of its operations, which a table of traced operations
/// gives, are not.
std::vector<std::string> cancellations(const Validation& v);

/// Kernel tables (kernel_rows.hpp), under the protocol of single calls in the session that `origin` names.
void predict_kernel_rows(Runner& runner, const CsvTable& table, Validation& out);
/// End-to-end table (`model,gpu,n_gpus,mode,seq,batch,option,...,e2e_ms,fw_ms,bw_ms,...,flag`). A training row is
/// compared as a whole (`training`; where the flag is `fw_host_bound` its backward pass alone) and by pass
/// (`training forward`, unless flagged, and `training backward`).
bool is_network_table(const CsvTable& table);
void predict_network_rows(Runner& runner, const CsvTable& table, Validation& out);
/// "bert_large seq 512 batch 8".
std::string network_label(std::string_view model, std::int64_t seq, std::int64_t batch);
/// Why a row without a time is skipped; it counts among no rows to predict.
inline constexpr std::string_view kNoTime = "no measured time";
/// Counts rows that have no prediction.
void skip(Validation& out, const std::string& reason, std::int64_t rows = 1);

/// Rows up to this many stand on the page one by one; beyond, the worst of each group do.
inline constexpr std::size_t kRowsOnPage = 60;
std::string validation_page(const Validation& v, int width);
std::string validation_csv(const Validation& v);
/// The `result` member of the JSON envelope, as text.
std::string validation_json(const Validation& v);
/// One HTML page without outside resources: pooled lines with plots, groups, worst rows.
std::string validation_html(const Validation& v);

}  // namespace voltaic::validation
