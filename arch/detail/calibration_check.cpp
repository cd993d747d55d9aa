// SPDX-License-Identifier: MIT
#include "arch/detail/calibration_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "arch/detail/strict_json.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kFarthest = 1e4;

bool is_remark(std::string_view key) {
  return key == "source" || key == "note";
}

const Json& leaf(const Json& node) {
  return node.is_object() && node.contains("value") ? node["value"] : node;
}

class Check {
 public:
  Check(const Json& shipped, const std::string& name) : shipped_(shipped), name_(name) {}

  /// `like`: what ships at this place on the board at hand, or in general.
  void object(const Json& own, const Json& like, const std::string& place) const {
    for (const auto& [key, value] : own.items()) {
      if (is_remark(key)) continue;
      const std::string here = place + '/' + pointer_token(key);
      if (key == "measured_over_predicted") {
        ratios(value, here);
        continue;
      }
      const Json* known = find(like, key, place);
      if (known == nullptr) unknown(like, key, here);
      value_like(value, *known, here);
    }
  }

  void boards(const Json& own, const std::string& place) const {
    for (const auto& [board, overrides] : own.items()) {
      const std::string here = place + '/' + pointer_token(board);
      expect_object(overrides, here);
      part(overrides, here);
    }
  }

  /// Sections, and sessions inside.
  void part(const Json& own, const std::string& place) const {
    Json sections = Json::object();
    for (const auto& [key, value] : own.items()) {
      const std::string here = place + '/' + pointer_token(key);
      if (key == "boards") {
        expect_object(value, here);
        boards(value, here);
      } else if (key == "sessions") {
        expect_object(value, here);
        for (const auto& [session, overrides] : value.items()) {
          if (is_remark(session)) continue;
          expect_object(overrides, here + '/' + pointer_token(session));
          part(overrides, here + '/' + pointer_token(session));
        }
      } else {
        sections[key] = value;
      }
    }
    object(sections, shipped_, place);
  }

 private:
  [[noreturn]] void refuse(const std::string& place, const std::string& problem) const {
    throw ConfigError(name_, place, problem);
  }
  void expect_object(const Json& value, const std::string& place) const {
    if (!value.is_object()) refuse(place, "expected an object, got " + describe(value));
  }
  [[noreturn]] void unknown(const Json& like, const std::string& key, const std::string& place) const {
    std::vector<std::string> names;
    if (like.is_object()) {
      for (const auto& [name, value] : like.items()) names.push_back(name);
    }
    const std::string close = nearest(key, names);
    refuse(place, close.empty() ? std::string("expected a parameter of this architecture, got an unknown one")
                                : fmt::format("expected a parameter of this architecture; the nearest is {}", close));
  }

  /// The member, or for operations and families that a file may add, any sister of it.
  const Json* find(const Json& like, const std::string& key, const std::string& place) const {
    if (!like.is_object()) return nullptr;
    if (const auto hit = like.find(key); hit != like.end()) return &*hit;
    if (key == "correlation" || key == "longest_s") return &like["half_width"];
    if (place.ends_with("/measured_boards")) return &like.front();
    if (const auto protocols = place.rfind("/protocols"); protocols != std::string::npos) {
      return of_protocol(like, key,
                         std::count(place.begin() + static_cast<std::ptrdiff_t>(protocols), place.end(), '/'));
    }
    const bool open = place.ends_with("/single_op") || place.ends_with("/intervals");
    if (open) {
      for (const auto& [name, value] : like.items()) {
        if (value.is_object()) return &value;
      }
    }
    return nullptr;
  }

  /// Stacks and calls that ships nothing of take the numbers that any call has; `depth` 1 is a stack, 2 a call.
  const Json* of_protocol(const Json& like, const std::string& key, std::ptrdiff_t depth) const {
    constexpr std::ptrdiff_t kStack = 1, kCall = 2;
    if (depth <= kCall) {
      for (const auto& [name, value] : like.items()) {
        if (value.is_object() && (depth == kStack || name != "measured_over_predicted")) return &value;
      }
      return nullptr;
    }
    const auto protocols = shipped_.find("protocols");
    if (protocols == shipped_.end()) return nullptr;
    for (const auto& [stack, calls] : protocols->items()) {
      if (!calls.is_object()) continue;
      for (const auto& [call, numbers] : calls.items()) {
        if (!numbers.is_object()) continue;
        if (const auto hit = numbers.find(key); hit != numbers.end()) return &*hit;
      }
    }
    return nullptr;
  }

