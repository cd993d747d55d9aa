// SPDX-License-Identifier: MIT
#include "arch/detail/calibration.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "arch/detail/embedded_data.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/detail/tree_access.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

using Json = nlohmann::ordered_json;

bool is_leaf(const Json& node) {
  return !node.is_object() || node.contains("value");
}

/// Members of `from` replace or join those of `into`; objects merge, leaves do not.
void merge(Json& into, const Json& from) {
  for (const auto& [key, value] : from.items()) {
    Json& target = into[key];
    if (is_leaf(value) || is_leaf(target)) {
      target = value;
    } else {
      merge(target, value);
    }
  }
}

bool is_header(const std::string& key) {
  return key == "schema" || key == "id" || key == "date" || key == "source" || key == "note" || key == "boards";
}

Calibration build(Architecture architecture, const std::string& board) {
  const std::string prefix = std::string(to_string(architecture)) + '.';
  Json root = Json::object();
  std::vector<Json> boards;
  std::string date;
  for (const EmbeddedFile& file : embedded_calibrations()) {
    if (!file.name.starts_with(prefix)) continue;
    Json part = parse_trusted(file.text, std::string(file.name));
    if (!part.is_object()) throw ConfigError(std::string(file.name), "/", "expected an object, got " + describe(part));
    if (const auto d = part.find("date"); d != part.end() && d->is_string())
      date = std::max(date, d->get<std::string>());
    if (const auto b = part.find("boards"); b != part.end() && b->is_object()) {
      if (const auto own = b->find(board); own != b->end() && own->is_object()) boards.push_back(std::move(*own));
    }
    for (auto& [key, value] : part.items()) {
      if (is_header(key)) continue;
      if (is_leaf(value) || !root.contains(key)) {
        root[key] = std::move(value);
      } else {
        merge(root[key], value);
      }
    }
  }
  for (const Json& own : boards) merge(root, own);
  const std::string name(to_string(architecture));
  return {TreeAccess::make(std::make_shared<const Json>(std::move(root)), "calibration/" + name),
          name + ' ' + (date.empty() ? "none" : date)};
}

}  // namespace

Calibration calibration_for(Architecture architecture, const std::string& board) {
  static std::mutex mutex;
  static std::map<std::pair<Architecture, std::string>, Calibration> cache;
  const std::lock_guard lock(mutex);
  const auto key = std::make_pair(architecture, board);
  const auto hit = cache.find(key);
  if (hit != cache.end()) return hit->second;
  return cache.emplace(key, build(architecture, board)).first->second;
}

}  // namespace voltaic::arch::detail
