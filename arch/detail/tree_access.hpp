// SPDX-License-Identifier: MIT
// The JSON behind a ParameterTree, for the loader alone.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "arch/parameter_tree.hpp"

namespace voltaic::arch {

struct TreeAccess {
  static ParameterTree make(std::shared_ptr<const nlohmann::ordered_json> root, std::string file);
  static const nlohmann::ordered_json& node(const ParameterTree& tree);
  static const nlohmann::ordered_json& require(const ParameterTree& tree, std::string_view path);
  static std::string place(const ParameterTree& tree, std::string_view path);
  static ParameterTree below(const ParameterTree& tree, const nlohmann::ordered_json& node, std::string path);
};

}  // namespace voltaic::arch
