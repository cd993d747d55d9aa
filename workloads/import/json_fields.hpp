// SPDX-License-Identifier: MIT
// A strict look at a flat JSON object: every field is checked, every refusal names its JSON pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic::workloads {

class JsonFields {
 public:
  /// Parses `text`. Refuses what is no JSON, duplicate keys, nesting beyond 64 levels and anything but an object.
  JsonFields(std::string_view text, std::string file);
  ~JsonFields();
  JsonFields(const JsonFields&) = delete;
  JsonFields& operator=(const JsonFields&) = delete;

  const std::string& file() const { return file_; }
  /// Present and not null.
  bool has(const char* key) const;
  /// Integer from 1 (or `lowest`) to `highest`; a missing one is refused.
  std::int64_t integer(const char* key, std::int64_t highest, std::int64_t lowest = 1) const;
  std::int64_t integer_or(const char* key, std::int64_t fallback, std::int64_t highest, std::int64_t lowest = 1) const;
  /// Share in [0, 1).
  double share_or(const char* key, double fallback) const;
  bool flag_or(const char* key, bool fallback) const;
  std::string word(const char* key) const;
  std::string word_or(const char* key, std::string_view fallback) const;
  /// A list that holds this string; an absent list holds none.
  bool lists(const char* key, std::string_view word) const;
  /// Entries of an object or array; -1 when absent.
  std::int64_t size_of(const char* key) const;
  /// Length of the edge: a number, or [n, n].
  std::int64_t edge_or(const char* key, std::int64_t fallback, std::int64_t highest) const;

  /// Throws ConfigError `FILE: /KEY: PROBLEM`.
  [[noreturn]] void refuse(const char* key, const std::string& problem) const;

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
  std::string file_;
};

/// What an input is, by its first bytes and its top-level keys; reads no further than it must.
struct ContentKind {
  enum class Kind : std::uint8_t { graph, huggingface, foreign, unknown };
  Kind kind = Kind::unknown;
  std::string name;  ///< Foreign: what it is; unknown: why it is nothing we know.
};
ContentKind detect_kind(std::string_view text);

}  // namespace voltaic::workloads
