// SPDX-License-Identifier: MIT
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// x[6, 2, 8] through one LSTM of 16 units.
TensorId lstm(Sketch& g, TensorId x, std::size_t outputs = 1) {
  return g.op(OpType::lstm, "rnn",
              {x, g.parameter("w_ih", {64, 8}), g.parameter("w_hh", {64, 16}), g.parameter("b_ih", {64}),
               g.parameter("b_hh", {64})},
              {{"hidden", std::int64_t{16}}}, outputs);
}

const Node& only(const OpGraph& graph, OpType op) {
  const Node* found = nullptr;
  for (const Node& n : graph.nodes()) {
    if (n.op == op) found = &n;
  }
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("a recurrent layer goes back through time once and gives each weight a gradient", "[graph][backward]") {
  Sketch g;
  g.graph.outputs = {lstm(g, g.input("x", {6, 2, 8}))};
  append_backward(g.graph);
  CHECK(count_ops(g.graph, OpType::rnn_backward) == 1);
  CHECK(count_ops(g.graph, OpType::rnn_wgrad) == 1);
  const Node& wgrad = only(g.graph, OpType::rnn_wgrad);
  REQUIRE(wgrad.outputs.size() == 4);
  CHECK(g.graph.tensor(wgrad.outputs[1]).shape == Shape{64, 16});
  CHECK(wgrad.attributes.word("of", "") == "lstm");
  int gradients = 0;
  for (const Tensor& t : g.graph.tensors()) gradients += t.role == TensorRole::parameter_gradient ? 1 : 0;
  CHECK(gradients == 4);
}

TEST_CASE("each gradient of a recurrent layer does the forward's multiply-adds", "[graph][backward]") {
  Sketch g;
  g.graph.outputs = {lstm(g, g.input("x", {6, 2, 8}))};
  append_backward(g.graph);
  const double forward = count(g.graph, only(g.graph, OpType::lstm)).mac;
  CHECK_THAT(forward, WithinRel(12.0 * 64 * (8 + 16), 1e-12));
  CHECK_THAT(count(g.graph, only(g.graph, OpType::rnn_backward)).mac, WithinRel(forward, 1e-12));
  CHECK_THAT(count(g.graph, only(g.graph, OpType::rnn_wgrad)).mac, WithinRel(forward, 1e-12));
}

TEST_CASE("where only the last state is used, steps get a gradient of zeros", "[graph][backward]") {
  Sketch g;
  const TensorId y = lstm(g, g.input("x", {6, 2, 8}), 3);
  const TensorId last = y + 1;
  g.graph.outputs = {g.op(OpType::relu, "use", {last})};
  append_backward(g.graph);
  CHECK(count_ops(g.graph, OpType::fill) >= 1);
  const Node& dgrad = only(g.graph, OpType::rnn_backward);
  CHECK(dgrad.inputs.size() == 7);  // dy, x, four parameters, the state's gradient
}

TEST_CASE("training keeps gates and cell states of a recurrent layer until backward", "[graph][memory]") {
  const auto gru = [](std::int64_t steps) {
    Sketch g;
    const TensorId x = g.input("x", {steps, 32, 128});
    g.graph.outputs = {g.op(OpType::gru, "rnn", {x, g.parameter("w_ih", {384, 128}), g.parameter("w_hh", {384, 128})},
                            {{"hidden", std::int64_t{128}}})};
    append_backward(g.graph);
    return plan_memory(g.graph).activations;
  };
  // Per step 32 rows of 128 in fp32: x, y, dy and dx, and 4 values per unit that the layer keeps for itself.
  CHECK(gru(200) - gru(100) == 100 * 32 * 128 * 4 * 8);
}
