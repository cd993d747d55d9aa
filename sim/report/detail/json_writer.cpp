// SPDX-License-Identifier: MIT
#include "sim/report/detail/json_writer.hpp"

#include <charconv>
#include <cmath>

#include "arch/units/error.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

/// Bytes of the valid UTF-8 sequence that `text` starts with, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned char c = byte(0);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return follows(1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    const bool overlong = c == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = c == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    const bool overlong = c == 0xF0 && byte(1) < 0x90;
    const bool beyond = c == 0xF4 && byte(1) > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

/// Bytes that `text` starts with and that need no escape: printable ASCII but for quote and backslash.
std::size_t plain_run(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && text[n] >= 0x20 && text[n] < 0x7F && text[n] != '"' && text[n] != '\\') ++n;
  return n;
}

/// The JSON grammar of numbers, which is narrower than that of C.
bool json_number(std::string_view t) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t from = i;
    while (i < t.size() && t[i] >= '0' && t[i] <= '9') ++i;
    return i - from;
  };
  if (i < t.size() && t[i] == '-') ++i;
  const std::size_t first = i;
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && t[first] == '0')) return false;
  if (i < t.size() && t[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < t.size() && (t[i] == 'e' || t[i] == 'E')) {
    ++i;
    if (i < t.size() && (t[i] == '-' || t[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == t.size();
}

}  // namespace

std::string shortest(double value) {
  ensure(std::isfinite(value), "a figure of a report must be finite");
  constexpr double kWhole = 9007199254740992.0;  // 2^53
  char buffer[32];
  const bool whole = std::fabs(value) < kWhole && value == std::trunc(value);
  const auto end = whole ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::int64_t>(value))
                         : std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(filled_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (filled_.empty()) return;
  if (filled_.back()) out_ += ',';
  filled_.back() = true;
  new_line();
}

void JsonWriter::open(char c) {
  before_value();
  out_ += c;
  filled_.push_back(false);
}

void JsonWriter::close(char c) {
  ensure(!filled_.empty(), "a JSON bracket was closed twice");
  const bool filled = filled_.back();
  filled_.pop_back();
  if (filled) new_line();
  out_ += c;
}

void JsonWriter::key(std::string_view name) {
  before_value();
  quoted(name);
  out_ += indent_ == 0 ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::value(double number) {
  const std::string text = shortest(number);  // throws before anything is written
  before_value();
  out_ += text;
}

void JsonWriter::value(std::int64_t number) {
  before_value();
  out_ += std::to_string(number);
}

void JsonWriter::value(bool truth) {
  before_value();
  out_ += truth ? "true" : "false";
}

void JsonWriter::value(std::string_view text) {
  before_value();
  quoted(text);
}

void JsonWriter::null() {
  before_value();
  out_ += "null";
}

void JsonWriter::plain(std::string_view text) {
  if (text == "true" || text == "false" || json_number(text)) {
    before_value();
    out_ += text;
  } else {
    value(text);
  }
}

void JsonWriter::quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out_ += '"';
  while (!text.empty()) {
    const std::size_t run = plain_run(text);
    out_.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    const char c = text[0];
    const auto code = static_cast<unsigned char>(c);
    std::size_t used = 1;
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (code < 0x20 || code == 0x7F) {
      out_ += "\\u00";
      out_ += kHex[code >> 4U];
      out_ += kHex[code & 15U];
    } else if (const std::size_t n = utf8_length(text); n > 0) {
      out_.append(text.substr(0, n));
      used = n;
    } else {
      out_ += "\xEF\xBF\xBD";
    }
    text.remove_prefix(used);
  }
  out_ += '"';
}

std::string JsonWriter::take() {
  ensure(filled_.empty(), "a JSON document was left open");
  return std::move(out_);
}

}  // namespace voltaic::report
