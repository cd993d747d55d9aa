// SPDX-License-Identifier: MIT
// Measured tables that lie outside the tree: found by VOLTAIC_MEASURED or beside the source tree, read as CSV, plain or
// gzip.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace voltaic::test {

/// Rows of one table, fields by column name.
struct MeasuredTable {
  std::map<std::string, std::size_t> columns;
  std::vector<std::vector<std::string>> rows;

  const std::string& word(const std::vector<std::string>& row, const std::string& column) const {
    return row.at(columns.at(column));
  }
  double number(const std::vector<std::string>& row, const std::string& column) const {
    const std::string& text = word(row, column);
    return text.empty() ? std::nan("") : std::strtod(text.c_str(), nullptr);
  }
  std::int64_t integer(const std::vector<std::string>& row, const std::string& column) const {
    return std::strtoll(word(row, column).c_str(), nullptr, 10);
  }
};

inline std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  return out;
}

/// Where a table or folder of the packs lies; empty when it is not there.
inline std::optional<std::filesystem::path> measured_path(const std::string& name) {
  const char* folder = std::getenv("VOLTAIC_MEASURED");
  const char* source = std::getenv("VOLTAIC_SOURCE_DIR");
  std::filesystem::path path = folder != nullptr ? folder : (source != nullptr ? source : ".");
  if (folder == nullptr) path = path / ".." / "shared" / "measured";
  path /= name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

/// Empty when the pack is not there: tests that want it then say so and stop.
inline std::optional<MeasuredTable> measured_table(const std::string& name) {
  const auto path = measured_path(name);
  if (!path) return std::nullopt;
  const gzFile file = gzopen(path->string().c_str(), "rb");
  if (file == nullptr) return std::nullopt;
  MeasuredTable table;
  std::vector<char> buffer(1 << 16);
  while (gzgets(file, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    std::string line = buffer.data();
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    auto fields = split_csv(line);
    if (table.columns.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i) table.columns[fields[i]] = i;
    } else if (fields.size() == table.columns.size()) {
      table.rows.push_back(std::move(fields));
    }
  }
  gzclose(file);
  return table;
}

/// crc32(key) mod 10 above 5: rows that no constant was fitted on.
inline bool is_report_row(const std::string& key) {
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(key.data()), static_cast<uInt>(key.size()));
  return crc % 10 > 5;
}

/// Relative errors (predicted - measured) / measured.
struct Errors {
  std::vector<double> values;
  void add(double predicted, double measured) { values.push_back((predicted - measured) / measured); }
  double mean_absolute() const {
    double sum = 0;
    for (const double e : values) sum += std::abs(e);
    // No row matched: a check on the mean must fail, not pass.
    return values.empty() ? std::numeric_limits<double>::infinity() : sum / static_cast<double>(values.size());
  }
  double quantile(double share) const {
    if (values.empty()) return 0;
    std::vector<double> sorted;
    for (const double e : values) sorted.push_back(std::abs(e));
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  }
  double bias() const {
    double sum = 0;
    for (const double e : values) sum += e;
    // No row matched: a check on the mean must fail, not pass.
    return values.empty() ? std::numeric_limits<double>::infinity() : sum / static_cast<double>(values.size());
  }
};

}  // namespace voltaic::test
