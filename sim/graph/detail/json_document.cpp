// SPDX-License-Identifier: MIT
#include "sim/graph/detail/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "arch/units/error.hpp"

namespace voltaic::graph::detail {

namespace {

/// Bytes of the well-formed UTF-8 sequence that begins at `at`, or 0. Control characters above ASCII count as
/// malformed.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  const unsigned second = byte(at + 1);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  const bool control = first == 0xC2 && second < 0xA0;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool too_high = first == 0xF4 && second > 0x8F;
  return control || overlong || surrogate || too_high ? 0 : length;
}

std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

/// Builds a Json value from parser events, so that depth and duplicate keys are seen before they do harm.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& file) : file_(file) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(std::int64_t value) override { return put(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) override { return put(value) != nullptr; }
  bool number_float(double value, const std::string& /*text*/) override { return put(value) != nullptr; }
  bool string(std::string& value) override { return put(std::move(value)) != nullptr; }
  bool binary(Json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    Frame& frame = frames_.back();
    frame.key = std::move(name);
    if (frame.value->contains(frame.key)) {
      throw ConfigError(file_, here(), "expected each key once, got it twice");
    }
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    std::string_view what = error.what();
    for (const std::string_view skip : {std::string_view("] "), std::string_view("parse error at ")}) {
      const auto at = what.find(skip);
      if (at != std::string_view::npos && at < 48) what.remove_prefix(at + skip.size());
    }
    throw ConfigError(file_, "", printable(what, 240));
  }

 private:
  struct Frame {
    Json* value;
    std::string key;
  };

  std::string here() const {
    std::string pointer;
    for (const Frame& frame : frames_) {
      pointer += '/';
      pointer += frame.value->is_object() ? escaped(frame.key) : std::to_string(frame.value->size() - 1);
    }
    return printable(pointer, 240);
  }

  Json* put(Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Frame& frame = frames_.back();
    if (frame.value->is_array()) return &frame.value->emplace_back(std::move(value));
    return &(*frame.value->get_ptr<Json::object_t*>())[frame.key].operator=(std::move(value));
  }

  bool open(Json empty) {
    Json* value = put(std::move(empty));
    if (frames_.size() >= kMaxDepth) {
      throw ConfigError(file_, here(), fmt::format("expected at most {} levels of nesting, got more", kMaxDepth));
    }
    frames_.push_back({value, {}});
    return true;
  }

  bool close() {
    frames_.pop_back();
    return true;
  }

  const std::string& file_;
  Json root_;
  std::vector<Frame> frames_;
};

std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_object()) return "an object";
  return value.dump();
}

}  // namespace

std::string Place::pointer() const {
  if (parent_ == nullptr) return "";
  return parent_->pointer() + "/" + (key_.data() != nullptr ? escaped(key_) : std::to_string(index_));
}

const std::string& Place::file() const {
  return parent_ == nullptr ? *file_ : parent_->file();
}

void Place::refuse(const std::string& problem) const {
  throw ConfigError(file(), printable(pointer(), 240), problem);
}

void Place::refuse(const std::string& expected, const Json& got) const {
  refuse(fmt::format("expected {}, got {}", expected, shown(got)));
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string valid;
  for (std::size_t i = 0; i < text.size() && valid.size() <= limit;) {
    const std::size_t length = sequence_length(text, i);
    if (length == 0) {
      valid += '?';
      ++i;
    } else {
      valid += text.substr(i, length);
      i += length;
    }
  }
  return one_line(valid, limit);
}

std::string in_quotes(std::string_view text) {
  return fmt::format("'{}'", printable(text));
}

Json parse_document(std::string_view text, const std::string& file) {
  Builder builder(file);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void require_known_keys(const Json& object, const Place& place, std::initializer_list<const char*> known) {
  const auto& members = *object.get_ptr<const Json::object_t*>();
  for (const auto& [key, value] : members) {
    const auto same = [&key = key](const char* name) { return key == name; };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    const std::string near = nearest(key, {known.begin(), known.end()});
    place[std::string_view(key)].refuse(
        near.empty() ? fmt::format("expected a known key, got {}", in_quotes(key))
                     : fmt::format("expected a known key, got {}; the nearest is '{}'", in_quotes(key), near));
  }
}

const std::string& read_name(const Json& value, const Place& place, const char* meaning) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr || text->empty()) place.refuse(meaning, value);
  constexpr std::size_t kLongest = 1024;
  const bool printable = std::none_of(text->begin(), text->end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!printable) place.refuse(fmt::format("{} without control characters", meaning), value);
  if (text->size() > kLongest) place.refuse(fmt::format("{} of at most {} bytes", meaning, kLongest), value);
  return *text;
}

const Json& required(const Json& object, const char* key, const Place& place) {
  const Json* found = member(object, key);
  if (found == nullptr) place.refuse(fmt::format("expected key '{}', got none", key));
  return *found;
}

void require_array(const Json& value, const Place& place, const char* meaning) {
  if (!value.is_array()) place.refuse(meaning, value);
}

void require_object(const Json& value, const Place& place, const char* meaning) {
  if (!value.is_object()) place.refuse(meaning, value);
}

}  // namespace voltaic::graph::detail
