// SPDX-License-Identifier: MIT
// A table of text that fits a terminal: columns as wide as their longest cell, the flexible one cut to what is left.
#pragma once

#include <string>
#include <vector>

namespace voltaic::report {

/// How a page is drawn. `width` 0: as wide as it wants (files and pipes).
struct PageStyle {
  int width = 100;
  bool color = false;
};

enum class Align { left, right };

class TextTable {
 public:
  /// `flexible`: the one column that gives way when the terminal is narrow.
  void column(std::string title, Align align = Align::right, bool flexible = false);
  void row(std::vector<std::string> cells);
  /// A rule before the next row.
  void rule();
  bool empty() const { return rows_.empty(); }
  std::string render(const PageStyle& style) const;

 private:
  struct Column {
    std::string title;
    Align align;
    bool flexible;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  ///< An empty row is a rule.
};

/// Cells that `text` occupies on a terminal (UTF-8 code points; no wide characters are used here).
std::size_t display_width(const std::string& text);
/// Cuts in the middle: "encoder.la…output"; ".." replaces what is left out.
std::string shorten(const std::string& text, std::size_t width);
/// Cuts `text` into lines of at most `width` cells at blanks, each line opened by `indent`.
std::string wrap(const std::string& text, int width, const std::string& indent);

}  // namespace voltaic::report
