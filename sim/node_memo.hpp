// SPDX-License-Identifier: MIT
// Nodes that lower to the same kernels are lowered and priced once: BERT-large repeats one layer 24 times.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/graph/op_graph.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/report/prediction.hpp"

namespace voltaic {

/// All that lowering may look at in a node, as words: operation, compute type, phase, attributes, and for each tensor
/// its shape, type, role, the operation that made it and, where that is a view, the whole chain of views above it (as a
/// hash).
class NodeKey {
 public:
  /// Rebuilds the key in place; no allocation once warm. `views`: view_signatures(graph). `salt`: what beside the node
  /// matters (engine, framework).
  void assign(const graph::OpGraph& graph, const graph::Node& node, std::span<const std::uint64_t> views,
              std::uint64_t salt);
  const std::vector<std::uint64_t>& words() const { return words_; }
  std::uint64_t hash() const { return hash_; }
  friend bool operator==(const NodeKey& a, const NodeKey& b) { return a.words_ == b.words_; }

 private:
  friend std::vector<std::uint64_t> view_signatures(const graph::OpGraph& graph);
  void tensor(const graph::OpGraph& graph, graph::TensorId id, std::uint64_t view);
  void attributes(const graph::Attributes& attributes);
  void finish();
  void text(std::string_view text);
  void value(const graph::Attributes::Value& value);

  std::vector<std::uint64_t> words_;
  std::uint64_t hash_ = 0;
};

/// For each tensor a hash of the views that lead to it from stored memory, with their shapes and attributes; 0 for
/// stored tensors. Nodes must be in program order.
std::vector<std::uint64_t> view_signatures(const graph::OpGraph& graph);

struct NodeKeyHash {
  std::size_t operator()(const NodeKey& key) const { return static_cast<std::size_t>(key.hash()); }
};

/// A lowered and priced node without its host time, which depends on the instance.
struct PricedNode {
  kernel::HostClass host = kernel::HostClass::other;
  double host_calls = 1;
  double launches = 0;
  report::DistinctNode row;
  double mac = 0;  ///< Of the operation, counted from shapes.
  double other_flop = 0;
};

/// Shared between predictions and threads. What it returns does not depend on who came first, because pricing is a pure
/// function of the key.
class NodeMemo {
 public:
  std::shared_ptr<const PricedNode> find(const NodeKey& key) const;
  /// Keeps the first of two equal keys; forgets nothing, but stops growing at its limit.
  void insert(const NodeKey& key, std::shared_ptr<const PricedNode> node);

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kLimitPerShard = 4096;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<NodeKey, std::shared_ptr<const PricedNode>, NodeKeyHash> map;
  };
  Shard& shard(const NodeKey& key) { return shards_[key.hash() % kShards]; }
  const Shard& shard(const NodeKey& key) const { return shards_[key.hash() % kShards]; }
  std::array<Shard, kShards> shards_;
};

}  // namespace voltaic
