// SPDX-License-Identifier: MIT
#include "sim/study/compare_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "sim/report/detail/layer_groups.hpp"

namespace voltaic::study {
namespace {

/// The matrix product among the kernels of a node.
std::optional<kernel::GemmProblem> product_of(const report::DistinctNode& node) {
  for (const auto& k : node.kernels) {
    const auto* gemm = std::get_if<kernel::GemmKernel>(&k.launch.detail);
    if (gemm != nullptr && k.launch.work.mac > 0) return gemm->problem;
  }
  return std::nullopt;
}

/// What holds a product with sparse weights below the sparse rate.
std::string limit_of(const NodeGroup& g) {
  using kernel::Bound;
  constexpr double kShort = 10e-6;  // A launch alone takes 2 to 4 us of this.
  constexpr double kFarFromRoofline = 0.3;
  constexpr std::int64_t kSmall = 256;
  const kernel::GemmProblem& p = *g.product;
  const bool brief = g.launches > 0 && g.time_s / g.launches < kShort && g.roofline_s < kFarFromRoofline * g.time_s;
  if (brief || g.bound() == Bound::latency || g.bound() == Bound::issue) {
    return p.m <= kSmall ? fmt::format("small m ({}): launch and latency bound", p.m) : "launch and latency bound";
  }
  const auto m = static_cast<double>(p.m);
  const auto n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k);
  const double weights = n * k * p.b_bytes;
  const double activations = m * (k * p.a_bytes + n * p.c_bytes);
  switch (g.bound()) {
    case Bound::dram:
      if (weights < activations) return "bound by activations in memory, which stay dense";
      return p.sparse ? fmt::format("bound by weights in memory, which take {:.0f} % of their dense bytes",
                                    100 * p.b_bytes / bytes_per_element(p.math))
                      : "bound by weights in memory";
    case Bound::l2: return "bound by activations through L2, which stay dense";
    case Bound::shared: return "bound by shared memory, which activations fill";
    case Bound::tensor: return "bound by the tensor cores";
    default: return fmt::format("bound by {}", kernel::to_string(g.bound()));
  }
}

std::string not_a_product(graph::OpFamily family) {
  if (family == graph::OpFamily::attention) return "not a product with weights: both operands are activations";
  return "not a matrix product";
}

}  // namespace

std::string_view class_name(graph::OpFamily family) {
  using graph::OpFamily;
  switch (family) {
    case OpFamily::matrix: return "matrix products";
    case OpFamily::convolution: return "convolutions";
    case OpFamily::attention: return "fused attention";
    case OpFamily::recurrent: return "recurrent layers";
    case OpFamily::normalization: return "normalisation";
    case OpFamily::pointwise: return "pointwise";
    case OpFamily::softmax: return "softmax";
    case OpFamily::reduction: return "reductions";
    case OpFamily::pooling:
    case OpFamily::resize: return "pooling and resize";
    case OpFamily::embedding:
    case OpFamily::gather_scatter: return "embedding and gather";
    case OpFamily::sparse: return "sparse products";
    case OpFamily::moe: return "expert routing";
    case OpFamily::view:
    case OpFamily::data_movement: return "copies";
    case OpFamily::random: return "dropout";
    case OpFamily::loss: return "loss";
    case OpFamily::optimizer: return "optimizer";
    case OpFamily::transfer: return "host transfers";
    case OpFamily::collective: return "collectives";
  }
  return "other";
}

kernel::Bound NodeGroup::bound() const {
  return static_cast<kernel::Bound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
}

std::vector<NodeGroup> node_groups(const report::Prediction& p) {
  std::vector<NodeGroup> groups;
  std::unordered_map<std::string, std::size_t> index;
  for (const auto& row : p.nodes) {
    const auto& distinct = p.distinct[row.distinct];
    if (distinct.kernels.empty()) continue;
    const graph::Node& node = p.graph.node(row.node);
    const auto product = product_of(distinct);
    std::string name = report::name_pattern(node.id);
    std::string key = fmt::format("{}|{}|{}", name, graph::to_string(node.op), static_cast<int>(node.phase));
    if (product) key += fmt::format("|{}x{}", product->n, product->k);
    const auto [at, fresh] = index.try_emplace(key, groups.size());
    if (fresh) {
      NodeGroup g;
      g.key = std::move(key);
      g.name = node.id;
      g.op = graph::to_string(node.op);
      g.family = graph::family(node.op);
      g.phase = node.phase;
      g.product = product;
      g.dense = node.attributes.word("dense", "");
      groups.push_back(std::move(g));
    }
    NodeGroup& g = groups[at->second];
    if (!fresh) g.name = std::move(name);
    g.count += row.repeats;
    for (const auto& k : distinct.kernels) {
      const double t = row.repeats * k.cost.time.value;
      g.time_s += t;
      g.roofline_s += row.repeats * k.cost.roofline.value;
      g.launches += row.repeats;
      g.by_bound[static_cast<std::size_t>(k.cost.bound())] += t;
    }
  }
  return groups;
}

std::string sparsity_reason(const NodeGroup& base, const NodeGroup& side) {
  if (!side.product) return side.dense.empty() ? not_a_product(side.family) : side.dense;
  if (!side.product->sparse) {
    const bool chosen = side.dense.starts_with("the dense kernel");
    return chosen ? fmt::format("{}: {}", side.dense, limit_of(side)) : side.dense;
  }
  const double speedup = side.time_s > 0 ? base.time_s / side.time_s : 1;
  const std::string limit = limit_of(side);
  if (speedup < 0.995) return fmt::format("{:.2f}x, sparse is slower: {}", speedup, limit);
  if (speedup < 1.005) return fmt::format("no gain: {}", limit);
  return fmt::format("{:.2f}x, {}", speedup, limit);
}

std::string sparsity_class_reason(const std::vector<NodeGroup>& side, std::string_view name, double base_s,
                                  double side_s) {
  double total = 0, sparse = 0;
  std::map<std::string, double> others;  // by reason: seconds
  for (const NodeGroup& g : side) {
    if (class_name(g.family) != name) continue;
    total += g.time_s;
    if (g.product && g.product->sparse) {
      sparse += g.time_s;
    } else {
      others[g.dense.empty() ? not_a_product(g.family) : g.dense] += g.time_s;
    }
  }
  std::vector<std::pair<std::string, double>> order(others.begin(), others.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (!(sparse > 0)) return order.empty() ? std::string("nothing to multiply") : order.front().first;
  std::string text = fmt::format("{:.2f}x: sparse weights in {:.0f} % of its time", side_s > 0 ? base_s / side_s : 1,
                                 100 * sparse / total);
  for (const auto& [reason, seconds] : order) {
    const double percent = 100 * seconds / total;
    text += percent < 1 ? fmt::format("; under 1 %: {}", reason) : fmt::format("; {:.0f} %: {}", percent, reason);
  }
  return text;
}

}  // namespace voltaic::study
