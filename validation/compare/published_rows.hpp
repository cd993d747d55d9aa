// SPDX-License-Identifier: MIT
// Published throughput and latency of whole networks on one GPU, and the requests that predict them.
//
// Tables, told apart by their columns:
//     reference models    model, submodel, framework, gpu, num_gpus, mode, precision, batch_per_gpu, seq_or_size,
//     flags,
//                         throughput, unit, lat_avg_ms
//     one vendor's runs   model, task, suite_version, gpu, num_gpus, precision, unit, batch_per_gpu, throughput
//     FlagPerf            model, case, num_gpus, fix_hp, throughput; model, implementation, num_gpus, batch,
//     p_infer_core single figures      model, gpu, num_gpus, precision, batch, variant, value, unit MLPerf suite,
//     round, model, scenario, gpu, num_gpus, precision, batch_per_gpu, result, result_unit
// What a row's model, flags and units mean is data (published_map.hpp). The measured time is that of one step: batch
// over throughput, or the latency where no throughput is given. Several GPUs, servers of models and times to train are
// skipped with their reason. Rows are split by `model|mode|precision|batch`, for what may be fitted on such tables:
// profiles of frameworks, never kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/request.hpp"
#include "validation/compare/csv_table.hpp"
#include "validation/compare/published_map.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {

enum class PublishedTable : std::uint8_t {
  reference_models,
  vendor_runs,
  flagperf_training,
  flagperf_inference,
  figures,
  mlperf
};
std::optional<PublishedTable> published_table(const CsvTable& table);
/// Whose spelling the models of a table are in: the source of its mapping.
std::string_view source_of(PublishedTable kind);
/// Empty, or why the row holds nothing to predict. Throws ConfigError for figures that make no sense.
std::string read_published_row(const CsvTable& table, PublishedTable kind, std::size_t row, PublishedRow& out);

struct PublishedAsk {
  Request request;
  Pair pair;               ///< All but the prediction.
  double accumulated = 1;  ///< Passes per optimizer step.
  double host_s = 0;       ///< Around each pass, while the GPU waits.
  std::string network;     ///< What ran, for ratios: names and sizes, without GPU, precision and batch.
  std::string half;        ///< Class of the precision, for ratios: "half", "single", "int8".
};
/// Empty, or why the row cannot be predicted.
std::string ask_published(const PublishedMap& map, const PublishedRow& row, PublishedAsk& ask);
/// The rows of a table that can be asked for, in its order. `refused` hears of the others: the row and why.
std::vector<std::pair<PublishedRow, PublishedAsk>> published_asks(
    const CsvTable& table, PublishedTable kind,
    const std::function<void(const PublishedRow&, const std::string&, bool measured)>& refused = {});
/// Our name of a board as such tables spell it; empty: none. "A100" is the one of 40 GB, "V100" of 16 GB.
std::string published_gpu(std::string_view table_gpu);
/// Passes per optimizer step as the flags state them for this precision, and whether the batch counts all of them.
struct Accumulation {
  std::int64_t steps = 1;
  bool in_batch = false;
};
Accumulation accumulation_of(const PublishedRow& row);
/// The framework profile that a row's framework and flags stand for.
std::string_view profile_of(const PublishedRow& row);
/// The same, as an entry says otherwise.
std::string_view profile_of(const PublishedRow& row, const PublishedEntry& entry);

/// Speed-ups between rows with their predictions: A100 over V100, 16 bits over 32, a batch over the smallest.
/// `asks[i]` has its prediction in `asks[i].pair`.
std::vector<RatioPair> ratio_pairs(const std::vector<PublishedAsk>& asks);

void predict_published_rows(Runner& runner, const CsvTable& table, PublishedTable kind, Validation& out);

}  // namespace voltaic::validation
