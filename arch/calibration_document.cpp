// SPDX-License-Identifier: MIT
#include "arch/calibration_document.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arch/detail/calibration_check.hpp"
#include "arch/detail/embedded_data.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/detail/tree_access.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch {

using Json = nlohmann::ordered_json;

struct CalibrationDocument::Impl {
  Json root = Json::object();
};

namespace {

constexpr std::string_view kSchema = "voltaic.calibration/1";

bool is_leaf(const Json& node) {
  return !node.is_object() || node.contains("value");
}

void merge(Json& into, const Json& from) {
  for (const auto& [key, value] : from.items()) {
    Json& target = into[key];
    if (is_leaf(value) || is_leaf(target)) {
      target = value;
    } else {
      merge(target, value);
    }
  }
}

/// What a file says of itself; no model reads it.
bool is_header(std::string_view key) {
  return key == "schema" || key == "id" || key == "date" || key == "source" || key == "note" || key == "architecture" ||
         key == "base" || key == "fit";
}

std::string date_of(const Json& file) {
  const auto date = file.find("date");
  return date != file.end() && date->is_string() ? date->get<std::string>() : std::string();
}

void take(const Json& file, Json& root) {
  for (const auto& [key, value] : file.items()) {
    if (is_header(key)) continue;
    if (is_leaf(value) || !root.contains(key)) {
      root[key] = value;
    } else {
      merge(root[key], value);
    }
  }
}

/// Walks a dotted path through objects, making those that are missing. Names on fitted paths hold no dots.
Json& reach(Json& root, std::string_view path) {
  Json* node = &root;
  while (!path.empty()) {
    const auto cut = path.find('.');
    const std::string head(path.substr(0, cut));
    path = cut == std::string_view::npos ? std::string_view{} : path.substr(cut + 1);
    if (node->is_object() && node->contains("value") && !node->contains(head)) *node = Json::object();
    if (!node->is_object()) *node = Json::object();
    node = &(*node)[head];
  }
  return *node;
}

/// A leaf keeps its source when its value changes.
void put(Json& node, Json value) {
  if (node.is_object() && node.contains("value")) {
    node["value"] = std::move(value);
  } else {
    node = std::move(value);
  }
}

const Json* member(const Json& node, std::string_view key) {
  if (!node.is_object()) return nullptr;
  const auto found = node.find(key);
  return found != node.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

CalibrationDocument::CalibrationDocument() : impl_(std::make_unique<Impl>()) {}
CalibrationDocument::CalibrationDocument(const CalibrationDocument& other)
    : impl_(std::make_unique<Impl>(*other.impl_)), name_(other.name_), date_(other.date_), alone_(other.alone_) {}
CalibrationDocument& CalibrationDocument::operator=(const CalibrationDocument& other) {
  if (this != &other) *this = CalibrationDocument(other);
  return *this;
}
CalibrationDocument::CalibrationDocument(CalibrationDocument&&) noexcept = default;
CalibrationDocument& CalibrationDocument::operator=(CalibrationDocument&&) noexcept = default;
CalibrationDocument::~CalibrationDocument() = default;

CalibrationDocument CalibrationDocument::built_in(Architecture architecture, bool fitted) {
  const std::string prefix = std::string(to_string(architecture)) + '.';
  const std::string last = prefix + "fitted.json";
  CalibrationDocument out;
  out.name_ = "calibration/" + std::string(to_string(architecture));
  // Fitted values come last: they replace what they started from.
  for (const bool pass : {false, true}) {
    if (pass && !fitted) break;
    for (const EmbeddedFile& file : embedded_calibrations()) {
      if (!file.name.starts_with(prefix) || (file.name == last) != pass) continue;
      const Json part = detail::parse_trusted(file.text, std::string(file.name));
      if (!part.is_object()) {
        throw ConfigError(std::string(file.name), "/", "expected an object, got " + detail::describe(part));
      }
      out.date_ = std::max(out.date_, date_of(part));
      take(part, out.impl_->root);
    }
  }
  return out;
}

namespace {

Json read_calibration(const std::string& path) {
  const std::string file = one_line(path);
  Json part = detail::parse_strict(detail::read_text_file(path), file);
  if (!part.is_object()) throw ConfigError(file, "/", "expected an object, got " + detail::describe(part));
  const auto schema = part.find("schema");
  if (schema == part.end() || *schema != kSchema) {
    throw ConfigError(file, "/schema",
                      "expected \"voltaic.calibration/1\", got " +
                          (schema == part.end() ? std::string("nothing") : detail::describe(*schema)));
  }
  for (const char* key : {"boards", "sessions"}) {
    if (part.contains(key) && !part[key].is_object()) {
      throw ConfigError(file, std::string("/") + key, "expected an object, got " + detail::describe(part[key]));
    }
  }
  return part;
}

}  // namespace

CalibrationDocument CalibrationDocument::read(const std::string& path) {
  const std::string file = one_line(path);
  const Json part = read_calibration(path);
  CalibrationDocument out;
  out.name_ = file;
  if (const auto base = part.find("base"); base != part.end()) {
    if (*base != "priors" && *base != "shipped") {
      throw ConfigError(file, "/base", "expected \"priors\" or \"shipped\", got " + detail::describe(*base));
    }
    out.alone_ = *base == "priors";
  }
  out.date_ = date_of(part);
  take(part, out.impl_->root);
  return out;
}

CalibrationDocument CalibrationDocument::read_for(Architecture architecture, const std::string& path) {
  const CalibrationDocument shipped = built_in(architecture);
  Json known = shipped.impl_->root;
  // What only some board or session has is known too.
  const Json overrides = known.value("boards", Json::object());
  for (const auto& [board, own] : overrides.items()) merge(known, own);
  const Json sessions = known.value("sessions", Json::object());
  for (const auto& [session, own] : sessions.items()) {
    if (own.is_object()) merge(known, own);
  }
  detail::check_calibration_file(read_calibration(path), known, architecture, one_line(path));
  return read(path);
}

void CalibrationDocument::overlay(const CalibrationDocument& other) {
  merge(impl_->root, other.impl_->root);
  date_ = std::max(date_, other.date_);
}

ParameterTree CalibrationDocument::whole() const {
  // Without ownership: the tree lives no longer than the call that uses it.
  return TreeAccess::make(std::shared_ptr<const Json>(std::shared_ptr<void>(), &impl_->root), name_);
}
bool CalibrationDocument::has(std::string_view path) const {
  return whole().has(path);
}
double CalibrationDocument::number(std::string_view path) const {
  return whole().number(path);
}

void CalibrationDocument::set(std::string_view path, double value) {
  put(reach(impl_->root, path), value);
}
void CalibrationDocument::set(std::string_view path, const std::vector<double>& values) {
  put(reach(impl_->root, path), values);
}
void CalibrationDocument::set(std::string_view path, std::string_view word) {
  put(reach(impl_->root, path), word);
}
void CalibrationDocument::set_json(std::string_view path, std::string_view json) {
  reach(impl_->root, path) = detail::parse_strict(json, name_);
}

ParameterTree CalibrationDocument::tree(const std::string& board, std::string_view session) const {
  auto root = std::make_shared<Json>(Json::object());
  for (const auto& [key, value] : impl_->root.items()) {
    if (key != "boards") (*root)[key] = value;
  }
  if (const Json* boards = member(impl_->root, "boards")) {
    if (const Json* own = member(*boards, calibration_key(board))) merge(*root, *own);
  }
  const ParameterTree tree = TreeAccess::make(std::move(root), name_);
  return session.empty() ? tree : in_session(tree, session);
}

std::string CalibrationDocument::text() const {
  return impl_->root.dump(1) + "\n";
}

ParameterTree with_numbers(const ParameterTree& tree, const std::vector<std::pair<std::string, double>>& numbers) {
  auto root = std::make_shared<Json>(TreeAccess::node(tree));
  for (const auto& [path, value] : numbers) put(reach(*root, path), value);
  return TreeAccess::make(std::move(root), tree.file());
}

std::string calibration_key(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '.', '_');
  return key;
}

ParameterTree in_session(const ParameterTree& tree, std::string_view session) {
  const Json& root = TreeAccess::node(tree);
  const Json* sessions = member(root, "sessions");
  const Json* own = sessions != nullptr ? member(*sessions, calibration_key(session)) : nullptr;
  if (own == nullptr) return tree;
  auto merged = std::make_shared<Json>(root);
  const Json overrides = *own;
  merge(*merged, overrides);
  return TreeAccess::make(std::move(merged), tree.file());
}

}  // namespace voltaic::arch
