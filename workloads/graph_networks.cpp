// SPDX-License-Identifier: MIT
// Networks over the nodes of a graph, trained and run on all nodes at once: graph convolution [Kipf17] and GraphSAGE
// with mean aggregation [Hamilton17]. A sparse product gathers from the neighbours; `gcn` and `graphsage` take a graph
// of any size by `--dim nodes=,edges=,features=,hidden=,classes=,layers=`. A batch is that many graphs side by side.
#include <array>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

/// A public graph, and the network usually trained on it. Edges are counted once per direction.
struct GraphSize {
  Dim nodes, edges, features, classes;
  Dim hidden, layers;
  bool norms;  ///< Batch norms between the layers.
};

// Citation networks [Yang16], Reddit [Hamilton17], the node tasks of OGB [Hu20] with the networks of its baselines.
constexpr GraphSize kCora{2708, 10556, 1433, 7, 16, 2, false};
constexpr GraphSize kCiteseer{3327, 9104, 3703, 6, 16, 2, false};
constexpr GraphSize kPubmed{19717, 88648, 500, 3, 16, 2, false};
constexpr GraphSize kReddit{232965, 114615892, 602, 41, 256, 2, false};
constexpr GraphSize kArxiv{169343, 2315598, 128, 40, 256, 3, true};
constexpr GraphSize kProducts{2449029, 123718280, 100, 47, 256, 3, false};

constexpr double kDropout = 0.5;

/// Weights of all edges times the rows of x that they point at, summed (or averaged) by the node they end in.
TensorId gather_neighbours(GraphWriter& w, TensorId x, TensorId edges, TensorId weights, bool mean) {
  graph::Attributes attrs = attributes({{"rows", w.dim(x, 0)}});
  if (mean) attrs.set("reduce", std::string("mean"));
  std::vector<TensorId> inputs{x, edges};
  if (!mean) inputs.push_back(weights);
  return w.apply_all(OpType::spmm, "gather", std::move(inputs), std::move(attrs));
}

/// A' x W + b, the product first: it narrows what the edges carry.
TensorId convolve(GraphWriter& w, TensorId x, TensorId edges, TensorId weights, Dim out) {
  const TensorId y = gather_neighbours(w, w.linear("linear", x, out, false), edges, weights, false);
  return w.apply(OpType::add, "bias", {y, w.parameter("bias", {out})});
}

/// W1 mean(neighbours) + W2 x + b.
TensorId sage(GraphWriter& w, TensorId x, TensorId edges, Dim out) {
  const TensorId around = w.linear("neighbours", gather_neighbours(w, x, edges, 0, true), out, true);
  return w.apply(OpType::add, "add", {around, w.linear("self", x, out, false)});
}

GraphSize with_dims(GraphSize size, const BuildOptions& options) {
  size.nodes = resolve_dim(options, "nodes", size.nodes);
  size.edges = resolve_dim(options, "edges", size.edges);
  size.features = resolve_dim(options, "features", size.features);
  size.classes = resolve_dim(options, "classes", size.classes);
  size.hidden = resolve_dim(options, "hidden", size.hidden);
  size.layers = resolve_dim(options, "layers", size.layers);
  return size;
}

void build(bool is_sage, const GraphSize& own, const BuildOptions& options, Workload& workload) {
  constexpr Dim kMostLayers = 1024;
  const Dim graphs = resolve_samples(options, workload, {"nodes", "edges", "features", "hidden", "classes", "layers"});
  const GraphSize size = with_dims(own, options);
  if (size.layers > kMostLayers) {
    throw ConfigError(workload.name, "", "expected --dim layers up to 1024, got " + std::to_string(size.layers));
  }
  GraphWriter w(workload.graph, workload.name, options.training);
  const Dim nodes = graphs * size.nodes;
  Dim entries = size.edges + (is_sage ? 0 : size.nodes);  // Graph convolution joins each node to itself.
  if (__builtin_mul_overflow(entries, graphs, &entries)) {
    throw ConfigError(workload.name, "", "expected at most 2^62 edges, got more");
  }
  TensorId x = w.input("features", {nodes, size.features});
  const TensorId edges = w.input("edges", {entries}, DataType::int64);
  const TensorId weights = is_sage ? 0 : w.input("edge_weights", {entries});
  for (Dim layer = 1; layer <= size.layers; ++layer) {
    const bool last = layer == size.layers;
    const Dim out = last ? size.classes : size.hidden;
    w.scope("layer" + std::to_string(layer));
    x = is_sage ? sage(w, x, edges, out) : convolve(w, x, edges, weights, out);
    if (last) break;
    if (size.norms) x = batch_norm(w, "norm", x);
    x = w.dropout("dropout", w.apply(OpType::relu, "relu", {x}), kDropout);
  }
  classify(w, workload, x);
}

template <bool kSage, const GraphSize& kSize>
void build_on(const BuildOptions& options, Workload& workload) {
  build(kSage, kSize, options, workload);
}

constexpr ZooModel kModels[] = {
    {"gcn", "graph", "Graph convolution on Cora, or on the sizes of --dim", build_on<false, kCora>},
    {"gcn-cora", "graph", "Graph convolution, 2 layers, Cora: 2,708 nodes", build_on<false, kCora>},
    {"gcn-citeseer", "graph", "Graph convolution, 2 layers, CiteSeer: 3,327 nodes", build_on<false, kCiteseer>},
    {"gcn-pubmed", "graph", "Graph convolution, 2 layers, PubMed: 19,717 nodes", build_on<false, kPubmed>},
    {"gcn-reddit", "graph", "Graph convolution, 2 layers, Reddit: 115 M edges", build_on<false, kReddit>},
    {"gcn-arxiv", "graph", "Graph convolution, 3 layers, ogbn-arxiv: 169,343 nodes", build_on<false, kArxiv>},
    {"gcn-products", "graph", "Graph convolution, 3 layers, ogbn-products: 124 M edges", build_on<false, kProducts>},
    {"graphsage", "graph", "GraphSAGE on Cora, or on the sizes of --dim", build_on<true, kCora>},
    {"graphsage-reddit", "graph", "GraphSAGE, 2 layers, Reddit: 115 M edges", build_on<true, kReddit>},
    {"graphsage-arxiv", "graph", "GraphSAGE, 3 layers, ogbn-arxiv: 169,343 nodes", build_on<true, kArxiv>},
    {"graphsage-products", "graph", "GraphSAGE, 3 layers, ogbn-products: 124 M edges", build_on<true, kProducts>},
};

}  // namespace

std::span<const ZooModel> graph_models() {
  return kModels;
}

}  // namespace voltaic::workloads
