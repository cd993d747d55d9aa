// SPDX-License-Identifier: MIT
#include "validation/compare/csv_table.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>

#include "arch/units/error.hpp"

namespace voltaic::validation {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

/// zlib reads plain files as they are and inflates gzip files.
std::string read_bytes(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw ConfigError(path, "", "expected a file, found none");
  if (std::filesystem::is_directory(path, error)) throw ConfigError(path, "", "expected a file, got a directory");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw ConfigError(path, "", "cannot be opened");
  std::string bytes;
  std::string block(std::size_t{1} << 18, '\0');
  while (true) {
    const int got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (got < 0) throw ConfigError(path, "", "the gzip stream is damaged or cut off");
    if (got == 0) break;
    bytes.append(block, 0, static_cast<std::size_t>(got));
    if (bytes.size() > kMaxBytes) throw ConfigError(path, "", "more than 1 GiB of text");
  }
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) throw ConfigError(path, "", "the gzip stream is damaged or cut off");
  return bytes;
}

/// Cells of the record at `at`, which moves past it; quoted cells may hold commas, doubled quotes and line ends.
std::vector<std::string> next_record(std::string_view text, std::size_t& at, std::size_t& line,
                                     const std::string& path) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  std::size_t opened = line;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        cells.back() += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
      opened = line;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) throw ConfigError(path, fmt::format("line {}", opened), "expected a closing quote, found the file's end");
  return cells;
}

}  // namespace

CsvTable CsvTable::read(const std::string& path) {
  return parse(read_bytes(path), path);
}

CsvTable CsvTable::parse(std::string_view text, const std::string& path) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  CsvTable table;
  table.path_ = path;
  std::size_t at = 0;
  std::size_t line = 1;
  table.columns_ = next_record(text, at, line, path);
  if (table.columns_.size() < 2) throw ConfigError(path, "line 1", "expected a CSV header with named columns");
  for (std::size_t i = 0; i < table.columns_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (table.columns_[i] == table.columns_[j]) {
        throw ConfigError(path, "line 1", fmt::format("column '{}' stands twice", one_line(table.columns_[i])));
      }
    }
  }
  while (at < text.size()) {
    const std::size_t first_line = line;
    auto cells = next_record(text, at, line, path);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != table.columns_.size()) {
      throw ConfigError(path, fmt::format("line {}", first_line),
                        fmt::format("expected {} cells, got {}", table.columns_.size(), cells.size()));
    }
    table.cells_.push_back(std::move(cells));
    table.lines_.push_back(first_line);
  }
  return table;
}

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == column) return i;
  }
  return std::nullopt;
}

std::string_view CsvTable::text(std::size_t row, std::string_view column) const {
  const auto c = find(column);
  return c ? std::string_view(cells_[row][*c]) : std::string_view();
}

std::optional<double> CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string_view cell = text(row, column);
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value)) {
    throw ConfigError(place(row), std::string(column), fmt::format("expected a number, got '{}'", one_line(cell)));
  }
  return value;
}

std::optional<std::int64_t> CsvTable::integer(std::size_t row, std::string_view column) const {
  const auto value = number(row, column);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || std::abs(*value) > 9e15) {
    throw ConfigError(place(row), std::string(column),
                      fmt::format("expected a whole number, got '{}'", text(row, column)));
  }
  return static_cast<std::int64_t>(*value);
}

std::size_t CsvTable::keep(const std::function<bool(std::size_t)>& wanted) {
  std::size_t kept = 0;
  for (std::size_t row = 0; row < cells_.size(); ++row) {
    if (!wanted(row)) continue;
    if (kept != row) {
      cells_[kept] = std::move(cells_[row]);
      lines_[kept] = lines_[row];
    }
    ++kept;
  }
  const std::size_t dropped = cells_.size() - kept;
  cells_.resize(kept);
  lines_.resize(kept);
  return dropped;
}

std::string CsvTable::place(std::size_t row) const {
  return fmt::format("{}: line {}", path_, lines_[row]);
}

}  // namespace voltaic::validation
