// SPDX-License-Identifier: MIT
// Activation recomputation: forward nodes run again in the backward phase instead of keeping what they made.
#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

constexpr std::array<std::string_view, 3> kNames{"none", "selective", "full"};
constexpr std::uint32_t kNoBlock = UINT32_MAX;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The repeated layer that a layer name lies in: up to its first component that is a number, or else to the first that
/// ends in one. Empty: none.
std::string_view repeated_layer(std::string_view layer) {
  std::string_view ends_in_digit;
  for (std::size_t begin = 0; begin < layer.size();) {
    const std::size_t end = std::min(layer.find('.', begin), layer.size());
    const std::string_view part = layer.substr(begin, end - begin);
    if (!part.empty() && std::all_of(part.begin(), part.end(), is_digit)) return layer.substr(0, end);
    if (ends_in_digit.empty() && !part.empty() && is_digit(part.back())) ends_in_digit = layer.substr(0, end);
    begin = end + 1;
  }
  return ends_in_digit;
}

using Blocks = std::vector<std::uint32_t>;  ///< By node: which block it is recomputed with.

Blocks layer_blocks(const OpGraph& graph) {
  Blocks blocks(graph.nodes().size(), kNoBlock);
  std::unordered_map<std::string_view, std::uint32_t> index;
  for (NodeId n = 0; n < blocks.size(); ++n) {
    const Node& node = graph.node(n);
    if (node.phase != Phase::forward) continue;
    const std::string_view name = repeated_layer(node.layer);
    if (name.empty()) continue;
    blocks[n] = index.try_emplace(name, static_cast<std::uint32_t>(index.size())).first->second;
  }
  return blocks;
}

/// Passes the elements of a score matrix on: what may stand between the two products of attention.
bool between_products(const Node& node) {
  switch (family(node.op)) {
    case OpFamily::pointwise:
    case OpFamily::random:
    case OpFamily::view:
    case OpFamily::data_movement: return true;
    default: return false;
  }
}

/// The product that makes the scores of `softmax` and what stands between; empty where no product does. Of several
/// inputs (a mask beside the scores) those count that lead back to the product.
std::vector<NodeId> score_nodes(const OpGraph& graph, const Node& softmax) {
  std::vector<NodeId> members;
  std::vector<NodeId> path;
  const auto visit = [&](const auto& self, TensorId t) -> bool {
    const NodeId at = graph.tensor(t).producer;
    if (at == kNoNode || std::find(path.begin(), path.end(), at) != path.end()) return false;
    path.push_back(at);
    const Node& node = graph.node(at);
    bool leads = node.op == OpType::matmul;
    if (!leads && between_products(node)) {
      for (const TensorId input : node.inputs) leads = self(self, input) || leads;
    }
    if (leads) members.push_back(at);
    return leads;
  };
  visit(visit, softmax.inputs.front());
  return members;
}

/// Unfused attention: from each softmax back to the product that makes its scores, and on to the one that reads it,
/// that one included.
Blocks attention_blocks(const OpGraph& graph) {
  Blocks blocks(graph.nodes().size(), kNoBlock);
  const auto readers = graph.consumers();
  std::uint32_t next = 0;
  for (NodeId n = 0; n < blocks.size(); ++n) {
    const Node& softmax = graph.node(n);
    if (softmax.op != OpType::softmax || softmax.phase != Phase::forward) continue;
    std::vector<NodeId> members = score_nodes(graph, softmax);
    if (members.empty()) continue;
    std::vector<NodeId> onward{n};
    for (std::size_t i = 0; i < onward.size(); ++i) {
      if (graph.node(onward[i]).op == OpType::matmul) continue;
      for (const TensorId t : graph.node(onward[i]).outputs) {
        for (const NodeId r : readers[t]) {
          const Node& reader = graph.node(r);
          const bool belongs = between_products(reader) || reader.op == OpType::matmul;
          const bool known = std::find(onward.begin(), onward.end(), r) != onward.end();
          if (reader.phase == Phase::forward && belongs && !known) onward.push_back(r);
        }
      }
    }
    members.insert(members.end(), onward.begin(), onward.end());
    for (const NodeId m : members) blocks[m] = next;
    ++next;
  }
  return blocks;
}

class Recomputation {
 public:
  Recomputation(OpGraph& graph, Blocks blocks)
      : graph_(graph),
        blocks_(std::move(blocks)),
        copy_of_(graph.tensors().size(), kNone),
        needed_(graph.nodes().size(), false),
        kept_(graph.tensors().size(), true) {}

  std::int64_t run() {
    find_kept();
    find_needed();
    return rebuild();
  }

 private:
  static constexpr TensorId kNone = UINT32_MAX;

  std::uint32_t block_of(TensorId t) const {
    const NodeId maker = graph_.tensor(t).producer;
    return maker == kNoNode ? kNoBlock : blocks_[maker];
  }

