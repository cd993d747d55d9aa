// SPDX-License-Identifier: MIT
#include "sim/node_memo.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace voltaic {
namespace {

/// One round of a multiply-and-fold hash; good enough for a table, and equality is checked on the words.
std::uint64_t mix(std::uint64_t h, std::uint64_t w) {
  h = (h ^ w) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 29);
}

std::uint64_t pack(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return a | (b << 8) | (c << 16) | (d << 24);
}

}  // namespace

void NodeKey::text(std::string_view text) {
  words_.push_back(text.size());
  while (!text.empty()) {
    std::uint64_t w = 0;
    const std::size_t n = text.size() < sizeof w ? text.size() : sizeof w;
    std::memcpy(&w, text.data(), n);
    words_.push_back(w);
    text.remove_prefix(n);
  }
}

void NodeKey::value(const graph::Attributes::Value& value) {
  words_.push_back(value.index());
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    words_.push_back(static_cast<std::uint64_t>(*i));
  } else if (const auto* d = std::get_if<double>(&value)) {
    words_.push_back(std::bit_cast<std::uint64_t>(*d));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    text(*s);
  } else if (const auto* v = std::get_if<std::vector<std::int64_t>>(&value)) {
    words_.push_back(v->size());
    for (const std::int64_t x : *v) words_.push_back(static_cast<std::uint64_t>(x));
  }
}

void NodeKey::attributes(const graph::Attributes& attributes) {
  for (const auto& [name, v] : attributes.entries()) {
    text(name);
    value(v);
  }
}

void NodeKey::tensor(const graph::OpGraph& graph, graph::TensorId id, std::uint64_t view) {
  const graph::Tensor& t = graph.tensor(id);
  const std::uint64_t maker =
      t.producer == graph::kNoNode ? 255 : static_cast<std::uint64_t>(graph.node(t.producer).op);
  words_.push_back(pack(static_cast<std::uint64_t>(t.dtype),
                        static_cast<std::uint64_t>(t.role) | (t.sparse ? 128U : 0U), maker, t.shape.size()));
  words_.push_back(view);
  for (const std::int64_t d : t.shape) words_.push_back(static_cast<std::uint64_t>(d));
}

void NodeKey::finish() {
  hash_ = 0;
  for (const std::uint64_t w : words_) hash_ = mix(hash_, w);
}

void NodeKey::assign(const graph::OpGraph& graph, const graph::Node& node, std::span<const std::uint64_t> views,
                     std::uint64_t salt) {
  constexpr std::size_t kShortList = 16;  // lists up to this length may name one tensor twice (x * x)
  words_.clear();
  const std::uint64_t forward =
      node.forward_of == graph::kNoNode ? 255 : static_cast<std::uint64_t>(graph.node(node.forward_of).op);
  words_.push_back(salt);
  words_.push_back(pack(static_cast<std::uint64_t>(node.op), static_cast<std::uint64_t>(node.compute),
                        static_cast<std::uint64_t>(node.phase), forward));
  words_.push_back(node.inputs.size() << 32 | node.outputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    tensor(graph, node.inputs[i], views[node.inputs[i]]);
    if (node.inputs.size() > kShortList) continue;
    const auto first = std::find(node.inputs.begin(), node.inputs.end(), node.inputs[i]);
    words_.push_back(static_cast<std::uint64_t>(first - node.inputs.begin()));
  }
  for (const graph::TensorId id : node.outputs) tensor(graph, id, 0);
  attributes(node.attributes);
  finish();
}

std::vector<std::uint64_t> view_signatures(const graph::OpGraph& graph) {
  std::vector<std::uint64_t> out(graph.tensors().size(), 0);
  NodeKey key;
  for (const graph::Node& node : graph.nodes()) {
    if (graph::family(node.op) != graph::OpFamily::view || node.inputs.empty()) continue;
    key.words_.clear();
    key.words_.push_back(static_cast<std::uint64_t>(node.op));
    key.tensor(graph, node.inputs.front(), out[node.inputs.front()]);
    key.attributes(node.attributes);
    key.finish();
    for (const graph::TensorId id : node.outputs) out[id] = key.hash_ | 1U;
  }
  return out;
}

std::shared_ptr<const PricedNode> NodeMemo::find(const NodeKey& key) const {
  const Shard& s = shard(key);
  const std::lock_guard lock(s.mutex);
  const auto found = s.map.find(key);
  return found == s.map.end() ? nullptr : found->second;
}

void NodeMemo::insert(const NodeKey& key, std::shared_ptr<const PricedNode> node) {
  Shard& s = shard(key);
  const std::lock_guard lock(s.mutex);
  if (s.map.size() < kLimitPerShard) s.map.emplace(key, std::move(node));
}

}  // namespace voltaic
