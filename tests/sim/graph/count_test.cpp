// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <vector>

#include "sim/graph/op_graph.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::graph;

namespace {

/// Counts of one node over fp32 inputs of these shapes.
OpCount counted(OpType op, const std::vector<Shape>& inputs,
                std::initializer_list<std::pair<const char*, Attributes::Value>> attributes = {},
                std::size_t outputs = 1, DataType second = DataType::fp32) {
  OpGraph graph;
  Node node;
  node.id = "n";
  node.op = op;
  for (const auto& [name, value] : attributes) node.attributes.set(name, value);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor tensor;
    tensor.shape = inputs[i];
    tensor.dtype = i == 1 ? second : DataType::fp32;
    node.inputs.push_back(graph.add_tensor(std::move(tensor)));
  }
  const std::vector<std::string> names(outputs, "y");
  return count(graph, graph.node(append(graph, std::move(node), names)));
}

std::int64_t i(std::int64_t value) {
  return value;
}
using Ints = std::vector<std::int64_t>;

/// The definition, by counting.
double pairs_by_counting(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  double pairs = 0;
  for (std::int64_t q = 0; q < queries; ++q) {
    const std::int64_t position = keys - queries + q;
    for (std::int64_t k = 0; k < keys; ++k) {
      const bool seen = !causal || k <= position;
      const bool near = window == 0 || std::abs(position - k) < window;
      pairs += seen && near ? 1 : 0;
    }
  }
  return pairs;
}

}  // namespace

TEST_CASE("matrix products do m n k multiply-adds per batch", "[graph][count]") {
  CHECK(counted(OpType::matmul, {{4096, 4096}, {4096, 4096}}).mac == 68719476736.0);
  CHECK(counted(OpType::matmul, {{4096, 4096}, {4096, 4096}}).flop() == 137438953472.0);
  CHECK(counted(OpType::matmul, {{3, 7, 5}, {7, 2}}, {{"transpose_a", i(1)}}).mac == 3 * 5 * 2 * 7);
  const OpCount linear = counted(OpType::linear, {{8, 512, 1024}, {4096, 1024}, {4096}});
  CHECK(linear.mac == 8.0 * 512 * 1024 * 4096);
  CHECK(linear.other_flop == 8.0 * 512 * 4096);  // The bias.
  CHECK(counted(OpType::grouped_linear, {{8, 100, 64}, {8, 256, 64}}).mac == 8.0 * 100 * 64 * 256);
}

TEST_CASE("65536 cubed is counted exactly", "[graph][count]") {
  CHECK(counted(OpType::matmul, {{65536, 65536}, {65536, 65536}}).flop() == 562949953421312.0);  // 2^49
}

TEST_CASE("a convolution and its two gradients do the same multiply-adds", "[graph][count]") {
  // 32 images of 64 x 112 x 112 outputs, 3 x 7 x 7 taps each.
  const double stem = 32.0 * 64 * 112 * 112 * 3 * 7 * 7;
  const Shape x{32, 3, 224, 224}, w{64, 3, 7, 7}, y{32, 64, 112, 112};
  CHECK(counted(OpType::conv2d, {x, w}, {{"stride", i(2)}, {"padding", i(3)}}).mac == stem);
  CHECK(counted(OpType::conv_dgrad, {y, w}, {{"stride", i(2)}, {"padding", i(3)}, {"input_shape", x}}).mac == stem);
  CHECK(counted(OpType::conv_wgrad, {x, y}, {{"stride", i(2)}, {"padding", i(3)}, {"filter_shape", w}}).mac == stem);
  // Depthwise: one channel per group.
  CHECK(counted(OpType::conv2d, {{1, 32, 8, 8}, {32, 1, 3, 3}}, {{"groups", i(32)}, {"padding", i(1)}}).mac ==
        32.0 * 64 * 9);
  // Transposed: every input position meets 32 output channels and 9 taps, forward and backward.
  const Shape tx{1, 64, 7, 7}, tw{64, 32, 3, 3}, ty{1, 32, 15, 15};
  const double transposed = 64.0 * 49 * 32 * 9;
  CHECK(counted(OpType::conv_transpose2d, {tx, tw}, {{"stride", i(2)}}).mac == transposed);
  CHECK(counted(OpType::conv_dgrad, {ty, tw}, {{"stride", i(2)}, {"transposed", i(1)}, {"input_shape", tx}}).mac ==
        transposed);
  CHECK(counted(OpType::conv_wgrad, {tx, ty}, {{"stride", i(2)}, {"transposed", i(1)}, {"filter_shape", tw}}).mac ==
        transposed);
}

TEST_CASE("a convolution's epilogue counts an operation per output for each of its steps", "[graph][count]") {
  const Shape x{2, 8, 10, 10}, w{16, 8, 3, 3}, b{16}, y{2, 16, 10, 10};
  const double out = 2.0 * 16 * 10 * 10;
  const auto conv = [&](const std::vector<Shape>& inputs, const char* epilogue) {
    const OpCount n = counted(OpType::conv2d, inputs, {{"padding", i(1)}, {"epilogue", std::string(epilogue)}});
    CHECK(n.mac == out * 8 * 9);  // Whatever follows.
    return n.other_flop;
  };
  CHECK(conv({x, w}, "") == 0);
  CHECK(conv({x, w}, "relu") == out);
  CHECK(conv({x, w, b}, "") == out);
  CHECK(conv({x, w, b}, "relu") == 2 * out);
  CHECK(conv({x, w, b, y}, "add") == 2 * out);  // The residual's addition is no function beside it.
  CHECK(conv({x, w, b, y}, "add,relu") == 3 * out);
}

