// SPDX-License-Identifier: MIT
// Description to and from JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "arch/detail/chips.hpp"
#include "arch/detail/description.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

using Json = nlohmann::ordered_json;

/// "[KEY] place", or a word that says how the number came about.
bool is_source(std::string_view text) {
  if (text.starts_with('[') && text.find(']') != std::string_view::npos) return true;
  return text.starts_with("measured:") || text.starts_with("assumed:") || text.starts_with("derived:") ||
         text.starts_with("fitted:");
}

class Decoder {
 public:
  Decoder(const std::string& file, bool changes, Description& description)
      : file_(file), changes_(changes), description_(description) {}

  void run(const Json& root) {
    if (!root.is_object()) fail("", "expected an object, got " + describe(root));
    resize_mig(root);
    fields_ = fields_of(description_.spec);
    description_.sources.resize(fields_.size());
    for (std::size_t i = 0; i < fields_.size(); ++i) index_.emplace(fields_[i].json_path(), i);
    words_ = words_of(description_.spec);
    walk(root, "", "", "");
  }

  void require_all(const Json& root) const {
    for (const char* word : {"name", "product", "chip", "architecture", "compute_capability"}) {
      if (!root.contains(word)) fail(fmt::format("/{}", word), "missing");
    }
    if (description_.spec.dram.technology.empty()) fail("/dram/technology", "missing");
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].required || !description_.sources[i].empty()) continue;
      std::string pointer = '/' + fields_[i].json_path();
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      fail(pointer, "missing");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& problem) const {
    throw ConfigError(file_, pointer.empty() ? "/" : pointer, problem);
  }

  void resize_mig(const Json& root) {
    const auto mig = root.find("mig");
    if (mig == root.end()) return;
    if (!mig->is_array()) fail("/mig", "expected a list of profiles, got " + describe(*mig));
    if (mig->size() > 64) fail("/mig", fmt::format("expected at most 64 profiles, got {}", mig->size()));
    const std::size_t kept =
        description_.sources.size() - std::min(description_.sources.size(), 4 * description_.spec.mig.size());
    description_.sources.resize(kept);
    description_.spec.mig.assign(mig->size(), MigProfile{});
  }

  void walk(const Json& object, const std::string& pointer, const std::string& path, const std::string& inherited) {
    std::string source = inherited;
    if (const auto own = object.find("source"); own != object.end()) source = read_source(*own, pointer);
    for (const auto& [key, value] : object.items()) {
      if (is_remark(key, path)) continue;
      const std::string here = pointer + '/' + pointer_token(key);
      const std::string at = path.empty() ? key : fmt::format("{}.{}", path, key);
      if (const auto field = index_.find(at); field != index_.end()) {
        read_number(field->second, value, here, source);
      } else if (read_word(at, value, here)) {
        continue;
      } else if (at == "mig") {
        walk_profiles(value, here);
      } else if (value.is_object() && is_section(at)) {
        walk(value, here, at, source);
      } else {
        unknown(at, here);
      }
    }
  }

  void walk_profiles(const Json& profiles, const std::string& pointer) {
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      const std::string here = fmt::format("{}/{}", pointer, i);
      const Json& profile = profiles[i];
      if (!profile.is_object()) fail(here, "expected a profile, got " + describe(profile));
      const auto name = profile.find("name");
      if (name == profile.end() || !name->is_string()) fail(here + "/name", "expected the profile's name");
      description_.spec.mig[i].name = one_line(name->get_ref<const std::string&>(), 40);
      walk(profile, here, fmt::format("mig.{}", i), "");
    }
  }

  static bool is_remark(const std::string& key, const std::string& path) {
    if (key == "source" || key == "note") return true;
    if (path.empty()) return key == "schema" || key == "base" || key == "peak";
    return key == "name" && path.starts_with("mig.");
  }

  bool is_section(const std::string& at) const {
    const std::string prefix = at + '.';
    return std::any_of(fields_.begin(), fields_.end(), [&](const Field& f) { return f.path.starts_with(prefix); });
  }

  std::string read_source(const Json& value, const std::string& pointer) const {
    if (!value.is_string()) fail(pointer + "/source", "expected a source, got " + describe(value));
    const auto& text = value.get_ref<const std::string&>();
    if (!is_source(text)) {
      fail(pointer + "/source",
           "expected \"[KEY] place\", \"measured: ...\", \"derived: ...\", \"fitted: ...\" or \"assumed: ...\", got " +
               describe(value));
    }
    return one_line(text, 300);
  }

  void read_number(std::size_t index, const Json& node, const std::string& pointer, const std::string& inherited) {
    const Json* number = &node;
    std::string source = inherited;
    if (node.is_object()) {
      const auto value = node.find("value");
      if (value == node.end()) fail(pointer, "expected {\"value\", \"source\"}, got an object without \"value\"");
      number = &*value;
      if (const auto own = node.find("source"); own != node.end()) source = read_source(*own, pointer);
      for (const auto& [key, unused] : node.items()) {
        if (key != "value" && key != "source" && key != "note") fail(pointer + '/' + pointer_token(key), "unknown key");
      }
    }
    if (!number->is_number()) fail(pointer, "expected a number, got " + describe(*number));
    if (source.empty() && !changes_)
      fail(pointer, fmt::format("expected {{\"value\", \"source\"}}, got {} without a source", describe(*number)));
    const auto v = number->get<double>();
    const std::string problem = rule_problem(fields_[index].rule, v);
    if (!problem.empty()) fail(pointer, problem);
    fields_[index].set(v);
    description_.sources[index] = source.empty() ? "given: " + file_ : source;
  }

  bool read_word(const std::string& at, const Json& value, const std::string& pointer) {
    const auto word = std::find_if(words_.begin(), words_.end(), [&](const Word& w) { return w.path == at; });
    if (word == words_.end() && at != "architecture") return false;
    if (!value.is_string()) fail(pointer, "expected a word, got " + describe(value));
    const std::string text = one_line(value.get_ref<const std::string&>(), 80);
    if (text.empty()) fail(pointer, "expected a word, got an empty one");
    if (word != words_.end()) {
      *word->value = text;
      return true;
    }
    const auto architecture = parse_architecture(text);
    if (!architecture) fail(pointer, fmt::format("expected volta, turing, ampere or hopper, got \"{}\"", text));
    description_.spec.architecture = *architecture;
    return true;
  }

  [[noreturn]] void unknown(const std::string& at, const std::string& pointer) const {
    std::vector<std::string> known;
    for (const auto& f : fields_) known.push_back(f.json_path());
    for (const auto& w : words_) known.emplace_back(w.path);
    std::string close = nearest(at, known);
    std::replace(close.begin(), close.end(), '.', '/');
    fail(pointer, close.empty() ? "unknown key" : fmt::format("unknown key; the nearest is /{}", close));
  }

  const std::string& file_;
  bool changes_;
  Description& description_;
  std::vector<Field> fields_;
  std::vector<Word> words_;
  std::unordered_map<std::string, std::size_t> index_;
};

