// SPDX-License-Identifier: MIT
#include "workloads/import/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "arch/units/error.hpp"

namespace voltaic::workloads {
namespace {

using Json = nlohmann::json;
constexpr int kDeepest = 64;

std::string shown(const Json& value) {
  return one_line(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? std::min(byte - 1, text.size()) : 0);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  return fmt::format("line {}, column {}", line, before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

/// Refuses duplicate keys and deep nesting while nlohmann parses.
class Guard {
 public:
  explicit Guard(const std::string& file) : file_(file) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest)
      throw ConfigError(file_, "", fmt::format("expected nesting up to {} levels, got more", kDeepest));
    if (event == Json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        throw ConfigError(file_, "", fmt::format("expected each key once, got '{}' twice", one_line(key, 60)));
      }
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_;
};

Json parse(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw ConfigError(file, "", "expected JSON, got an empty file");
  try {
    Guard guard(file);
    return Json::parse(text.begin(), text.end(), [&guard](int depth, Json::parse_event_t event, Json& parsed) {
      return guard(depth, event, parsed);
    });
  } catch (const Json::parse_error& e) {
    throw ConfigError(file, line_and_column(text, e.byte), "expected JSON, got text that does not parse");
  } catch (const Json::out_of_range&) {
    throw ConfigError(file, "", "expected numbers within double range, got a larger one");
  }
}

}  // namespace

struct JsonFields::Tree {
  Json root;
};

JsonFields::JsonFields(std::string_view text, std::string file)
    : tree_(std::make_unique<Tree>()), file_(std::move(file)) {
  tree_->root = parse(text, file_);
  if (!tree_->root.is_object())
    throw ConfigError(file_, "", fmt::format("expected a JSON object, got {}", shown(tree_->root)));
}

JsonFields::~JsonFields() = default;

void JsonFields::refuse(const char* key, const std::string& problem) const {
  throw ConfigError(file_, std::string("/") + key, problem);
}

bool JsonFields::has(const char* key) const {
  const auto it = tree_->root.find(key);
  return it != tree_->root.end() && !it->is_null();
}

std::int64_t JsonFields::integer(const char* key, std::int64_t highest, std::int64_t lowest) const {
  const std::string wanted = fmt::format("expected an integer from {} to {}", lowest, highest);
  if (!has(key)) refuse(key, wanted + ", got nothing");
  const Json& value = tree_->root[key];
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(highest)
                                               : value.is_number_integer() && value.get<std::int64_t>() <= highest;
  if (!fits || value.get<std::int64_t>() < lowest) refuse(key, wanted + ", got " + shown(value));
  return value.get<std::int64_t>();
}

std::int64_t JsonFields::integer_or(const char* key, std::int64_t fallback, std::int64_t highest,
                                    std::int64_t lowest) const {
  return has(key) ? integer(key, highest, lowest) : fallback;
}

double JsonFields::share_or(const char* key, double fallback) const {
  if (!has(key)) return fallback;
  const Json& value = tree_->root[key];
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() >= 1) {
    refuse(key, "expected a number in [0, 1), got " + shown(value));
  }
  return value.get<double>();
}

bool JsonFields::flag_or(const char* key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = tree_->root[key];
  if (!value.is_boolean()) refuse(key, "expected true or false, got " + shown(value));
  return value.get<bool>();
}

std::string JsonFields::word(const char* key) const {
  if (!has(key)) refuse(key, "expected a string, got nothing");
  const Json& value = tree_->root[key];
  if (!value.is_string()) refuse(key, "expected a string, got " + shown(value));
  return value.get<std::string>();
}

std::string JsonFields::word_or(const char* key, std::string_view fallback) const {
  return has(key) ? word(key) : std::string(fallback);
}

bool JsonFields::lists(const char* key, std::string_view word) const {
  if (!has(key)) return false;
  const Json& value = tree_->root[key];
  if (!value.is_array()) refuse(key, "expected an array, got " + shown(value));
  return std::any_of(value.begin(), value.end(), [word](const Json& entry) {
    return entry.is_string() && entry.get_ref<const std::string&>() == word;
  });
}

std::int64_t JsonFields::size_of(const char* key) const {
  if (!has(key)) return -1;
  const Json& value = tree_->root[key];
  if (!value.is_structured()) refuse(key, "expected an object or array, got " + shown(value));
  return static_cast<std::int64_t>(value.size());
}

std::int64_t JsonFields::edge_or(const char* key, std::int64_t fallback, std::int64_t highest) const {
  if (!has(key) || !tree_->root[key].is_array()) return integer_or(key, fallback, highest);
  const Json& value = tree_->root[key];
  const auto edge = [&](const Json& n) { return n.is_number_unsigned() ? n.get<std::uint64_t>() : 0; };
  const bool square = value.size() == 2 && edge(value[0]) == edge(value[1]) && edge(value[0]) > 0;
  if (!square || edge(value[0]) > static_cast<std::uint64_t>(highest)) {
    refuse(key, fmt::format("expected [n, n] with n from 1 to {}, got {}", highest, shown(value)));
  }
  return static_cast<std::int64_t>(edge(value[0]));
}

}  // namespace voltaic::workloads
