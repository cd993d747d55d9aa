// SPDX-License-Identifier: MIT
// A comparison layer by layer: what precision or 2:4 sparsity gives each, and why nothing where nothing.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/study_rows.hpp"

namespace voltaic::study {

/// Nodes whose names differ in a number only and whose products have one width and depth, in one prediction.
struct NodeGroup {
  std::string key;  ///< Equal on all sides.
  std::string name;
  std::string op;
  graph::OpFamily family{};
  graph::Phase phase = graph::Phase::forward;
  double count = 0;
  double time_s = 0;
  double roofline_s = 0;
  double launches = 0;
  std::array<double, kernel::kBounds> by_bound{};  ///< Kernel seconds by what bounds them.
  std::optional<kernel::GemmProblem> product;
  std::string dense;  ///< Why a product keeps dense weights where sparse ones were asked for.

  kernel::Bound bound() const;
};

/// In program order.
std::vector<NodeGroup> node_groups(const report::Prediction& prediction);

/// Why `side`, with sparse weights asked for, is as fast as it is beside `base`, which has dense ones.
std::string sparsity_reason(const NodeGroup& base, const NodeGroup& side);

/// The same for all groups of a class of layers together, which take `base_s` and `side_s`.
std::string sparsity_class_reason(const std::vector<NodeGroup>& side, std::string_view class_name, double base_s,
                                  double side_s);

/// The name under which a class of operations stands in reports.
std::string_view class_name(graph::OpFamily family);

}  // namespace voltaic::study