TEST_CASE("attention counts exactly the pairs that its mask allows", "[graph][count]") {
  for (const std::int64_t queries : {0, 1, 3, 7, 8}) {
    for (const std::int64_t keys : {0, 1, 5, 7, 12}) {
      for (const std::int64_t window : {0, 1, 2, 5, 20}) {
        for (const bool causal : {false, true}) {
          CAPTURE(queries, keys, window, causal);
          CHECK(attention_pairs(queries, keys, causal, window) == pairs_by_counting(queries, keys, causal, window));
        }
      }
    }
  }
}

TEST_CASE("causal attention over n tokens computes n (n + 1) / 2 pairs per head", "[graph][count]") {
  const Shape q{2, 4, 512, 64};
  const OpCount forward = counted(OpType::attention, {q, q, q}, {{"causal", i(1)}});
  const double pairs = 2.0 * 4 * 512 * 513 / 2;
  CHECK(forward.mac == pairs * (64 + 64));
  CHECK(forward.other_flop == 6 * pairs);
  const OpCount backward = counted(OpType::attention_backward, {q, q, q, q, q}, {{"causal", i(1)}}, 3);
  CHECK(backward.mac == pairs * 5 * 64);  // The scores again, and four gradients.
}

TEST_CASE("an LSTM multiplies four gates by input and state at every step", "[graph][count]") {
  // 5 steps of batch 3: layer one reads 6, layer two reads 20 = 2 directions of 10; each adds a state of 10.
  const OpCount lstm =
      counted(OpType::lstm, {{5, 3, 6}, {1}}, {{"hidden", i(10)}, {"layers", i(2)}, {"bidirectional", i(1)}});
  CHECK(lstm.mac == 5.0 * 3 * 2 * 4 * 10 * ((6 + 10) + (20 + 10)));
  CHECK(lstm.other_flop == 5.0 * 3 * 2 * 2 * 10 * (3 * 4 + 9));
}

TEST_CASE("functions count once per element", "[graph][count]") {
  CHECK(counted(OpType::gelu, {{8, 4}}).flop() == 32);
  CHECK(counted(OpType::add, {{8, 1}, {4}}).flop() == 32);
  CHECK(counted(OpType::cast, {{8, 4}}, {{"to", std::string("fp16")}}).flop() == 0);
  CHECK(counted(OpType::silu_mul, {{8, 4}, {8, 4}}).flop() == 64);
  CHECK(counted(OpType::fused_pointwise, {{8, 4}, {4}}, {{"functions", std::string("add,gelu,silu_mul,odd")}}).flop() ==
        32 * 5);
  CHECK(counted(OpType::softmax, {{8, 4}}).flop() == 160);
  CHECK(counted(OpType::softmax_backward, {{8, 4}, {8, 4}}).flop() == 128);
  CHECK(counted(OpType::layer_norm, {{8, 4}, {4}, {4}}).flop() == 32 * 7);
  CHECK(counted(OpType::reduce_sum, {{8, 4}}).flop() == 32);
  CHECK(counted(OpType::max_pool2d, {{1, 1, 4, 4}}, {{"kernel", i(2)}}).flop() == 16);
  CHECK(counted(OpType::transpose, {{8, 4}}).flop() == 0);
  CHECK(counted(OpType::cross_entropy, {{8, 10}, {8}}, {}, 1, DataType::int64).flop() == 408);
  CHECK(
      counted(OpType::optimizer_step, {{8}, {8}}, {{"optimizer", std::string("adam")}, {"elements", i(8)}}, 0).flop() ==
      112);
  CHECK(counted(OpType::all_reduce, {{8}}, {{"ranks", i(4)}}).flop() == 6);
}

TEST_CASE("empty tensors cost nothing and every count is finite", "[graph][count]") {
  CHECK(counted(OpType::matmul, {{0, 8}, {8, 4}}).flop() == 0);
  CHECK(counted(OpType::matmul, {{4, 0}, {0, 4}}).flop() == 0);
  CHECK(counted(OpType::attention, {{0, 4, 8, 8}, {0, 4, 8, 8}, {0, 4, 8, 8}}).flop() == 0);
  OpGraph graph;
  for (const OpType op : all_ops()) {  // Nodes without tensors: nothing to count, nothing to crash on.
    Node node;
    node.op = op;
    CHECK(count(graph, node).flop() == 0);
  }
}

TEST_CASE("parameters are counted once and saturate", "[graph][count]") {
  OpGraph graph;
  Tensor w;
  w.role = TensorRole::parameter;
  w.shape = {30522, 1024};
  graph.add_tensor(w);
  w.role = TensorRole::buffer;
  graph.add_tensor(w);
  CHECK(parameter_count(graph) == 31254528);
  w.role = TensorRole::parameter;
  w.shape = {std::int64_t{1} << 62};
  graph.add_tensor(w);
  graph.add_tensor(w);
  CHECK(parameter_count(graph) == INT64_MAX);
}
