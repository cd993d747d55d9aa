// SPDX-License-Identifier: MIT
#include "arch/parameter_tree.hpp"

#include <nlohmann/json.hpp>

#include "arch/detail/strict_json.hpp"
#include "arch/detail/tree_access.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch {

using Json = nlohmann::ordered_json;

/// `node` points into `*root`; subtrees share the root and so cost nothing.
struct ParameterTree::Impl {
  std::shared_ptr<const Json> root;
  const Json* node = nullptr;
  std::string file;
  std::string path;  ///< Of `node`, for errors.
};

namespace {

/// Member names may hold dots themselves, so each way to cut the path is tried, shortest first name first.
const Json* find(const Json& node, std::string_view path) {
  if (path.empty()) return &node;
  for (std::size_t cut = path.find('.');; cut = path.find('.', cut + 1)) {
    const std::string_view head = path.substr(0, cut);
    const std::string_view rest = cut == std::string_view::npos ? std::string_view{} : path.substr(cut + 1);
    if (node.is_object()) {
      if (const auto it = node.find(head); it != node.end()) {
        if (const Json* hit = find(*it, rest)) return hit;
      }
    }
    if (cut == std::string_view::npos) return nullptr;
  }
}

const Json& leaf(const Json& node) {
  if (!node.is_object()) return node;
  const auto value = node.find("value");
  return value == node.end() ? node : *value;
}

bool is_remark(const std::string& key, const Json& value) {
  return value.is_string() && (key == "source" || key == "note");
}

}  // namespace

ParameterTree::ParameterTree() {
  auto impl = std::make_shared<Impl>();
  impl->root = std::make_shared<const Json>(Json::object());
  impl->node = impl->root.get();
  impl->file = "(no parameters)";
  impl_ = std::move(impl);
}

ParameterTree ParameterTree::parse(std::string_view json_text, std::string file) {
  Json root = detail::parse_strict(json_text, file);
  if (!root.is_object()) throw ConfigError(file, "/", "expected an object, got " + detail::describe(root));
  return TreeAccess::make(std::make_shared<const Json>(std::move(root)), std::move(file));
}

ParameterTree TreeAccess::make(std::shared_ptr<const Json> root, std::string file) {
  auto impl = std::make_shared<ParameterTree::Impl>();
  impl->node = root.get();
  impl->root = std::move(root);
  impl->file = std::move(file);
  ParameterTree tree;
  tree.impl_ = std::move(impl);
  return tree;
}

const Json& TreeAccess::node(const ParameterTree& tree) {
  return *tree.impl_->node;
}

const Json& TreeAccess::require(const ParameterTree& tree, std::string_view path) {
  if (const Json* hit = find(*tree.impl_->node, path)) return *hit;
  throw ConfigError(tree.impl_->file, place(tree, path), "expected a parameter, found none");
}

std::string TreeAccess::place(const ParameterTree& tree, std::string_view path) {
  std::string out = tree.impl_->path;
  if (!out.empty() && !path.empty()) out += '.';
  return out.append(path);
}

ParameterTree TreeAccess::below(const ParameterTree& tree, const Json& node, std::string path) {
  auto impl = std::make_shared<ParameterTree::Impl>(*tree.impl_);
  impl->node = &node;
  impl->path = std::move(path);
  ParameterTree out;
  out.impl_ = std::move(impl);
  return out;
}

double ParameterTree::number(std::string_view path) const {
  const Json& value = leaf(TreeAccess::require(*this, path));
  if (!value.is_number()) {
    throw ConfigError(impl_->file, TreeAccess::place(*this, path), "expected a number, got " + detail::describe(value));
  }
  return value.get<double>();
}

double ParameterTree::number_or(std::string_view path, double fallback) const {
  return has(path) ? number(path) : fallback;
}

std::string ParameterTree::word(std::string_view path) const {
  const Json& value = leaf(TreeAccess::require(*this, path));
  if (!value.is_string()) {
    throw ConfigError(impl_->file, TreeAccess::place(*this, path), "expected a word, got " + detail::describe(value));
  }
  return value.get<std::string>();
}

std::vector<double> ParameterTree::numbers(std::string_view path) const {
  const Json& value = leaf(TreeAccess::require(*this, path));
  std::vector<double> out;
  if (value.is_array()) {
    out.reserve(value.size());
    for (const Json& element : value) {
      const Json& number = leaf(element);
      if (!number.is_number()) break;
      out.push_back(number.get<double>());
    }
  }
  if (!value.is_array() || out.size() != value.size()) {
    throw ConfigError(impl_->file, TreeAccess::place(*this, path),
                      "expected a list of numbers, got " + detail::describe(value));
  }
  return out;
}

bool ParameterTree::has(std::string_view path) const {
  return find(*impl_->node, path) != nullptr;
}

std::vector<std::string> ParameterTree::keys(std::string_view path) const {
  const Json& node = TreeAccess::require(*this, path);
  std::vector<std::string> out;
  if (!node.is_object()) return out;
  for (const auto& [key, value] : node.items()) {
    if (!is_remark(key, value)) out.push_back(key);
  }
  return out;
}

ParameterTree ParameterTree::at(std::string_view path) const {
  return TreeAccess::below(*this, TreeAccess::require(*this, path), TreeAccess::place(*this, path));
}

std::vector<ParameterTree> ParameterTree::elements(std::string_view path) const {
  const Json& node = leaf(TreeAccess::require(*this, path));
  if (!node.is_array()) {
    throw ConfigError(impl_->file, TreeAccess::place(*this, path), "expected a list, got " + detail::describe(node));
  }
  std::vector<ParameterTree> out;
  out.reserve(node.size());
  for (const Json& element : node) {
    out.push_back(TreeAccess::below(*this, element, TreeAccess::place(*this, path) + '.' + std::to_string(out.size())));
  }
  return out;
}

const std::string& ParameterTree::file() const {
  return impl_->file;
}

}  // namespace voltaic::arch
