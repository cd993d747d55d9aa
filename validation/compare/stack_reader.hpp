// SPDX-License-Identifier: MIT
// What the readers of serving-stack and suite tables share: cells, GPU names, and rows that are left out.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "validation/compare/stack_rows.hpp"

namespace voltaic::validation {

bool has_all(const CsvTable& table, std::initializer_list<const char*> columns);
/// A whole number of the range; throws ConfigError.
std::int64_t size_cell(const CsvTable& table, std::size_t row, const char* column, std::int64_t least = 1);
/// The same; `fallback` for an empty cell or a missing column.
std::int64_t size_cell_or(const CsvTable& table, std::size_t row, const char* column, std::int64_t fallback);
/// Seconds of a cell in microseconds; nullopt when it is empty.
std::optional<double> time_cell(const CsvTable& table, std::size_t row, const char* column);
/// Refuses tensors whose elements a double cannot count.
void check_elements(const CsvTable& table, std::size_t row, std::initializer_list<std::int64_t> dims);
void check_product(const CsvTable& table, std::size_t row, const kernel::GemmProblem& problem);

/// Fills key, label, size and family of a product.
void describe_product(const kernel::GemmProblem& problem, std::int64_t m, std::int64_t n, StackRow& row);
/// Pooled line of operations by our word for the type.
std::string family_name(std::string_view what, std::string_view dtype);

class StackReader {
 public:
  StackReader(const CsvTable& table, const std::vector<std::string>& gpu_files) : table_(table), files_(gpu_files) {}

  const CsvTable& table() const { return table_; }
  std::string_view text(std::size_t row, const char* column) const { return table_.text(row, column); }

  /// Fills GPU, origin, protocol and time. False: the row was left out, counted under `out.family`.
  bool begin(std::size_t row, const char* time_column, std::string_view source, StackRow& out);
  /// Leaves out a row of which the model has no idea.
  void miss(const std::string& reason, const StackRow& row);
  /// Leaves out what is no measurement of a call.
  void leave_out(std::string_view reason, std::int64_t times = 1) { skipped_[std::string(reason)] += times; }
  void take(StackRow row);
  StackRows finish();

 private:
  const std::string& gpu(std::string_view spelling);

  const CsvTable& table_;
  const std::vector<std::string>& files_;
  std::map<std::string, std::string, std::less<>> gpus_;
  std::map<std::string, std::int64_t> skipped_;
  std::map<std::pair<std::string, std::string>, std::int64_t> missed_;
  StackRows out_;
};

/// The suite's V100 is that of a DGX-1.
inline constexpr std::string_view kSuiteV100 = "V100", kSuiteV100Board = "v100-sxm2-16gb";

/// One reader per kind of table.
void read_gemm_row(StackReader& reader, std::size_t row);
void read_attention_row(StackReader& reader, std::size_t row);
void read_operation_row(StackReader& reader, std::size_t row);
void read_vector_row(StackReader& reader, std::size_t row);
void read_moe_row(StackReader& reader, std::size_t row);
void read_layer_row(StackReader& reader, std::size_t row);
void read_suite_gemm_row(StackReader& reader, std::size_t row);
void read_suite_conv_row(StackReader& reader, std::size_t row);
void read_recurrent_row(StackReader& reader, std::size_t row);
void read_sparse_row(StackReader& reader, std::size_t row);

}  // namespace voltaic::validation