  void ratios(const Json& value, const std::string& place) const {
    const auto low = value.is_object() ? value.find("low") : value.end();
    const auto high = value.is_object() ? value.find("high") : value.end();
    const bool sound = value.is_object() && low != value.end() && high != value.end() && low->is_number() &&
                       high->is_number() && low->get<double>() > 0 && low->get<double>() <= high->get<double>() &&
                       high->get<double>() < kFarthest;
    if (!sound) refuse(place, "expected {\"low\": L, \"high\": H} with 0 < L <= H, got " + describe(value));
  }

  void value_like(const Json& value, const Json& known, const std::string& place) const {
    const Json& own = leaf(value);
    const Json& ships = leaf(known);
    if (ships.is_object()) {
      expect_object(own, place);
      return object(own, ships, place);
    }
    if (ships.is_number()) {
      if (!own.is_number()) refuse(place, "expected a number, got " + describe(own));
      return number(own.get<double>(), ships.get<double>(), place);
    }
    if (ships.is_array()) return list(own, ships, place);
    if (ships.is_string() && !own.is_string()) refuse(place, "expected a word, got " + describe(own));
  }

  void list(const Json& own, const Json& ships, const std::string& place) const {
    if (!own.is_array()) refuse(place, "expected a list, got " + describe(own));
    const bool splits = place.ends_with("/splits");
    if (!splits && own.size() != ships.size()) {
      refuse(place, fmt::format("expected {} values, got {}", ships.size(), own.size()));
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Json& entry = own[i];
      const std::string here = fmt::format("{}/{}", place, i);
      if (!splits && !ships[i].is_number()) continue;
      if (!entry.is_number()) refuse(here, "expected a number, got " + describe(entry));
      const double x = entry.get<double>();
      if (splits && (x < 1 || x != std::floor(x) || x > 1024)) {
        refuse(here, fmt::format("expected a whole number from 1 to 1024, got {}", x));
      }
      if (std::abs(x) > 1e9) refuse(here, fmt::format("expected a number up to 1e9, got {}", x));
    }
  }

  void number(double own, double ships, const std::string& place) const {
    const auto range = [&](double low, double high) {
      if (own < low || own > high) refuse(place, fmt::format("expected {:g} to {:g}, got {:g}", low, high, own));
    };
    if (place.ends_with("_share") &&
        (place.find("clock_share") != std::string::npos || place.find("start_share") != std::string::npos)) {
      return range(0.05, 1);
    }
    if (place.ends_with("/correlation")) return range(0, 1);
    if (place.ends_with("/half_width")) return range(0, 10);
    if (place.ends_with("/longest_s")) return range(0, 1e9);
    if (place.ends_with("bias")) return range(-10, 10);
    if (ships > 0 && own == 0 && may_vanish(place)) return;
    if (ships > 0) return range(ships / kFarthest, ships * kFarthest);
    if (ships == 0) return range(0, 1e9);
    range(ships * kFarthest, 0);
  }

  /// Effects that a fit may find absent; the others divide or multiply a time.
  static bool may_vanish(std::string_view place) {
    constexpr std::string_view kEffects[] = {
        "evening", "prologue_filled_share", "sector_aligned",    "line_aligned", "slowdown", "drift", "tlb",
        "spill",   "spill_across",          "row_sector_cycles", "reread"};
    const std::string_view name = place.substr(place.rfind('/') + 1);
    return std::find(std::begin(kEffects), std::end(kEffects), name) != std::end(kEffects);
  }

  const Json& shipped_;
  const std::string& name_;
};

}  // namespace

void check_calibration_file(const Json& file, const Json& shipped, Architecture architecture, const std::string& name) {
  const auto own = file.find("architecture");
  if (own != file.end() && *own != to_string(architecture)) {
    throw ConfigError(name, "/architecture",
                      fmt::format("expected \"{}\", the GPU's own, got {}", to_string(architecture), describe(*own)));
  }
  Json sections = Json::object();
  for (const auto& [key, value] : file.items()) {
    const bool header = key == "schema" || key == "id" || key == "date" || key == "architecture" || key == "base" ||
                        key == "fit" || is_remark(key);
    if (!header) sections[key] = value;
  }
  Check(shipped, name).part(sections, "");
}

}  // namespace voltaic::arch::detail
