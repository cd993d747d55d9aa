// SPDX-License-Identifier: MIT
#include "sim/report/text_table.hpp"

#include <algorithm>

namespace voltaic::report {
namespace {

constexpr std::size_t kGap = 2;        // blanks between columns
constexpr std::size_t kNarrowest = 8;  // a flexible column is not cut further

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// The first or last `cells` code points of `text`.
std::string head(const std::string& text, std::size_t cells) {
  std::size_t i = 0;
  for (std::size_t n = 0; i < text.size(); ++i) {
    if (!continues(text[i]) && n++ == cells) break;
  }
  return text.substr(0, i);
}
std::string tail(const std::string& text, std::size_t cells) {
  std::size_t i = text.size();
  for (std::size_t n = 0; i > 0 && n < cells;) {
    --i;
    if (!continues(text[i])) ++n;
  }
  return text.substr(i);
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t w = display_width(text);
  const std::string blanks(width > w ? width - w : 0, ' ');
  return align == Align::left ? text + blanks : blanks + text;
}

void trim_right(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string shorten(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  if (width <= 2) return head(text, width);
  const std::size_t kept = width - 2;
  return head(text, kept / 2) + ".." + tail(text, kept - kept / 2);
}

std::string wrap(const std::string& text, int width, const std::string& indent) {
  const std::size_t room =
      width <= 0 ? text.size()
                 : std::max<std::size_t>(
                       20, static_cast<std::size_t>(width) - std::min(indent.size(), static_cast<std::size_t>(width)));
  std::string out, line;
  const auto flush = [&] {
    if (!line.empty()) out += indent + line + '\n';
    line.clear();
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find(' ', i), text.size());
    const std::string word = text.substr(i, end - i);
    if (!line.empty() && display_width(line) + 1 + display_width(word) > room) flush();
    if (!line.empty()) line += ' ';
    line += word;
    i = end + 1;
  }
  flush();
  return out;
}

void TextTable::column(std::string title, Align align, bool flexible) {
  columns_.push_back({std::move(title), align, flexible});
}

void TextTable::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::rule() {
  rows_.emplace_back();
}

std::string TextTable::render(const PageStyle& style) const {
  std::vector<std::size_t> width(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) width[c] = display_width(columns_[c].title);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], display_width(row[c]));
  }
  std::size_t total = columns_.empty() ? 0 : kGap * (columns_.size() - 1);
  for (const std::size_t w : width) total += w;
  if (style.width > 0 && total > static_cast<std::size_t>(style.width)) {
    const std::size_t over = total - static_cast<std::size_t>(style.width);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!columns_[c].flexible) continue;
      width[c] = width[c] > over + kNarrowest ? width[c] - over : std::min(width[c], kNarrowest);
      break;
    }
  }
  const auto line_of = [&](auto cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      line += padded(shorten(cell(c), width[c]), width[c], columns_[c].align);
    }
    trim_right(line);
    return line;
  };
  std::string title = line_of([&](std::size_t c) { return columns_[c].title; });
  std::string out = style.color ? "\033[1m" + title + "\033[0m\n" : title + '\n';
  for (const auto& row : rows_) {
    if (row.empty()) {
      std::string rule_line;
      for (std::size_t c = 0; c < columns_.size(); ++c) rule_line += (c > 0 ? "  " : "") + std::string(width[c], '-');
      out += rule_line + '\n';
    } else {
      out += line_of([&](std::size_t c) { return row[c]; }) + '\n';
    }
  }
  return out;
}

}  // namespace voltaic::report
