// SPDX-License-Identifier: MIT
#include "sim/report/detail/layer_groups.hpp"

#include <algorithm>
#include <unordered_map>

namespace voltaic::report {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string name_pattern(const std::string& name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && digit(name[end])) ++end;
    const bool opens = i == 0 || name[i - 1] == '.' || name[i - 1] == '_';
    const bool closes = end == name.size() || name[end] == '.' || name[end] == '_';
    if (end > i && opens && closes) {
      out += '*';
      i = end;
    } else {
      const std::size_t next = std::max(end, i + 1);
      out.append(name, i, next - i);
      i = next;
    }
  }
  return out;
}

kernel::Bound LayerGroup::bound() const {
  return static_cast<kernel::Bound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
}

std::vector<std::uint32_t> rows_by_node(const Prediction& p) {
  std::vector<std::uint32_t> rows(p.graph.nodes().size(), 0);
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i) rows[p.nodes[i].node] = i;
  return rows;
}

std::vector<LayerGroup> layer_groups(const Prediction& p) {
  std::vector<LayerGroup> groups;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::string> first_name;
  const auto rows = rows_by_node(p);
  for (const auto& layer : p.layers) {
    const std::string name = name_pattern(layer.id);
    const auto [at, fresh] = index.try_emplace(name + '/' + std::string(graph::to_string(layer.phase)), groups.size());
    if (fresh) {
      groups.push_back({name, layer.op, layer.phase, 0, 0, 0, 0, {}});
      first_name.push_back(layer.id);
    }
    LayerGroup& group = groups[at->second];
    ++group.layers;
    group.time_s += layer.time.value;
    group.mac += layer.mac;
    for (const std::uint32_t id : layer.nodes) {
      const NodeRow& row = p.nodes[rows[id]];
      for (const auto& k : p.distinct[row.distinct].kernels) {
        group.by_bound[static_cast<std::size_t>(k.cost.bound())] += row.repeats * k.cost.time.value;
        ++group.kernels;
      }
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].layers == 1) groups[i].name = first_name[i];
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.time_s > b.time_s; });
  return groups;
}

std::vector<KernelGroup> kernel_groups(const Prediction& p) {
  std::vector<KernelGroup> groups;
  std::vector<std::size_t> first(p.distinct.size(), SIZE_MAX);
  const auto rows = rows_by_node(p);
  for (const auto& layer : p.layers) {
    for (const std::uint32_t id : layer.nodes) {
      const std::uint32_t d = p.nodes[rows[id]].distinct;
      const double repeats = p.nodes[rows[id]].repeats;
      const auto& kernels = p.distinct[d].kernels;
      if (first[d] == SIZE_MAX) {
        first[d] = groups.size();
        for (const auto& k : kernels) {
          groups.push_back({&k, std::string(graph::to_string(p.graph.node(id).op)), layer.phase, 0, 0});
        }
      }
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        KernelGroup& group = groups[first[d] + i];
        group.count += static_cast<std::size_t>(repeats);
        group.time_s += repeats * kernels[i].cost.time.value;
      }
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.time_s > b.time_s; });
  return groups;
}

}  // namespace voltaic::report
