// SPDX-License-Identifier: MIT
// Whole-model times as projects and vendors publish them: encoder passes, prefills, decode steps, completions.
//
// Three kinds of table, told apart by their columns:
//     published inference   model, implementation, gpu, tp, precision, batch, input_len, output_len, latency_ms, ...
//     serving runs          model, hardware, prompt_size, batch_size, token_size, prompt_time_ms, token_time_ms, ...
//     one layer             gpu, workload, phase, op, latency_us, source (no shape columns)
// Nothing is fitted on them but the host of serving runs (llm_models.hpp). A GPU of a tensor-parallel group is
// predicted by itself with its part of each layer, and all-reduces are added by one line (llm_models.hpp); pipeline
// parallelism is left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/request.hpp"
#include "validation/compare/csv_table.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {

/// One measured figure and the request that predicts it.
struct LlmAsk {
  enum class Figure : std::uint8_t {
    total,      ///< The whole request.
    per_token,  ///< The mean decode step.
  };
  Request request;
  Figure figure = Figure::total;
  double times = 1;  ///< The figure is this many of the predicted one: products that a row counts together.
  double communication_s = 0;
  double host_least_s = 0;  ///< The host takes at least this beside the GPU,
  double host_added_s = 0;  ///< and this before or after it.
  Pair pair;                ///< All but the prediction.
};

/// A time in seconds, `unit` of them in the column; nullopt where the cell is empty. Throws ConfigError for times that
/// no model takes.
std::optional<double> measured_time(const CsvTable& table, std::size_t row, const char* column, double unit);

/// Empty, or why the row cannot be predicted.
std::string read_inference_row(const CsvTable& table, std::size_t row, LlmAsk& ask);
std::string read_layer_row(const CsvTable& table, std::size_t row, LlmAsk& ask);
/// A prefill and a decode step for each distinct run, measured as the median of its repeats.
std::vector<LlmAsk> read_serving_rows(const CsvTable& table, Validation& out);

bool is_llm_table(const CsvTable& table);
void predict_llm_rows(Runner& runner, const CsvTable& table, Validation& out);

/// Our name of a board as whole-model tables spell it; "A100" without a size is the first one, of 40 GB. Empty: none.
std::string llm_gpu(std::string_view table_gpu);

}  // namespace voltaic::validation
