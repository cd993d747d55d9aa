// SPDX-License-Identifier: MIT
// What the tests of workloads share: short ways to load, count and catch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "arch/units/error.hpp"
#include "workloads/builder.hpp"

namespace voltaic::workloads::test {

inline Workload load(const std::string& what, bool training = false, std::int64_t batch = 1) {
  BuildOptions options;
  options.training = training;
  options.batch = batch;
  return load_workload(what, options);
}

inline double macs(const Workload& workload) {
  double total = 0;
  for (const auto& node : workload.graph.nodes()) total += graph::count(workload.graph, node).mac;
  return total;
}

/// Operations of the layers whose name begins with `layer`, in order; views left out.
inline std::vector<std::string> kernels_of(const Workload& workload, const std::string& layer) {
  std::vector<std::string> ops;
  for (const auto& node : workload.graph.nodes()) {
    if (!node.layer.starts_with(layer) || graph::family(node.op) == graph::OpFamily::view) continue;
    ops.emplace_back(to_string(node.op));
  }
  return ops;
}

inline std::int64_t count_ops(const Workload& workload, graph::OpType op) {
  const auto nodes = workload.graph.nodes();
  return std::count_if(nodes.begin(), nodes.end(), [op](const auto& node) { return node.op == op; });
}

/// The message of the error of type Error that `call` throws; empty when it throws nothing.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string refusal_of_config(const std::string& text) {
  return message_of<ConfigError>([&] { import_huggingface(text, "config.json", {}); });
}

}  // namespace voltaic::workloads::test
