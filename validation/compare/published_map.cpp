// SPDX-License-Identifier: MIT
#include "validation/compare/published_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "arch/units/embedded.hpp"
#include "arch/units/error.hpp"

namespace voltaic {

std::span<const EmbeddedFile> embedded_published();

namespace validation {
namespace {

using Json = nlohmann::json;

/// One object of a mapping, with the place that messages name.
class Reader {
 public:
  Reader(const Json& json, std::string file, std::string place)
      : json_(json), file_(std::move(file)), place_(std::move(place)) {
    if (!json_.is_object()) refuse("", "an object");
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
    throw ConfigError(file_, place_ + (key.empty() ? "" : "/" + key), "expected " + expected);
  }
  void only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) refuse(key, "no such key");
    }
  }
  const Json* find(const std::string& key) const {
    const auto at = json_.find(key);
    return at == json_.end() ? nullptr : &*at;
  }
  std::string text(const std::string& key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) refuse(key, "text");
    return value->get<std::string>();
  }
  double number(const std::string& key, double otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !(value->get<double>() > 0)) refuse(key, "a number above 0");
    return value->get<double>();
  }
  PublishedSize size(const std::string& key, const Json& value) const {
    PublishedSize out;
    if (value.is_number() && value.get<double>() > 0) {
      out.factor = value.get<double>();
      return out;
    }
    const Json* word = &value;
    if (value.is_object()) {
      const Reader inner(value, file_, place_ + "/" + key);
      inner.only({"of", "times"});
      out.factor = inner.number("times", 1);
      word = inner.find("of");
    }
    if (word == nullptr || !word->is_string()) refuse(key, "a number above 0, \"seq\" or \"row0\" to \"row7\"");
    const auto name = word->get<std::string>();
    if (name == "seq") {
      out.from = PublishedSize::From::seq;
    } else if (name.size() == 4 && name.starts_with("row") && name[3] >= '0' && name[3] <= '7') {
      out.from = PublishedSize::From::row;
      out.index = static_cast<std::size_t>(name[3] - '0');
    } else {
      refuse(key, "a number above 0, \"seq\" or \"row0\" to \"row7\"");
    }
    return out;
  }
  template <class Value, class Convert>
  std::map<std::string, Value> members(const std::string& key, Convert convert) const {
    std::map<std::string, Value> out;
    const Json* object = find(key);
    if (object == nullptr) return out;
    if (!object->is_object()) refuse(key, "an object");
    for (const auto& [name, value] : object->items())
      out.emplace(name, convert(fmt::format("{}/{}", key, name), value));
    return out;
  }

 private:
  const Json& json_;
  std::string file_, place_;
};

void read_sizes(const Reader& in, PublishedEntry& entry) {
  const auto size = [&in](const std::string& key, const Json& value) { return in.size(key, value); };
  if (const Json* seq = in.find("seq")) entry.seq = in.size("seq", *seq);
  if (const Json* image = in.find("image")) {
    if (!image->is_array() || image->size() != 2) in.refuse("image", "height and width");
    for (const auto& side : *image) entry.image.push_back(in.size("image", side));
  }
  entry.dims = in.members<PublishedSize>("dims", size);
  entry.per_sample = in.members<PublishedSize>("per_sample", size);
  entry.samples_per_batch_unit = 1 / in.number("batch_units_per_sample", 1);
}

PublishedEntry read_entry(const Reader& in) {
  in.only({"model",      "submodel",
           "framework",  "mode",
           "flags",      "skip",
           "workload",   "profile",
           "optimizer",  "optimizer_kernels",
           "attention",  "seq",
           "image",      "dims",
           "per_sample", "precision",
           "batch",      "batch_units_per_sample",
           "occurrence", "input_copy",
           "gpu",        "layout",
           "note"});
  PublishedEntry entry;
  entry.model = in.text("model");
  entry.submodel = in.text("submodel");
  entry.framework = in.text("framework");
  entry.mode = in.text("mode");
  entry.flags = in.text("flags");
  entry.skip = in.text("skip");
  entry.workload = in.text("workload");
  entry.gpu = in.text("gpu");
  entry.layout = in.text("layout");
  const auto text = [&in](const std::string& key, const Json& value) {
    if (!value.is_string()) in.refuse(key, "text");
    return value.get<std::string>();
  };
  if (const Json* profile = in.find("profile"); profile != nullptr && profile->is_string()) {
    entry.profile[""] = profile->get<std::string>();
  } else {
    entry.profile = in.members<std::string>("profile", text);
  }
  entry.optimizer = in.text("optimizer");
  entry.optimizer_kernels = in.text("optimizer_kernels");
  entry.attention = in.text("attention");
  entry.input_copy = in.text("input_copy");
  if (entry.model.empty()) in.refuse("model", "the source's name of a model");
  if (entry.skip.empty() == entry.workload.empty()) in.refuse("workload", "either a workload or a reason to skip");
  entry.precision = in.members<std::string>("precision", text);
  entry.batch = in.members<std::int64_t>("batch", [&in](const std::string& key, const Json& value) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1) in.refuse(key, "a whole number of at least 1");
    return value.get<std::int64_t>();
  });
  if (const Json* occurrence = in.find("occurrence")) {
    if (!occurrence->is_number_unsigned()) in.refuse("occurrence", "a whole number");
    entry.occurrence = occurrence->get<std::int64_t>();
  }
  read_sizes(in, entry);
  return entry;
}

