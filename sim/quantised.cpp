// SPDX-License-Identifier: MIT
#include "sim/quantised.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace voltaic {
namespace {

std::string weight_only_text(graph::Precision precision) {
  const bool bits8 = precision == graph::Precision::w8a16;
  return fmt::format(
      "{}: weights of dense layers in {} with an fp16 scale per {}, expanded to fp16 inside the product; the output "
      "layer is quantised too unless an embedding shares its weights; embeddings, norms, attention, cache stay fp16",
      graph::to_string(precision), bits8 ? "int8" : "int4",
      bits8 ? "output channel" : fmt::format("{} weights", graph::scale_group(DataType::int4, std::int64_t{1} << 40)));
}

bool is_quantised(graph::Precision precision) {
  using graph::Precision;
  return precision == Precision::int8 || precision == Precision::int4 || precision == Precision::fp8;
}

std::string quantised_text(graph::Precision precision) {
  return fmt::format(
      "{0}: products and convolutions multiply {0} by {0} and write fp16; a kernel quantises each activation once, "
      "with a scale per token, unless it is {0} already; weights are quantised beforehand; all else runs in fp16",
      graph::to_string(precision));
}

std::string engine_text(const arch::GpuSpec& gpu, graph::Precision precision) {
  if (engine_precision(gpu, precision) != precision) {
    return fmt::format("{}: {} has no tensor cores for it; the engine runs its fp16 kernels, which are faster",
                       graph::to_string(precision), gpu.name);
  }
  return fmt::format(
      "{0}: scales are fixed when the engine is built; activations that products of {0} read and write stay {0} "
      "between "
      "kernels; norms, softmax and attention compute in fp16",
      graph::to_string(precision));
}

}  // namespace

graph::Precision engine_precision(const arch::GpuSpec& gpu, graph::Precision precision) {
  const bool cuda_cores = precision == graph::Precision::int8 && !gpu.has_tensor_path(DataType::int8);
  return cuda_cores && gpu.has_tensor_path(DataType::fp16) ? graph::Precision::fp16 : precision;
}

std::vector<std::string> storage_assumptions(graph::Precision precision, bool sparsity, const arch::GpuSpec* engine) {
  std::vector<std::string> out;
  if (graph::is_weight_only(precision)) out.push_back(weight_only_text(precision));
  if (is_quantised(precision)) {
    out.push_back(engine != nullptr ? engine_text(*engine, precision) : quantised_text(precision));
  }
  if (sparsity) {
    out.emplace_back("2:4: weights of dense layers are pruned and compressed beforehand; activations stay dense");
  }
  return out;
}

bool has_sparse_weight(const graph::OpGraph& graph, const graph::Node& node) {
  return graph::family(node.op) == graph::OpFamily::matrix && node.inputs.size() > 1 &&
         graph.tensor(node.inputs[1]).sparse;
}

void store_unused_sparsity_dense(report::Prediction& p) {
  std::vector<bool> used(p.graph.tensors().size(), false);
  std::vector<graph::NodeId> dense;
  for (const auto& row : p.nodes) {
    const graph::Node& node = p.graph.node(row.node);
    if (!has_sparse_weight(p.graph, node)) continue;
    const auto& kernels = p.distinct[row.distinct].kernels;
    const bool sparse = std::any_of(kernels.begin(), kernels.end(), [](const auto& k) { return k.launch.sparse; });
    if (sparse) {
      used[node.inputs[1]] = true;
      if (const auto weight = graph::weight_of(p.graph, node)) used[*weight] = true;
    } else {
      dense.push_back(row.node);
    }
  }
  for (const graph::NodeId n : dense) {
    graph::Node& node = p.graph.node(n);
    node.attributes.set("dense", std::string(kDenseIsAsFast));
    const auto weight = graph::weight_of(p.graph, node);
    if (!used[node.inputs[1]]) p.graph.tensor(node.inputs[1]).sparse = false;
    if (weight && !used[*weight]) p.graph.tensor(*weight).sparse = false;
  }
}

}  // namespace voltaic
