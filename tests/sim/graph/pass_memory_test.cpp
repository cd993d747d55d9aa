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

TEST_CASE("parts are exact and what whole blocks of 512 bytes lose stands apart", "[graph][memory]") {
  Sketch g;
  const TensorId x = g.input("x", {1, 3});
  g.graph.outputs = {g.op(OpType::linear, "fc", {x, g.parameter("w", {5, 3}), g.parameter("b", {5})})};
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.weights == 4 * (15 + 5));
  CHECK(plan.activations == 4 * (3 + 5));
  CHECK(plan.total() == 4 * 512);
  CHECK(plan.allocator == 4 * 512 - plan.weights - plan.activations);
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
  // At fc2's weight gradient: x, a, y (an output), dy, da and the first gradient. At relu's backward: x, a, y, da, dh
  // and that gradient. Two of these six are the gradients' room, taken by the end anyway.
  CHECK(plan.activations == 4 * k);
}

TEST_CASE("a loss keeps its log-probabilities until backward", "[graph][memory]") {
  Sketch g;
  const TensorId logits = g.op(OpType::linear, "fc", {g.input("x", {128, 8}), g.parameter("w", {1024, 8})});
  g.graph.loss = g.op(OpType::cross_entropy, "loss", {logits, g.input("labels", {128}, DataType::int64)});
  append_backward(g.graph);
  const std::int64_t row = 128 * 1024 * 4;
  // Logits, log-probabilities, their gradient and the logits' gradient; x, labels, the loss and its gradient are small.
  // The gradient of w takes less than what has died by then, so its room is not needed on top.
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.activations + plan.gradients == 4 * row + 128 * 8 * 4 + 128 * 8 + 2 * 4);
}

TEST_CASE("fusion needs no more memory than the chain it replaces", "[graph][memory][fusion]") {
  Sketch g = transformer();
  append_backward(g.graph);
  Sketch f = g;
  fuse_pointwise(f.graph);
  // But for a block: a kernel that takes in others moves behind a small gradient that already stays.
  CHECK(plan_memory(f.graph, {{}, true}).total() <= plan_memory(g.graph).total() + 512);
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

TEST_CASE("gradients take the room that activations leave", "[graph][memory]") {
  // A chain of square layers: at the start of backward all activations live, at its end all gradients do.
  const auto plan_of = [](std::int64_t rows) {
    Sketch g;
    TensorId x = g.input("x", {rows, 256});
    for (int i = 0; i < 8; ++i) {
      const std::string n = std::to_string(i);
      x = g.op(OpType::linear, "fc" + n, {x, g.parameter("w" + n, {256, 256})});
    }
    g.graph.outputs = {x};
    append_backward(g.graph);
    return plan_memory(g.graph);
  };
  const MemoryPlan small = plan_of(8);
  const MemoryPlan large = plan_of(1024);
  CHECK(small.gradients == 8 * 256 * 256 * 4);
  CHECK(large.gradients == small.gradients);
  CHECK(small.activations < 8 * 8 * 256 * 4);  // Nearly all that lives at the end are gradients.
  CHECK(large.activations + large.gradients <
        12 * 1024 * 256 * 4);  // x and 8 results, one gradient, dw: not both sums.
}

TEST_CASE("scratch counts where its kernel runs, not where memory is free", "[graph][memory]") {
  Sketch g;
  const TensorId a = g.op(OpType::exp, "a", {g.input("x", {256})});
  const TensorId b = g.op(OpType::concat, "b", {a, a, a, a}, {{"axis", std::int64_t{0}}});
  g.graph.outputs = {g.op(OpType::exp, "c", {b})};
  const std::vector<std::int64_t> at_first{1024, 0, 0};
  const MemoryPlan plan = plan_memory(g.graph, {at_first, false});
  CHECK(plan.workspace == 0);  // x, b and c need more than x, a and 1 KiB.
  CHECK(plan.activations == 9 * 1024);
  const std::vector<std::int64_t> larger{16 * 1024, 0, 0};
  CHECK(plan_memory(g.graph, {larger, false}).workspace == 16 * 1024);
  CHECK(plan_memory(g.graph, {larger, false}).total() == 18 * 1024);
}

TEST_CASE("convolution networks write activations over their operands, compilers any pointwise result",
          "[graph][memory]") {
  Sketch g;
  const TensorId x = g.input("x", {1, 4, 16, 16});  // 4 KiB, as every result
  const TensorId y = g.op(OpType::conv2d, "conv", {x, g.parameter("w", {4, 4, 1, 1})});
  const TensorId r = g.op(OpType::relu, "relu", {y});
  g.graph.outputs = {g.op(OpType::exp, "exp", {r})};
  CHECK(plan_memory(g.graph).activations == 3 * 4096);  // x; the convolution and its relu in one place; exp.
  CHECK(plan_memory(g.graph, {{}, true}).activations == 2 * 4096);

  Sketch linear;  // Nothing asks for it here, so x, h and a live at once.
  const TensorId h = linear.op(OpType::linear, "fc", {linear.input("x", {32, 32}), linear.parameter("w", {32, 32})});
  linear.graph.outputs = {linear.op(OpType::relu, "act", {h})};
  CHECK(plan_memory(linear.graph).activations == 3 * 4096);
}

TEST_CASE("an operand that backward reads is not written over", "[graph][memory]") {
  Sketch g;
  const TensorId x = g.input("x", {1, 4, 16, 16});
  const TensorId y = g.op(OpType::conv2d, "conv", {x, g.parameter("w", {4, 4, 1, 1})});
  g.graph.outputs = {g.op(OpType::silu, "silu", {y})};  // Its backward reads y.
  append_backward(g.graph);
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.activations + plan.gradients >= 5 * 4096);  // x, y, the output, its gradient and y's.
}

TEST_CASE("16-bit copies of weights live until the forward pass ends", "[graph][memory]") {
  Sketch g;
  const TensorId x = g.input("x", {4, 256});
  const TensorId h = g.op(OpType::linear, "fc1", {x, g.parameter("w1", {256, 256})});
  g.graph.outputs = {g.op(OpType::linear, "fc2", {h, g.parameter("w2", {256, 256})})};
  assign_precision(g.graph, Precision::mixed_fp16);
  const MemoryPlan plan = plan_memory(g.graph);
  CHECK(plan.weights == 2 * 256 * 256 * 4);
  CHECK(plan.activations >= 2 * 256 * 256 * 2);
  CHECK(plan.activations < 2 * 256 * 256 * 2 + 32 * 1024);
}

TEST_CASE("inputs that are copied to the device lie in host memory", "[graph][memory]") {
  Sketch g;
  g.graph.outputs = {g.op(OpType::exp, "exp", {g.input("x", {256})})};
  const std::int64_t held = plan_memory(g.graph).activations;
  copy_inputs(g.graph, true);
  CHECK(plan_memory(g.graph).activations == held);
}

TEST_CASE("memory never falls as rows are added", "[graph][memory][property]") {
  std::int64_t before = 0;
  for (std::int64_t rows = 1; rows < 200; rows += 7) {
    Sketch g;
    const TensorId h = g.op(OpType::linear, "fc", {g.input("x", {rows, 96}), g.parameter("w", {64, 96})});
    g.graph.outputs = {g.op(OpType::gelu, "act", {h})};
    append_backward(g.graph);
    append_optimizer(g.graph, Optimizer::adam, Precision::fp32);
    const std::int64_t now = plan_memory(g.graph).total();
    CHECK(now >= before);
    before = now;
  }
}