  /// What a block hands on to others stays; the rest of what it makes dies with it.
  void find_kept() {
    for (TensorId t = 0; t < kept_.size(); ++t) kept_[t] = block_of(t) == kNoBlock;
    for (NodeId n = 0; n < needed_.size(); ++n) {
      const Node& node = graph_.node(n);
      if (node.phase != Phase::forward) continue;
      for (const TensorId t : node.inputs) {
        if (block_of(t) != blocks_[n]) keep(t);
      }
    }
    for (const TensorId t : graph_.outputs) keep(t);
    if (graph_.loss < kept_.size()) keep(graph_.loss);
  }

  /// With what it is a view of.
  void keep(TensorId t) {
    kept_[t] = true;
    const NodeId maker = graph_.tensor(t).producer;
    if (maker != kNoNode && family(graph_.node(maker).op) == OpFamily::view && !graph_.node(maker).inputs.empty())
      keep(graph_.node(maker).inputs.front());
  }

  /// Forward nodes that must run again: those that make what backward reads and nobody keeps, and what these read.
  void find_needed() {
    for (NodeId n = static_cast<NodeId>(needed_.size()); n-- > 0;) {
      const Node& node = graph_.node(n);
      if (node.phase != Phase::forward) {
        for (const TensorId t : node.inputs) need(t);
      } else if (needed_[n]) {
        for (const TensorId t : node.inputs) need(t);
      }
    }
  }
  void need(TensorId t) {
    if (!kept_[t]) needed_[graph_.tensor(t).producer] = true;
  }

  TensorId copied(TensorId t) const { return copy_of_[t] == kNone ? t : copy_of_[t]; }

  Node copy_node(NodeId n) {
    Node copy = graph_.node(n);
    copy.id += ".recompute";
    copy.phase = Phase::backward;
    if (copy.layer.empty()) copy.layer = graph_.node(n).id;
    for (TensorId& t : copy.inputs) t = copied(t);
    for (TensorId& t : copy.outputs) {
      Tensor again = graph_.tensor(t);
      again.name += ".recompute";
      again.producer = kNoNode;
      copy_of_[t] = graph_.add_tensor(std::move(again));
      t = copy_of_[t];
    }
    return copy;
  }

  /// The nodes of block `b` that are needed, copied, in program order.
  std::vector<std::pair<NodeId, Node>> copy_block(const std::vector<NodeId>& members) {
    std::vector<std::pair<NodeId, Node>> copies;
    copies.reserve(members.size());
    for (const NodeId n : members) copies.emplace_back(n, copy_node(n));
    return copies;
  }

  std::int64_t rebuild() {
    std::unordered_map<std::uint32_t, std::vector<NodeId>> members;
    for (NodeId n = 0; n < needed_.size(); ++n) {
      if (needed_[n] && graph_.node(n).phase == Phase::forward) members[blocks_[n]].push_back(n);
    }
    if (members.empty()) return 0;
    // Backward runs in reverse: a block is made anew where its first reader stands.
    const std::size_t count = needed_.size();
    std::vector<std::vector<std::pair<NodeId, Node>>> before(count);
    std::int64_t again = 0;
    for (NodeId n = 0; n < count; ++n) {
      if (graph_.node(n).phase == Phase::forward) continue;
      for (const TensorId t : graph_.node(n).inputs) {
        const auto found = kept_[t] ? members.end() : members.find(block_of(t));
        if (found == members.end()) continue;
        auto copies = copy_block(found->second);
        again += static_cast<std::int64_t>(copies.size());
        for (auto& c : copies) before[n].push_back(std::move(c));
        members.erase(found);
      }
    }
    std::vector<NodeId> twin(count, kNoNode);  ///< The copy of a forward node in the new graph.
    const auto insert = [&](NodeId at, OpGraph& fresh) {
      for (auto& [of, copy] : before[at]) twin[of] = fresh.add_node(std::move(copy));
    };
    // Ids of forward nodes do not move: all copies stand behind them.
    const auto rewire = [&](Node& node) {
      if (node.phase == Phase::forward) return;
      for (TensorId& t : node.inputs) {
        if (t < kept_.size() && !kept_[t]) t = copied(t);
      }
      if (node.forward_of < count && twin[node.forward_of] != kNoNode) node.forward_of = twin[node.forward_of];
    };
    detail::drop_nodes(graph_, std::vector<bool>(count, false), rewire, insert);
    return again;
  }

  OpGraph& graph_;
  Blocks blocks_;
  std::vector<TensorId> copy_of_;
  std::vector<bool> needed_;
  std::vector<bool> kept_;
};

}  // namespace

std::string_view to_string(Recompute recompute) {
  return kNames[static_cast<std::size_t>(recompute)];
}

std::optional<Recompute> parse_recompute(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Recompute>(i);
  }
  return std::nullopt;
}

std::int64_t recompute_activations(OpGraph& graph, Recompute recompute) {
  if (recompute == Recompute::none) return 0;
  Blocks blocks = recompute == Recompute::full ? layer_blocks(graph) : attention_blocks(graph);
  return Recomputation(graph, std::move(blocks)).run();
}

}  // namespace voltaic::graph