/// A JSON string; nearly all are plain and need no escapes.
std::string json_string(std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  if (plain) return std::string(1, '"').append(text) + '"';
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string number_text(double v) {
  return v == std::nearbyint(v) && std::fabs(v) < 0x1p53 ? fmt::format("{:.0f}", v) : fmt::format("{}", v);
}

std::string leaf_text(double v, std::string_view source) {
  return fmt::format("{{\"value\": {}, \"source\": {}}}", number_text(v), json_string(source));
}

/// Writes members in order, opening and closing objects as the paths ask; written by hand because a study resolves
/// thousands of GPUs.
class Writer {
 public:
  void member(std::string_view path, std::string_view text) {
    std::size_t shared = 0;
    while (shared < open_.size() && path.starts_with(open_[shared])) ++shared;
    close_to(shared);
    const std::size_t start = open_.empty() ? 0 : open_.back().size();
    std::size_t from = start;
    for (std::size_t dot = path.find('.', from); dot != std::string_view::npos; dot = path.find('.', from)) {
      begin(path.substr(from, dot - from));
      out_ += '{';
      first_ = true;
      open_.emplace_back(path.substr(0, dot + 1));
      from = dot + 1;
    }
    begin(path.substr(from));
    out_ += text;
  }
  std::string finish() {
    close_to(0);
    return out_ + "\n}\n";
  }

 private:
  void begin(std::string_view name) {
    out_ += first_ ? "\n" : ",\n";
    out_.append(2 * (open_.size() + 1), ' ');
    out_ += '"';
    out_ += name;
    out_ += "\": ";
    first_ = false;
  }
  void close_to(std::size_t depth) {
    while (open_.size() > depth) {
      out_ += '\n';
      out_.append(2 * open_.size(), ' ');
      out_ += '}';
      open_.pop_back();
      first_ = false;
    }
  }
  std::string out_ = "{";
  std::vector<std::string> open_;  ///< Prefixes with their dot: "sm.", "sm.tensor.".
  bool first_ = true;
};

/// The list of MIG profiles, whose fields are the last of `fields`.
std::string mig_text(const GpuSpec& spec, std::span<const Field> fields, std::span<const std::string> sources) {
  std::string out = "[";
  for (std::size_t i = 0; i < spec.mig.size(); ++i) {
    out += fmt::format("{}\n    {{\"name\": {}", i == 0 ? "" : ",", json_string(spec.mig[i].name));
    for (std::size_t k = 4 * i; k < 4 * i + 4; ++k) {
      const std::string path = fields[k].json_path();
      out +=
          fmt::format(",\n     \"{}\": {}", path.substr(path.rfind('.') + 1), leaf_text(fields[k].get(), sources[k]));
    }
    out += '}';
  }
  return out + "\n  ]";
}

}  // namespace

void decode_gpu(const Json& root, const std::string& file, bool changes, Description& description) {
  Decoder decoder(file, changes, description);
  decoder.run(root);
  if (changes) return;
  take_from_chip(description);
  decoder.require_all(root);
}

void decode_chip(const Json& root, const std::string& file, Description& description) {
  Decoder(file, false, description).run(root);
}

std::string encode_gpu(Description& d) {
  Writer out;
  out.member("schema", "\"voltaic.gpu/1\"");
  out.member("name", json_string(d.spec.name));
  out.member("product", json_string(d.spec.product));
  out.member("chip", json_string(d.spec.chip));
  out.member("architecture", json_string(to_string(d.spec.architecture)));
  out.member("compute_capability", json_string(d.spec.compute_capability));
  const auto fields = fields_of(d.spec);
  const std::size_t plain = fields.size() - 4 * d.spec.mig.size();
  for (std::size_t i = 0; i < plain; ++i) {
    if (fields[i].path == "dram.capacity") out.member("dram.technology", json_string(d.spec.dram.technology));
    if (!d.sources[i].empty()) out.member(fields[i].json_path(), leaf_text(fields[i].get(), d.sources[i]));
  }
  out.member("peak.fp32_flop_per_s",
             leaf_text(d.spec.cuda_core_peak(DataType::fp32).value, "derived: lanes x clock x 2"));
  if (!d.spec.mig.empty()) {
    out.member("mig", mig_text(d.spec, std::span(fields).subspan(plain), std::span(d.sources).subspan(plain)));
  }
  return out.finish();
}

}  // namespace voltaic::arch::detail
