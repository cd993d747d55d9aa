// SPDX-License-Identifier: MIT
// JSON text from strangers: parsed with limits, refused on one line, and every place in it nameable as a JSON pointer.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace voltaic::graph::detail {

using Json = nlohmann::json;

/// Where in the document the reader is. A chain of stack objects, so that a place costs nothing until it is printed.
class Place {
 public:
  explicit Place(const std::string& file) : file_(&file) {}
  Place operator[](std::string_view key) const { return {this, key, 0}; }
  Place operator[](const char* key) const { return {this, key, 0}; }
  Place operator[](std::size_t index) const { return {this, {}, index}; }

  std::string pointer() const;  ///< "/nodes/3/inputs/1"
  const std::string& file() const;
  /// Throws ConfigError `FILE: POINTER: problem`.
  [[noreturn]] void refuse(const std::string& problem) const;
  /// The same with the usual words; `got` is shown shortly.
  [[noreturn]] void refuse(const std::string& expected, const Json& got) const;

 private:
  Place(const Place* parent, std::string_view key, std::size_t index) : parent_(parent), key_(key), index_(index) {}

  const std::string* file_ = nullptr;
  const Place* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// `text` on one line: valid UTF-8, no control characters, cut to `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 120);
/// `'text'`, printable.
std::string in_quotes(std::string_view text);

/// Deepest nesting of arrays and objects that is accepted.
inline constexpr std::size_t kMaxDepth = 100;

/// Parses the whole text. Refuses what is not JSON (with line and column), duplicate keys and nesting beyond kMaxDepth.
/// A UTF-8 byte order mark is skipped.
Json parse_document(std::string_view text, const std::string& file);

/// The member `key` of an object, or null when absent.
const Json* member(const Json& object, const char* key);
/// Refuses members of `object` outside `known`, naming the nearest.
void require_known_keys(const Json& object, const Place& place, std::initializer_list<const char*> known);
/// The string at `place`, not empty.
const std::string& read_name(const Json& value, const Place& place, const char* meaning);
/// The member `key`, which must be there.
const Json& required(const Json& object, const char* key, const Place& place);
void require_array(const Json& value, const Place& place, const char* meaning);
void require_object(const Json& value, const Place& place, const char* meaning);

}  // namespace voltaic::graph::detail
