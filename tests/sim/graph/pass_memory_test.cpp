// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

TEST_CASE("activations live from their first to their last use", "[graph][memory]") {
  Sketch g;
  const TensorId x = g.input("x", {256});  // 1 KiB each
  const TensorId a = g.op(OpType::relu, "a", {x});
  const TensorId b = g.op(OpType::relu, "b", {a});
  const TensorId c = g.op(OpType::relu, "c", {b});
  g.graph.outputs = {c};
  CHECK(plan_memory(g.graph).activations == 3 * 1024);  // x is held by the caller; then a and b, or b and c.
  g.graph.outputs = {c, a};
  CHECK(plan_memory(g.graph).activations == 4 * 1024);
}

TEST_CASE("views share the storage of their source", "[graph][memory]") {
  Sketch g;
  const TensorId a = g.op(OpType::relu, "a", {g.input("x", {256})});
  const TensorId v = g.op(OpType::reshape, "v", {a}, {{"shape", std::vector<std::int64_t>{16, 16}}});
  const TensorId t = g.op(OpType::transpose, "t", {v});
  g.graph.outputs = {g.op(OpType::exp, "e", {t})};
  CHECK(plan_memory(g.graph).activations == 3 * 1024);
}

TEST_CASE("each tensor takes whole blocks of 512 bytes", "[graph][memory]") {
  Sketch g;
  const TensorId x = g.input("x", {1, 3});
  g.graph.outputs = {g.op(OpType::linear, "fc", {x, g.parameter("w", {5, 3}), g.parameter("b", {5})})};
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.weights == 2 * 512);
  CHECK(plan.activations == 2 * 512);
  CHECK(plan.total() == 4 * 512);
}

TEST_CASE("a cache is a part of its own and other buffers are weights", "[graph][memory]") {
  Sketch g;
  const TensorId k = g.add("kv_cache.0.k", {1, 4, 32, 8}, TensorRole::buffer);
  const TensorId m = g.add("running_mean", {128}, TensorRole::buffer);
  g.graph.outputs = {g.op(OpType::relu, "a", {k}), g.op(OpType::relu, "b", {m})};
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.kv_cache == 4 * 32 * 8 * 4);
  CHECK(plan.weights == 512);
}

TEST_CASE("training keeps what backward reads", "[graph][memory]") {
  // x[256, 256] -> fc1 -> relu -> fc2, all squares of 256 KiB.
  Sketch g;
  const TensorId x = g.input("x", {256, 256});
  const TensorId h = g.op(OpType::linear, "fc1", {x, g.parameter("w1", {256, 256})});
  const TensorId a = g.op(OpType::relu, "act", {h});
  g.graph.outputs = {g.op(OpType::linear, "fc2", {a, g.parameter("w2", {256, 256})})};
  const std::int64_t k = 256 * 256 * 4;
  CHECK(plan_memory(g.graph).activations == 3 * k);  // x, then h and a, or a and y.
  append_backward(g.graph);
  append_optimizer(g.graph, Optimizer::adam, Precision::fp32);
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.weights == 2 * k);
  CHECK(plan.gradients == 2 * k);
  CHECK(plan.optimizer_state == 4 * k);
  // At fc2's data gradient: x, a, y (an output), dy, da. At relu's: x, a, y, da, dh; dy is done with.
  CHECK(plan.activations == 5 * k);
}

TEST_CASE("a loss keeps its log-probabilities until backward", "[graph][memory]") {
  Sketch g;
  const TensorId logits = g.op(OpType::linear, "fc", {g.input("x", {128, 8}), g.parameter("w", {1024, 8})});
  g.graph.loss = g.op(OpType::cross_entropy, "loss", {logits, g.input("labels", {128}, DataType::int64)});
  append_backward(g.graph);
  const std::int64_t row = 128 * 1024 * 4;
  // Logits, log-probabilities, their gradient and the logits' gradient; x, labels, the loss and its gradient are small.
  CHECK(plan_memory(g.graph).activations == 4 * row + 128 * 8 * 4 + 128 * 8 + 2 * 512);
}

TEST_CASE("fusion never needs more memory than the chain it replaces", "[graph][memory][fusion]") {
  Sketch g = transformer();
  append_backward(g.graph);
  Sketch f = g;
  fuse_pointwise(f.graph);
  CHECK(plan_memory(f.graph).activations <= plan_memory(g.graph).activations);
}

TEST_CASE("sizes beyond any machine are refused, not wrapped around", "[graph][memory]") {
  Sketch g;
  g.graph.outputs = {g.op(OpType::relu, "a", {g.input("x", {std::int64_t{1} << 62})})};
  CHECK_THROWS_AS(plan_memory(g.graph), UnsupportedError);
}

TEST_CASE("an empty graph needs nothing", "[graph][memory]") {
  OpGraph graph;
  CHECK(plan_memory(graph).total() == 0);
  append_backward(graph);
  CHECK(fuse_pointwise(graph) == 0);
  CHECK(graph.nodes().empty());
}