PublishedHost read_host(const Reader& in) {
  in.only({"framework", "profile", "flags", "gpu", "scale", "step_s", "note"});
  PublishedHost host;
  host.framework = in.text("framework");
  host.profile = in.text("profile");
  host.flags = in.text("flags");
  host.gpu = in.text("gpu");
  host.scale = in.number("scale", 1);
  host.step_s = in.number("step_s", 0);
  return host;
}

/// What entries of a source share, where they say nothing else.
void apply_defaults(const Reader& in, PublishedEntry& entry) {
  in.only({"attention", "precision"});
  if (entry.attention.empty()) entry.attention = in.text("attention");
  if (entry.precision.empty()) {
    entry.precision = in.members<std::string>("precision", [&in](const std::string& key, const Json& value) {
      if (!value.is_string()) in.refuse(key, "text");
      return value.get<std::string>();
    });
  }
}

/// Files of one source add up: its entries, and its hosts, which are fitted.
std::vector<PublishedMap> read_shipped() {
  std::vector<PublishedMap> maps;
  for (const EmbeddedFile& file : embedded_published()) {
    PublishedMap part = parse_published_map(file.text, std::string(file.name));
    const auto at = std::find_if(maps.begin(), maps.end(), [&](const auto& map) { return map.source == part.source; });
    if (at == maps.end()) {
      maps.push_back(std::move(part));
      continue;
    }
    std::move(part.entries.begin(), part.entries.end(), std::back_inserter(at->entries));
    std::move(part.hosts.begin(), part.hosts.end(), std::back_inserter(at->hosts));
  }
  return maps;
}

const std::vector<PublishedMap>& shipped() {
  static const std::vector<PublishedMap> maps = read_shipped();
  return maps;
}

}  // namespace

std::optional<double> PublishedSize::of(const std::vector<double>& row_numbers, std::int64_t seq) const {
  switch (from) {
    case From::constant: return factor;
    case From::seq: return factor * static_cast<double>(seq);
    case From::row: break;
  }
  if (index >= row_numbers.size()) return std::nullopt;
  return factor * row_numbers[index];
}

bool PublishedEntry::matches(const PublishedRow& row) const {
  const auto is = [](const std::string& wanted, const std::string& have) { return wanted.empty() || wanted == have; };
  return model == row.model && row.gpu.starts_with(gpu) && is(submodel, row.submodel) && is(framework, row.framework) &&
         is(mode, row.mode) && row.flags.find(flags) != std::string::npos &&
         occurrence.value_or(row.occurrence) == row.occurrence;
}

const PublishedEntry* PublishedMap::find(const PublishedRow& row) const {
  const auto at = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.matches(row); });
  return at == entries.end() ? nullptr : &*at;
}

PublishedHost PublishedMap::host_of(const PublishedRow& row, std::string_view profile, std::string_view gpu) const {
  const auto is = [](const std::string& wanted, std::string_view have) { return wanted.empty() || wanted == have; };
  // The first part of our name: "a10" is not the beginning of "a100-sxm4-80gb".
  const std::string_view generation = gpu.substr(0, gpu.find('-'));
  for (const PublishedHost& host : hosts) {
    if (is(host.framework, row.framework) && row.flags.find(host.flags) != std::string::npos &&
        is(host.profile, profile) && is(host.gpu, generation)) {
      return host;
    }
  }
  return {};
}

PublishedMap parse_published_map(std::string_view text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw ConfigError(file, "/", "expected JSON");
  const Reader in(json, file, "");
  in.only({"source", "note", "defaults", "entries", "hosts"});
  PublishedMap map;
  map.source = in.text("source");
  const Json* entries = in.find("entries");
  const Json* hosts = in.find("hosts");
  if (entries == nullptr && hosts == nullptr) in.refuse("entries", "a list");
  if (entries != nullptr && !entries->is_array()) in.refuse("entries", "a list");
  for (std::size_t i = 0; entries != nullptr && i < entries->size(); ++i) {
    map.entries.push_back(read_entry(Reader((*entries)[i], file, fmt::format("/entries/{}", i))));
    if (const Json* defaults = in.find("defaults")) {
      apply_defaults(Reader(*defaults, file, "/defaults"), map.entries.back());
    }
  }
  if (hosts != nullptr && !hosts->is_array()) in.refuse("hosts", "a list");
  for (std::size_t i = 0; hosts != nullptr && i < hosts->size(); ++i) {
    map.hosts.push_back(read_host(Reader((*hosts)[i], file, fmt::format("/hosts/{}", i))));
  }
  return map;
}

const PublishedMap& published_map(std::string_view source) {
  for (const auto& map : shipped()) {
    if (map.source == source) return map;
  }
  throw ConfigError("published", std::string(source), "expected a source that has a mapping");
}

std::vector<std::string> published_sources() {
  std::vector<std::string> names;
  for (const auto& map : shipped()) names.push_back(map.source);
  return names;
}

std::vector<double> numbers_of(std::string_view text) {
  constexpr std::size_t kMost = 8;
  std::vector<double> out;
  std::size_t at = 0;
  while (at < text.size() && out.size() < kMost) {
    const char c = text[at];
    if (c < '0' || c > '9') {
      ++at;
      continue;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc{}) break;
    out.push_back(value);
    at = static_cast<std::size_t>(end - text.data());
  }
  return out;
}

}  // namespace validation
}  // namespace voltaic
