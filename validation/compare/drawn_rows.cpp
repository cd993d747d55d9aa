// SPDX-License-Identifier: MIT
#include "validation/compare/drawn_rows.hpp"

#include <zlib.h>

#include <map>
#include <random>

namespace voltaic::validation {

std::vector<bool> draw_rows(const std::vector<std::string>& kinds, std::int64_t rows, std::uint64_t seed) {
  std::vector<bool> taken(kinds.size(), rows <= 0);
  if (rows <= 0) return taken;
  std::map<std::string, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < kinds.size(); ++i) members[kinds[i]].push_back(i);
  for (auto& [kind, places] : members) {
    const auto crc = crc32(0, reinterpret_cast<const unsigned char*>(kind.data()), static_cast<unsigned>(kind.size()));
    std::mt19937_64 random(seed ^ (static_cast<std::uint64_t>(crc) << 32));
    for (std::size_t i = 0; i < places.size() && static_cast<std::int64_t>(i) < rows; ++i) {
      std::swap(places[i], places[i + random() % (places.size() - i)]);
      taken[places[i]] = true;
    }
  }
  return taken;
}

}  // namespace voltaic::validation
