// SPDX-License-Identifier: MIT
// Tensors between the kernels of a quantised engine stay in one byte.
#include <algorithm>
#include <utility>

#include "sim/graph/detail/fusion.hpp"
#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/engine_fusion.hpp"

namespace voltaic::graph {
namespace {

constexpr int kOneByte = 8;

bool quantises(const OpGraph& graph, const Node& node) {
  if (node.op != OpType::cast || node.outputs.empty()) return false;
  return info(graph.tensor(node.outputs[0]).dtype).bits <= kOneByte &&
         graph.tensor(node.inputs.at(0)).role == TensorRole::activation;
}

bool multiplies_one_byte(const Node& node) {
  const bool product = family(node.op) == OpFamily::matrix || family(node.op) == OpFamily::convolution;
  return product && info(node.compute).bits <= kOneByte;
}

/// Products whose epilogue can write one byte.
bool stores_one_byte(const Node& node) {
  return multiplies_one_byte(node) && (node.op == OpType::linear || family(node.op) == OpFamily::convolution);
}

class Quantised {
 public:
  explicit Quantised(OpGraph& graph) : graph_(graph), views_(graph), readable_(graph.tensors().size(), true) {
    find_readers();
  }

  std::int64_t run() {
    mark();
    apply();
    return drop_casts();
  }

 private:
  static constexpr TensorId kSelf = UINT32_MAX;

  /// Kernels that load and store one byte as well as two; lookups are left as they are.
  bool handles(const Node& node) const {
    switch (family(node.op)) {
      case OpFamily::matrix:
      case OpFamily::convolution: return multiplies_one_byte(node);
      case OpFamily::pooling:
      case OpFamily::resize:
      case OpFamily::pointwise:
      case OpFamily::normalization:
      case OpFamily::softmax:
      case OpFamily::attention: return true;
      default: return node.op == OpType::contiguous || node.op == OpType::concat;
    }
  }

  void find_readers() {
    read_.assign(graph_.tensors().size(), false);
    for (const Node& node : graph_.nodes()) {
      if (family(node.op) == OpFamily::view) continue;
      for (const TensorId t : node.inputs) {
        read_[views_.source[t]] = true;
        if (!handles(node)) readable_[views_.source[t]] = false;
      }
    }
    for (const TensorId t : graph_.outputs) readable_[views_.source[t]] = false;
    if (graph_.loss < readable_.size()) readable_[views_.source[graph_.loss]] = false;
  }

  bool may_store(TensorId source) const {
    const NodeId maker = views_.maker[source];
    return maker != kNoNode && readable_[source] && graph_.tensor(source).role == TensorRole::activation &&
           handles(graph_.node(maker));
  }

  void mark() {
    stored_.assign(graph_.tensors().size(), DataType::fp32);
    chosen_.assign(graph_.tensors().size(), false);
    const auto choose = [&](TensorId source, DataType type) {
      if (chosen_[source] || !may_store(source)) return;
      chosen_[source] = true;
      stored_[source] = type;
    };
    for (const Node& node : graph_.nodes()) {
      if (quantises(graph_, node)) {
        choose(views_.source[node.inputs[0]], graph_.tensor(node.outputs[0]).dtype);
      } else if (stores_one_byte(node) && read_[node.outputs.at(0)]) {
        choose(node.outputs[0], node.compute);
      }
    }
  }

  void apply() {
    for (TensorId t = 0; t < graph_.tensors().size(); ++t) {
      const TensorId source = views_.source[t];
      if (chosen_[source]) graph_.tensor(t).dtype = stored_[source];
    }
  }

  /// A cast between equal types is none.
  std::int64_t drop_casts() {
    std::vector<TensorId> stands_for(graph_.tensors().size(), kSelf);
    std::vector<bool> dropped(graph_.nodes().size(), false);
    for (NodeId n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(n);
      if (!quantises(graph_, node)) continue;
      const TensorId from = node.inputs[0];
      const TensorId to = node.outputs[0];
      if (graph_.tensor(from).dtype != graph_.tensor(to).dtype) continue;
      dropped[n] = true;
      stands_for[to] = from;
    }
    return detail::drop_nodes(graph_, dropped, [&](Node& node) {
      for (TensorId& t : node.inputs) {
        while (stands_for[t] != kSelf) t = stands_for[t];
      }
    });
  }

  OpGraph& graph_;
  const detail::ViewMap views_;
  std::vector<bool> readable_;  ///< By source: every reader takes one byte, and it is no result.
  std::vector<bool> read_;
  std::vector<bool> chosen_;
  std::vector<DataType> stored_;
};

}  // namespace

std::int64_t keep_quantised(OpGraph& graph) {
  return Quantised(graph).run();
}

}  // namespace voltaic::graph
