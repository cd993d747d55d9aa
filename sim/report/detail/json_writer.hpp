// SPDX-License-Identifier: MIT
// Writes JSON text in the order it is told, so that documents of any size need no tree in memory and keep their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic::report {

/// Numbers print as the shortest text that reads back the same; whole ones below 2^53 as integers. NaN and infinity
/// throw InternalError. Text that is no valid UTF-8 is repaired with U+FFFD.
class JsonWriter {
 public:
  /// `indent` 0 writes one line.
  explicit JsonWriter(int indent = 2) : indent_(indent) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(double number);
  void value(std::int64_t number);
  void value(bool truth);
  void value(std::string_view text);
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(const char* text) { value(std::string_view(text)); }
  void null();

  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }
  void member(std::string_view name, const std::optional<double>& v) {
    key(name);
    v ? value(*v) : null();
  }
  void member_null(std::string_view name) {
    key(name);
    null();
  }
  /// Text that reads as a JSON number, true or false becomes one; all else a string.
  void plain(std::string_view text);

  const std::string& text() const { return out_; }
  std::string take();

 private:
  void open(char c);
  void close(char c);
  void before_value();
  void new_line();
  void quoted(std::string_view text);

  std::string out_;
  std::vector<bool> filled_;  ///< Per open bracket: something stands in it.
  int indent_;
  bool after_key_ = false;
};

}  // namespace voltaic::report
