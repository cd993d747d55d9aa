// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// One dense layer of n x n weights, trained.
Sketch trained(std::int64_t n, Precision precision, Optimizer optimizer) {
  Sketch g;
  const TensorId x = g.input("x", {1, n});
  g.graph.outputs = {g.op(OpType::linear, "fc", {x, g.parameter("w", {n, n})})};
  assign_precision(g.graph, precision);
  append_backward(g.graph);
  append_optimizer(g.graph, optimizer, precision);
  return g;
}

double sum_of(const OpGraph& graph, std::string_view attribute) {
  double sum = 0;
  for (const Node* node : nodes_of(graph, Phase::optimizer)) {
    if (node->op == OpType::optimizer_step) sum += node->attributes.number(attribute, 0);
  }
  return sum;
}

}  // namespace

TEST_CASE("optimizer names are read as they are written", "[graph][optimizer]") {
  for (const auto o : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::adamw, Optimizer::lamb}) {
    CHECK(parse_optimizer(to_string(o)) == o);
  }
  CHECK_FALSE(parse_optimizer("adagrad"));
}

TEST_CASE("SGD, momentum and Adam keep 0, 4 and 8 bytes per parameter", "[graph][optimizer][memory]") {
  const std::int64_t n = 1024;
  const double elements = 1024.0 * 1024;
  const std::int64_t sgd = plan_memory(trained(n, Precision::fp32, Optimizer::sgd).graph).total();
  CHECK(plan_memory(trained(n, Precision::fp32, Optimizer::momentum).graph).total() - sgd == 4 * n * n);
  CHECK(plan_memory(trained(n, Precision::fp32, Optimizer::adam).graph).total() - sgd == 8 * n * n);
  CHECK(optimizer_state_bytes(Optimizer::adam, Precision::fp32) == 8);
  CHECK(sum_of(trained(n, Precision::fp32, Optimizer::adam).graph, "read_bytes") == 16 * elements);     // p, g, m, v
  CHECK(sum_of(trained(n, Precision::fp32, Optimizer::adam).graph, "written_bytes") == 12 * elements);  // p, m, v
  CHECK(sum_of(trained(n, Precision::fp32, Optimizer::sgd).graph, "read_bytes") == 8 * elements);
}

TEST_CASE("mixed-precision Adam holds 16 bytes of model states per parameter", "[graph][optimizer][memory]") {
  for (const auto precision : {Precision::mixed_fp16, Precision::mixed_bf16}) {
    const MemoryPlan plan = plan_memory(trained(512, precision, Optimizer::adam).graph);
    CHECK(plan.weights + plan.gradients + plan.optimizer_state == 16 * 512 * 512);
  }
}

TEST_CASE("only fp16 gradients are unscaled", "[graph][optimizer]") {
  CHECK(count_ops(trained(64, Precision::mixed_fp16, Optimizer::adam).graph, OpType::grad_scale) == 1);
  CHECK(count_ops(trained(64, Precision::mixed_bf16, Optimizer::adam).graph, OpType::grad_scale) == 0);
}

TEST_CASE("a launch ends after 320 chunks of 65,536 elements", "[graph][optimizer]") {
  // 8192^2 elements are 1024 chunks: launches of 320, 320, 320 and 64.
  const Sketch g = trained(8192, Precision::fp32, Optimizer::adam);
  CHECK(count_ops(g.graph, OpType::optimizer_step) == 4);
  CHECK(sum_of(g.graph, "elements") == 8192.0 * 8192);
}

TEST_CASE("a launch takes at most as many small tensors as its arguments hold", "[graph][optimizer]") {
  Sketch g;
  TensorId x = g.input("x", {1, 8});
  for (int i = 0; i < 100; ++i) {
    const std::string n = std::to_string(i);
    x = g.op(OpType::linear, "fc" + n, {x, g.parameter("w" + n, {8, 8})});
  }
  g.graph.outputs = {x};
  append_backward(g.graph);
  append_optimizer(g.graph, Optimizer::adam, Precision::fp32);
  CHECK(count_ops(g.graph, OpType::optimizer_step) == 3);  // 36 + 36 + 28.
  CHECK(nodes_of(g.graph, Phase::optimizer)[0]->inputs.size() == 72);
}

TEST_CASE("a graph without gradients gets no optimizer", "[graph][optimizer]") {
  Sketch g = mlp();
  append_optimizer(g.graph, Optimizer::adam, Precision::fp32);
  CHECK(nodes_of(g.graph, Phase::optimizer).empty());
}

TEST_CASE("a step over more parameters than any memory holds is refused at once", "[graph][optimizer]") {
  Sketch g;
  const TensorId table = g.parameter("table", {std::int64_t{1} << 62, 1});
  g.graph.outputs = {g.op(OpType::embedding, "embed", {g.input("ids", {1}, DataType::int64), table})};
  append_backward(g.graph);
  CHECK_THROWS_AS(append_optimizer(g.graph, Optimizer::adam, Precision::fp32), UnsupportedError);
}
