// SPDX-License-Identifier: MIT
// Graph networks against the sizes of public graphs and the baselines trained on them.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"
#include "tests/workloads/training.hpp"

namespace voltaic::workloads {
namespace {

Workload with_dims(const std::string& name, std::map<std::string, std::int64_t> dims, std::int64_t batch = 1) {
  BuildOptions options;
  options.batch = batch;
  options.dims = std::move(dims);
  return load_workload(name, options);
}

/// Entries of the sparse matrix that the first layer multiplies by.
std::int64_t entries(const Workload& workload) {
  for (const auto& node : workload.graph.nodes()) {
    if (node.op == graph::OpType::spmm) return workload.graph.tensor(node.inputs[1]).elements();
  }
  return 0;
}

}  // namespace

TEST_CASE("graph networks have the parameters of the published baselines", "[workloads][graphnet]") {
  // Cora: 1433 x 16 + 16 + 16 x 7 + 7 [Kipf17].
  CHECK(test::load("gcn").parameters == 23063);
  CHECK(test::load("gcn-cora").parameters == 23063);
  CHECK(test::load("gcn-citeseer").parameters == 3703 * 16 + 16 + 16 * 6 + 6);
  CHECK(test::load("gcn-pubmed").parameters == 500 * 16 + 16 + 16 * 3 + 3);
  // The leader boards of ogbn-arxiv and ogbn-products [Hu20].
  CHECK(test::load("gcn-arxiv").parameters == 110120);
  CHECK(test::load("graphsage-arxiv").parameters == 218664);
  CHECK(test::load("gcn-products").parameters == 103727);
  CHECK(test::load("graphsage-products").parameters == 206895);
  CHECK(test::load("graphsage-reddit").parameters == 2 * 602 * 256 + 256 + 2 * 256 * 41 + 41);
}

TEST_CASE("graphs have their published nodes and edges", "[workloads][graphnet]") {
  // Convolution adds an edge from each node to itself.
  CHECK(entries(test::load("gcn-cora")) == 10556 + 2708);
  CHECK(entries(test::load("graphsage-reddit")) == 114615892);
  CHECK(entries(test::load("graphsage-products")) == 123718280);
  const Workload products = test::load("gcn-products");
  CHECK(products.graph.tensor(products.graph.outputs.front()).shape == graph::Shape{2449029, 47});
}

TEST_CASE("a graph of any size runs by its dims", "[workloads][graphnet]") {
  const Workload own =
      with_dims("gcn", {{"nodes", 100}, {"edges", 500}, {"features", 8}, {"hidden", 4}, {"classes", 3}, {"layers", 3}});
  CHECK(own.parameters == 8 * 4 + 4 + 4 * 4 + 4 + 4 * 3 + 3);
  CHECK(entries(own) == 600);
  // A batch is that many graphs side by side.
  CHECK(entries(with_dims("gcn", {{"nodes", 100}, {"edges", 500}}, 8)) == 8 * 600);
}

TEST_CASE("convolution narrows before it gathers, GraphSAGE gathers first", "[workloads][graphnet]") {
  const std::vector<std::string> convolution{"linear", "spmm", "add", "relu"};
  CHECK(test::kernels_of(test::load("gcn"), "layer1") == convolution);
  const std::vector<std::string> sage{"spmm", "linear", "linear", "add", "relu"};
  CHECK(test::kernels_of(test::load("graphsage"), "layer1") == sage);
}

TEST_CASE("training of graph networks reaches every parameter", "[workloads][graphnet][backward]") {
  for (const std::string name : {"gcn", "gcn-arxiv", "gcn-products", "graphsage", "graphsage-arxiv"}) {
    CAPTURE(name);
    CHECK(test::untrained(test::load(name, true)).empty());
  }
}

TEST_CASE("graphs that cannot be are refused", "[workloads][graphnet]") {
  CHECK(test::contains(test::message_of<UsageError>([] { with_dims("gcn", {{"node", 5}}); }), "did you mean 'nodes'?"));
  CHECK(test::contains(test::message_of<UsageError>([] { with_dims("gcn", {{"edges", 0}}); }), "--dim edges"));
  CHECK(test::contains(test::message_of<ConfigError>([] {
                         with_dims("gcn", {{"layers", 5000}});
                       }),
                       "gcn: expected --dim layers up to 1024"));
  constexpr std::int64_t kMost = 2147483647;
  CHECK_THROWS_AS(with_dims("gcn", {{"edges", kMost}, {"nodes", kMost}}, kMost), ConfigError);
}

}  // namespace voltaic::workloads
