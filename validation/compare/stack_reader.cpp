// SPDX-License-Identifier: MIT
#include "validation/compare/stack_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "validation/compare/kernel_rows.hpp"

namespace voltaic::validation {
namespace {

/// No dimension of a tensor and no tensor is larger: counts stay exact in a double and products inside an int64.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;
constexpr double kMostElements = 1e15;

}  // namespace

bool has_all(const CsvTable& table, std::initializer_list<const char*> columns) {
  return std::all_of(columns.begin(), columns.end(), [&](const char* c) { return table.has(c); });
}

std::int64_t size_cell(const CsvTable& table, std::size_t row, const char* column, std::int64_t least) {
  const auto value = table.integer(row, column);
  if (!value) throw ConfigError(table.place(row), column, "expected a size, got an empty cell");
  if (*value < least || *value > kLargestSize) {
    throw ConfigError(table.place(row), column,
                      fmt::format("expected a size from {} to {}, got {}", least, kLargestSize, *value));
  }
  return *value;
}

std::int64_t size_cell_or(const CsvTable& table, std::size_t row, const char* column, std::int64_t fallback) {
  return table.text(row, column).empty() ? fallback : size_cell(table, row, column);
}

std::optional<double> time_cell(const CsvTable& table, std::size_t row, const char* column) {
  const auto measured = table.number(row, column);
  if (!measured) return std::nullopt;
  constexpr double kShortestUs = 1e-3;  // one nanosecond: no call is faster
  constexpr double kLongestUs = 1e12;
  if (!(*measured >= kShortestUs && *measured <= kLongestUs)) {
    throw ConfigError(table.place(row), column, fmt::format("expected a time in microseconds, got {}", *measured));
  }
  return *measured * 1e-6;
}

void check_elements(const CsvTable& table, std::size_t row, std::initializer_list<std::int64_t> dims) {
  double elements = 1;
  for (const std::int64_t d : dims) elements *= static_cast<double>(d);
  if (elements > kMostElements) {
    throw ConfigError(table.place(row), "shape", fmt::format("expected tensors below 1e15 elements, got {}", elements));
  }
}

void check_product(const CsvTable& table, std::size_t row, const kernel::GemmProblem& p) {
  check_elements(table, row, {p.batch, p.m, p.n});
  check_elements(table, row, {p.batch, p.m, p.k});
  check_elements(table, row, {p.batch, p.k, p.n});
}

void describe_product(const kernel::GemmProblem& p, std::int64_t m, std::int64_t n, StackRow& row) {
  row.key = fmt::format("gemm|{}|{}|{}|{}", p.batch, m, n, p.k);
  row.label = fmt::format("{} x {} x {} x {}", p.batch, m, n, p.k);
  row.size = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
             static_cast<double>(p.k);
}

std::string family_name(std::string_view what, std::string_view dtype) {
  return dtype == "fp32" ? std::string(what) : fmt::format("{} {}", what, dtype);
}

const std::string& StackReader::gpu(std::string_view spelling) {
  const auto at = gpus_.find(spelling);
  if (at != gpus_.end()) return at->second;
  return gpus_.emplace(std::string(spelling), gpu_of(spelling, files_)).first->second;
}

bool StackReader::begin(std::size_t row, const char* time_column, std::string_view source, StackRow& out) {
  out.line = row;
  out.table_gpu = one_line(text(row, "gpu"));
  if (out.gpu.empty()) out.gpu = gpu(text(row, "gpu"));
  out.origin = one_line(source);
  const auto measured = time_cell(table_, row, time_column);
  if (!measured) return leave_out("no measured time"), false;
  out.measured_s = *measured;
  if (out.gpu.empty()) return miss(fmt::format("GPU {} is unknown", out.table_gpu), out), false;
  const auto protocol = protocol_of(source, text(row, "method"));
  if (!protocol) return miss(fmt::format("source {}: how it was timed is not known", out.origin), out), false;
  out.protocol = *protocol;
  return true;
}

void StackReader::miss(const std::string& reason, const StackRow& row) {
  ++skipped_[reason];
  if (!row.family.empty()) ++missed_[{row.family, row.table_gpu}];
}

void StackReader::take(StackRow row) {
  row.fit = is_fit_key(row.key);
  out_.rows.push_back(std::move(row));
}

StackRows StackReader::finish() {
  out_.skipped.assign(skipped_.begin(), skipped_.end());
  out_.missed.assign(missed_.begin(), missed_.end());
  return std::move(out_);
}

}  // namespace voltaic::validation
