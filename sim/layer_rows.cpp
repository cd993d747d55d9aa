// SPDX-License-Identifier: MIT
#include <functional>
#include <string_view>
#include <unordered_map>

#include "sim/fill.hpp"

namespace voltaic {
namespace {

struct LayerKey {
  std::string_view name;
  graph::Phase phase;
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};
struct LayerKeyHash {
  std::size_t operator()(const LayerKey& k) const {
    return std::hash<std::string_view>{}(k.name) * 3 + static_cast<std::size_t>(k.phase);
  }
};

}  // namespace

std::vector<report::LayerRow> layer_rows(const report::Prediction& p,
                                         std::span<const std::shared_ptr<const PricedNode>> priced) {
  std::vector<report::LayerRow> layers;
  std::unordered_map<LayerKey, std::size_t, LayerKeyHash> index;
  LayerKey last{{}, graph::Phase::forward};
  std::size_t at = 0;
  for (const auto& row : p.nodes) {
    const graph::Node& node = p.graph.node(row.node);
    const LayerKey key{node.layer.empty() ? std::string_view(node.id) : std::string_view(node.layer), node.phase};
    if (layers.empty() || !(key == last)) {
      const auto [found, fresh] = index.try_emplace(key, layers.size());
      if (fresh) {
        layers.push_back(
            {std::string(key.name), std::string(graph::to_string(node.op)), key.phase, {}, {}, {}, 0, 0, 0});
      }
      at = found->second;
      last = key;
    }
    report::LayerRow& layer = layers[at];
    if (!layer.nodes.empty() && p.graph.node(layer.nodes.front()).op != node.op) layer.op = "block";
    layer.nodes.push_back(row.node);
    layer.repeats = row.repeats;
    layer.time += row.repeats * p.distinct[row.distinct].gpu_time;
    layer.energy += row.repeats * p.distinct[row.distinct].energy;
    layer.mac += row.repeats * priced[row.distinct]->mac;
    layer.other_flop += row.repeats * priced[row.distinct]->other_flop;
    layer.flop = 2 * layer.mac;
  }
  return layers;
}

}  // namespace voltaic
