// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// As on Ampere.
SparsePaths ampere() {
  SparsePaths paths{};
  for (const DataType t : {DataType::tf32, DataType::fp16, DataType::bf16, DataType::int8, DataType::int4}) {
    paths[static_cast<std::size_t>(t)] = true;
  }
  return paths;
}

/// x[m, k] through one dense layer of width n.
Sketch layer(std::int64_t n, std::int64_t k) {
  Sketch g;
  g.graph.outputs = {g.op(OpType::linear, "fc", {g.input("x", {32, k}), g.parameter("w", {n, k})})};
  return g;
}

std::string reason(const Sketch& g, const char* node) {
  return find_node(g.graph, node).attributes.word("dense", "");
}

Sketch sparse(Sketch g, Precision precision) {
  assign_precision(g.graph, precision);
  sparsify_weights(g.graph, ampere());
  return g;
}

}  // namespace

TEST_CASE("a 2:4 sparse weight keeps half its elements and two bits of place for each", "[graph][sparsity]") {
  const Sketch g = sparse(layer(64, 128), Precision::fp16);
  CHECK(reason(g, "fc").empty());
  CHECK(find_tensor(g.graph, "w").sparse);
  CHECK(find_tensor(g.graph, "w").bytes() == 64 * 128 * (2 * 0.5 + 0.5 * 2 / 8));
  CHECK(plan_memory(g.graph).weights == 9216);
  CHECK(sparse(layer(64, 128), Precision::int8).graph.tensor(1).bytes() == 64 * 128 * 0.625);
}

TEST_CASE("k must be whole 32-byte pieces and n whole eights", "[graph][sparsity]") {
  struct Case {
    std::int64_t n, k;
    Precision precision;
    const char* reason;
  };
  for (const Case& c : {Case{64, 27, Precision::fp16, "unsupported shape: k = 27 is no multiple of 16"},
                        Case{50257, 64, Precision::fp16, "unsupported shape: n = 50257 is no multiple of 8"},
                        Case{64, 48, Precision::int8, "unsupported shape: k = 48 is no multiple of 32"},
                        Case{64, 48, Precision::bf16, ""}, Case{64, 24, Precision::tf32, ""},
                        Case{64, 64, Precision::fp32, "nothing multiplies fp32 with sparse weights"}}) {
    const Sketch g = sparse(layer(c.n, c.k), c.precision);
    CHECK(reason(g, "fc") == c.reason);
    CHECK(find_tensor(g.graph, "w").sparse == (*c.reason == 0));
  }
}

TEST_CASE("only products with stored weights can be sparse, and each other one says why", "[graph][sparsity]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 64});
  const TensorId w = g.parameter("w", {64, 64});
  const TensorId y = g.op(OpType::linear, "fc", {x, w});
  g.op(OpType::matmul, "scores", {y, y}, {{"transpose_b", std::int64_t{1}}});
  const TensorId table = g.parameter("table", {64, 64});
  g.op(OpType::embedding, "embed", {g.input("ids", {8}, DataType::int64), table});
  g.op(OpType::linear, "tied", {y, table});
  g.op(OpType::grouped_linear, "experts", {g.input("xs", {2, 8, 64}), g.parameter("ws", {2, 64, 64})});
  g.op(OpType::conv2d, "conv", {g.input("image", {1, 64, 8, 8}), g.parameter("filters", {64, 64, 3, 3})});
  g.op(OpType::relu, "relu", {y});
  Sketch mixed = g;
  g = sparse(std::move(g), Precision::fp16);
  CHECK(find_tensor(g.graph, "w").sparse);
  CHECK(reason(g, "scores").find("both operands are activations") != std::string::npos);
  CHECK(reason(g, "tied").find("embedding") != std::string::npos);
  CHECK(reason(g, "experts").find("expert") != std::string::npos);
  CHECK(reason(g, "conv").find("convolutions") != std::string::npos);
  CHECK(reason(g, "relu").empty());
  for (const char* t : {"table", "ws", "filters"}) CHECK_FALSE(find_tensor(g.graph, t).sparse);
  mixed = sparse(std::move(mixed), Precision::mixed_fp16);
  CHECK(reason(mixed, "fc").find("cast") != std::string::npos);
  CHECK_FALSE(find_tensor(mixed.graph, "w").sparse);
}

TEST_CASE("a weight that one product needs dense is dense for all", "[graph][sparsity]") {
  Sketch g;
  const TensorId w = g.parameter("w", {24, 16});
  g.op(OpType::linear, "fits", {g.input("x", {8, 16}), w});
  g.op(OpType::linear, "back", {g.input("z", {8, 24}), g.op(OpType::transpose, "wt", {w})});
  g = sparse(std::move(g), Precision::fp16);
  CHECK(reason(g, "back") == "unsupported shape: k = 24 is no multiple of 16");
  CHECK(reason(g, "fits") == "another product needs the same weights dense");
  CHECK_FALSE(find_tensor(g.graph, "w").sparse);
}
