// SPDX-License-Identifier: MIT
// Recurrent layers of the suite, up to three calls a row: forward, gradient of the inputs, gradient of the weights. The
// suite leaves out the product with the input. And its products with sparse weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "arch/units/error.hpp"
#include "sim/kernel/recurrent.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

using kernel::RecurrentCell;
using kernel::RecurrentPass;

struct Pass {
  RecurrentPass pass;
  const char* column;
  const char* mode;
};
constexpr std::array<Pass, 3> kPasses{{
    {RecurrentPass::forward, "fwd_us", "fwd"},
    {RecurrentPass::backward_data, "bwd_inputs_us", "bwd_inputs"},
    {RecurrentPass::backward_weights, "bwd_weights_us", "bwd_weights"},
}};

std::optional<RecurrentCell> cell_named(std::string_view word) {
  for (const RecurrentCell cell : {RecurrentCell::vanilla, RecurrentCell::lstm, RecurrentCell::gru}) {
    if (kernel::to_string(cell) == word) return cell;
  }
  return std::nullopt;
}

std::optional<DataType> type_named(std::string_view word) {
  if (word == "FP32") return DataType::fp32;
  if (word == "FP16_tensorcore_mixed") return DataType::fp16;
  return std::nullopt;
}

kernel::RecurrentKernel kernel_of(const CsvTable& table, std::size_t row, RecurrentCell cell, DataType math) {
  kernel::RecurrentKernel k;
  k.cell = cell;
  k.hidden = size_cell(table, row, "hidden");
  k.batch = size_cell(table, row, "batch_N");
  k.steps = size_cell(table, row, "timesteps");
  k.math = math;
  k.element_bytes = bytes_per_element(math);
  const auto gates = static_cast<std::int64_t>(kernel::gates(cell));
  check_elements(table, row, {gates, k.hidden, k.hidden});
  check_elements(table, row, {gates, k.hidden, k.batch, k.steps});
  return k;
}

void describe(const kernel::RecurrentKernel& k, std::string_view cell, StackRow& out) {
  out.key = fmt::format("rnn|{}|{}|{}|{}", cell, k.hidden, k.batch, k.steps);
  out.label = fmt::format("{} {}, batch {}, {} steps", cell, k.hidden, k.batch, k.steps);
  const auto hidden = static_cast<double>(k.hidden);
  const double rows = static_cast<double>(k.batch) * static_cast<double>(k.steps);
  out.size = 2 * kernel::gates(k.cell) * hidden * hidden * rows;
}

}  // namespace

void read_recurrent_row(StackReader& reader, std::size_t row) {
  const bool superseded = reader.text(row, "status") == "superseded";
  const std::string word = one_line(reader.text(row, "cell"));
  const auto cell = cell_named(word);
  const auto math = type_named(reader.text(row, "precision"));
  for (const Pass& pass : kPasses) {
    if (reader.text(row, pass.column).empty()) continue;
    if (superseded) {
      reader.leave_out(kSuperseded);
      continue;
    }
    StackRow out;
    out.op = word;
    out.mode = pass.mode;
    out.dtype = one_line(reader.text(row, "precision"));
    out.family = family_name("recurrent", math ? to_string(*math) : out.dtype);
    if (reader.text(row, "gpu") == kSuiteV100) out.gpu = kSuiteV100Board;
    if (!reader.begin(row, pass.column, "deepbench", out)) continue;
    if (!cell || !math) {
      const auto reason = cell ? fmt::format("precision {} is unknown for recurrent layers", out.dtype)
                               : fmt::format("cell {} is unknown", word);
      reader.miss(reason, out);
      continue;
    }
    out.call = fmt::format("rnn_{}{}", pass.mode, *math == DataType::fp16 ? "" : "_fp32");
    kernel::RecurrentKernel k = kernel_of(reader.table(), row, *cell, *math);
    k.pass = pass.pass;
    describe(k, word, out);
    out.work = k;
    reader.take(std::move(out));
  }
}

void read_sparse_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  if (reader.text(row, "status") == "superseded") return reader.leave_out(kSuperseded);
  StackRow out;
  out.op = "sparse_gemm";
  out.mode = "forward";
  out.call = "sparse";
  out.dtype = one_line(reader.text(row, "precision"));
  out.family = family_name("sparse products", "fp32");
  if (reader.text(row, "gpu") == kSuiteV100) out.gpu = kSuiteV100Board;
  if (!reader.begin(row, "sparse_time_us", "deepbench", out)) return;
  if (type_named(out.dtype) != DataType::fp32) {
    return reader.miss(fmt::format("precision {} is unknown for sparse_gemm", out.dtype), out);
  }
  kernel::SparseKernel k;
  k.rows = size_cell(table, row, "M");
  k.features = size_cell(table, row, "N");
  k.cols = size_cell(table, row, "K");
  check_elements(table, row, {k.rows, k.cols});
  check_elements(table, row, {k.rows, k.features});
  check_elements(table, row, {k.cols, k.features});
  const auto zeros = table.number(row, "sparsity");
  if (!zeros || !(*zeros >= 0 && *zeros <= 1)) {
    throw ConfigError(table.place(row), "sparsity",
                      fmt::format("expected a share of zeros in [0, 1], got '{}'", reader.text(row, "sparsity")));
  }
  const double elements = static_cast<double>(k.rows) * static_cast<double>(k.cols);
  k.nnz = std::llround(elements * (1 - *zeros));
  k.column_major = true;
  const auto share = reader.text(row, "sparsity");
  out.key = fmt::format("sparse|{}|{}|{}|{}", k.rows, k.features, k.cols, share);
  out.label = fmt::format("{} x {}, {} zeros, times {} columns", k.rows, k.cols, share, k.features);
  out.size = 2 * static_cast<double>(k.nnz) * static_cast<double>(k.features);
  out.work = k;
  reader.take(std::move(out));
}

}  // namespace voltaic::validation
