// SPDX-License-Identifier: MIT
#include "arch/detail/strict_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::uintmax_t kMaxFileBytes = 64U << 20U;

/// "line 3, column 7: expected JSON, got 'NaN'" out of the parser's own words.
std::string parse_problem(const std::string& what) {
  std::string place;
  if (const auto at = what.find("line "); at != std::string::npos) {
    place = what.substr(at, what.find(':', at) - at) + ": ";
  }
  if (what.find("out_of_range.406") != std::string::npos)
    return "expected finite numbers, got one beyond the range of a double";
  if (const auto last = what.find("last read: "); last != std::string::npos) {
    return place + "expected JSON, got " + one_line(what.substr(last + 11), 60);
  }
  return place + "expected JSON, got something else";
}

/// Looks at every event once and remembers the first thing that is not allowed.
class Checker : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(const std::string& file) : file_(file) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t v, const string_t& text) override {
    if (!std::isfinite(v)) throw ConfigError(file_, "", "expected finite numbers, got " + one_line(text, 40));
    return true;
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    deeper();
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) {
      throw ConfigError(file_, "",
                        fmt::format("expected unique keys, got \"{}\" twice in one object", one_line(name, 60)));
    }
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    deeper();
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    throw ConfigError(file_, "", parse_problem(e.what()));
  }

 private:
  void deeper() {
    if (++depth_ > kMaxDepth) {
      throw ConfigError(file_, "", fmt::format("expected at most {} levels of nesting, got more", kMaxDepth));
    }
  }
  const std::string& file_;
  std::size_t depth_ = 0;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Json parse_trusted(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw ConfigError(file, "", parse_problem(e.what()));
  }
}

Json parse_strict(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw ConfigError(file, "", "expected JSON, got an empty file");
  Checker checker(file);
  Json::sax_parse(text, &checker);
  return parse_trusted(text, file);
}

std::string read_text_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const std::string name = one_line(path);
  if (!fs::exists(status)) throw ConfigError(name, "", "expected a file, found none");
  if (fs::is_directory(status)) throw ConfigError(name, "", "expected a file, got a directory");
  if (fs::is_regular_file(status) && fs::file_size(path, error) > kMaxFileBytes) {
    throw ConfigError(name, "", "expected at most 64 MB of JSON, got a larger file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(name, "", "expected a readable file, cannot open it");
  std::string text;
  std::vector<char> block(1U << 16U);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes) throw ConfigError(name, "", "expected at most 64 MB of JSON, got more");
  }
  return text;
}

std::string describe(const Json& value) {
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_number() || value.is_boolean()) return value.dump();
  if (value.is_string()) return fmt::format("the text \"{}\"", one_line(value.get_ref<const std::string&>(), 40));
  if (value.is_null()) return "null";
  return value.is_array() ? "a list" : "an object";
}

std::string pointer_token(std::string_view key) {
  std::string out;
  for (const char c : one_line(key, 60)) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

}  // namespace voltaic::arch::detail
