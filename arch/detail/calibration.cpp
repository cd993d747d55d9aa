// SPDX-License-Identifier: MIT
#include "arch/detail/calibration.hpp"

#include <map>
#include <mutex>

#include "arch/calibration_document.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {

Calibration calibration_for(Architecture architecture, const std::string& board, const std::string& file) {
  const auto build = [&] {
    CalibrationDocument document = CalibrationDocument::built_in(architecture);
    std::string id = std::string(to_string(architecture)) + ' ' + (document.date().empty() ? "none" : document.date());
    if (!file.empty()) {
      document.overlay(CalibrationDocument::read(file));
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
