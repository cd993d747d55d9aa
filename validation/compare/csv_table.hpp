// SPDX-License-Identifier: MIT
// A measured table: CSV, plain or gzip, with a header line.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic::validation {

/// Rows of text cells under named columns. Cells are addressed by column name; the order in the file does not matter.
class CsvTable {
 public:
  /// Reads and splits the file. Throws ConfigError for a file that cannot be read, a broken gzip stream, a header that
  /// is missing or repeats a name, and a row with another number of cells (with its line number).
  static CsvTable read(const std::string& path);
  static CsvTable parse(std::string_view text, const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t rows() const { return cells_.size(); }
  bool has(std::string_view column) const { return find(column).has_value(); }
  /// Empty text when the table has no such column.
  std::string_view text(std::size_t row, std::string_view column) const;
  /// Nullopt for an empty cell or a missing column; throws ConfigError naming file, line and column for anything but a
  /// finite number.
  std::optional<double> number(std::size_t row, std::string_view column) const;
  std::optional<std::int64_t> integer(std::size_t row, std::string_view column) const;
  /// Drops the rows for which `wanted` is false; says how many.
  std::size_t keep(const std::function<bool(std::size_t)>& wanted);
  /// "e2e.csv: line 7": where a row came from.
  std::string place(std::size_t row) const;

 private:
  std::optional<std::size_t> find(std::string_view column) const;

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> cells_;
  std::vector<std::size_t> lines_;
};

}  // namespace voltaic::validation
