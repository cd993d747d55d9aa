// SPDX-License-Identifier: MIT
// Layers that differ in a number only, together: "encoder.layer.*.attention", 24 times.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/report/prediction.hpp"

namespace voltaic::report {

/// Numbers between dots or at the end of a name become '*'; "conv2d" keeps its digit.
std::string name_pattern(const std::string& name);

struct LayerGroup {
  std::string name;  ///< With '*' for numbers that differ.
  std::string op;
  graph::Phase phase = graph::Phase::forward;
  std::size_t layers = 0;
  std::size_t kernels = 0;
  double time_s = 0;
  double mac = 0;
  std::array<double, kernel::kBounds> by_bound{};  ///< Kernel seconds by what bounds them.

  kernel::Bound bound() const;
};

/// Longest first; ties in program order.
std::vector<LayerGroup> layer_groups(const Prediction& prediction);

/// A kernel and all its equal launches in the layers of the prediction.
struct KernelGroup {
  const KernelRow* row = nullptr;
  std::string op;
  graph::Phase phase = graph::Phase::forward;
  std::size_t count = 0;
  double time_s = 0;  ///< All launches together.
};
std::vector<KernelGroup> kernel_groups(const Prediction& prediction);

/// Index into Prediction::nodes by graph node.
std::vector<std::uint32_t> rows_by_node(const Prediction& prediction);

}  // namespace voltaic::report
