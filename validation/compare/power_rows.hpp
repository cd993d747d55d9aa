// SPDX-License-Identifier: MIT
// Tables with watts: kernels with a board's mean power, and training jobs under power limits.
//
// Told apart by their columns; docs/calibration.md lists them. Figures are mean watts of one board, or the time of a
// job under a limit over its time under the highest one. Watts of tensor-core products stand in those tables' own
// column and are read with them (stack_gemm_rows.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/request.hpp"
#include "validation/compare/csv_table.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {

enum class PowerTable : std::uint8_t {
  operators,  ///< op, implementation, precision, gpu, shape_from_config, kernel_us, gpu_avg_W
  roofline,   ///< gpu, inner_iters, flop_per_byte, bw_gbps, gflops, clock_mhz, power_w
  training,   ///< kind, model, dataset, gpu, num_gpus, batch_per_gpu, power_limit_W, time_s, avg_gpu_W
  peaks,      ///< workload, kind, gpu, measured, unit, gpu_avg_W, gpu_std_W: no row is predicted
};
/// Nullopt where the columns are those of none.
std::optional<PowerTable> power_table(const CsvTable& table);

/// Rows whose operation `wants` are predicted or counted with the reason; others count as left out by --op.
void predict_power_rows(Runner& runner, const CsvTable& table, PowerTable kind,
                        const std::function<bool(std::string_view)>& wants, Validation& out);

/// Reasons that say something about the row, not about the model.
inline constexpr std::string_view kNoWatts = "no measured power", kReference = "reference of its job's times",
                                  kCompiling = "watts averaged over compilation";

/// Puts a prediction and its interval into a pair.
void answer(Pair& pair, double predicted, double half_width);

/// What the readers of these tables share.
class PowerReader {
 public:
  PowerReader(Runner& runner, const CsvTable& table, const std::function<bool(std::string_view)>& wants,
              Validation& out)
      : runner_(runner), table_(table), wants_(wants), out_(out) {}

  const CsvTable& table() const { return table_; }
  Runner& runner() { return runner_; }
  Validation& out() { return out_; }
  /// Our board of the row's spelling; empty: none.
  std::string gpu(std::size_t row) const;
  /// A request on that board with the calibration that was asked for.
  Request request(const std::string& gpu) const;
  /// True where --op and --split want a row; counts those that they leave out.
  bool wants(std::string_view op, std::string_view key);
  void skip(const std::string& reason, std::int64_t figures = 1) { validation::skip(out_, reason, figures); }
  /// Of a family's pooled line: the model has no idea of the row.
  void miss(const std::string& reason, const std::string& family, std::size_t row);
  /// Watts or seconds above zero; nullopt for an empty cell. Throws ConfigError.
  std::optional<double> figure(std::size_t row, const char* column) const;

 private:
  Runner& runner_;
  const CsvTable& table_;
  const std::function<bool(std::string_view)>& wants_;
  Validation& out_;
};

/// Half width of the 90 % interval of calibration family `name` ("power", "power_cap").
double power_half_width(const arch::ResolvedGpu& gpu, std::string_view name);

void predict_operator_rows(PowerReader& reader);
void predict_roofline_rows(PowerReader& reader);
void predict_training_rows(PowerReader& reader);

}  // namespace voltaic::validation
