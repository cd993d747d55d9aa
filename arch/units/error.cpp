// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"

#include <algorithm>
#include <numeric>

namespace voltaic {

ConfigError::ConfigError(const std::string& file, const std::string& place, const std::string& problem)
    : std::runtime_error(file + ": " + (place.empty() ? "" : place + ": ") + problem) {}

void ensure(bool condition, const char* message) {
  if (!condition) throw InternalError(message);
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= limit) {
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U) out.pop_back();
      return out + "...";
    }
    const auto u = static_cast<unsigned char>(c);
    out += (u < 0x20 || u == 0x7f) ? '?' : c;
  }
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  if (word.size() > 200) return best;
  for (const auto& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t above = row[j + 1];
        row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (word[i] == candidate[j] ? 0U : 1U)});
        diagonal = above;
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace voltaic
