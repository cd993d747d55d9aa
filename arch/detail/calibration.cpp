// SPDX-License-Identifier: MIT
#include "arch/detail/calibration.hpp"

#include <map>
#include <mutex>
#include <optional>

#include "arch/calibration_document.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {

Calibration calibration_for(Architecture architecture, const std::string& board, const std::string& file) {
  const auto build = [&] {
    std::optional<CalibrationDocument> own;
    if (!file.empty()) own = CalibrationDocument::read_for(architecture, file);
    auto document = CalibrationDocument::built_in(architecture, !(own && own->stands_alone()));
    std::string id = std::string(to_string(architecture)) + ' ' + (document.date().empty() ? "none" : document.date());
    if (own) {
      document.overlay(*own);
      id += " with " + one_line(file);
    }
    return Calibration{document.tree(board), std::move(id)};
  };
  if (!file.empty()) return build();
  static std::mutex mutex;
  static std::map<std::pair<Architecture, std::string>, Calibration> cache;
  const std::lock_guard lock(mutex);
  const auto key = std::make_pair(architecture, board);
  const auto hit = cache.find(key);
  if (hit != cache.end()) return hit->second;
  return cache.emplace(key, build()).first->second;
}

}  // namespace voltaic::arch::detail
