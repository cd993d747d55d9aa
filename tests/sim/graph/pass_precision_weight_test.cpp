// SPDX-License-Identifier: MIT
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

/// Tokens through an embedding, two dense layers, a product of activations, and an output layer.
Sketch model(bool tied) {
  Sketch g;
  const TensorId ids = g.input("ids", {4, 16}, DataType::int64);
  const TensorId table = g.parameter("table", {1000, 256});
  const TensorId x = g.op(OpType::embedding, "embed", {ids, table});
  const TensorId h = g.op(OpType::layer_norm, "norm", {x, g.parameter("norm.w", {256}), g.parameter("norm.b", {256})});
  const TensorId up = g.op(OpType::linear, "up", {h, g.parameter("up.w", {512, 256}), g.parameter("up.b", {512})});
  const TensorId down = g.op(OpType::linear, "down", {up, g.parameter("down.w", {256, 512})});
  g.op(OpType::matmul, "scores", {down, h}, {{"transpose_b", std::int64_t{1}}});
  const TensorId head = tied ? table : g.parameter("head.w", {1000, 256});
  g.graph.outputs = {g.op(OpType::linear, "head", {down, head})};
  return g;
}

double weight_bytes(const OpGraph& graph) {
  double sum = 0;
  for (const Tensor& t : graph.tensors()) {
    if (t.role == TensorRole::parameter || t.role == TensorRole::buffer) sum += t.bytes();
  }
  return sum;
}

}  // namespace

TEST_CASE("weight-only precisions store the weights of dense layers in integers and keep the rest fp16",
          "[graph][precision]") {
  for (const auto& [precision, type] :
       {std::pair{Precision::w8a16, DataType::int8}, std::pair{Precision::w4a16, DataType::int4}}) {
    Sketch g = model(false);
    assign_precision(g.graph, precision);
    check_sound(g.graph);
    for (const char* w : {"up.w", "down.w", "head.w"}) CHECK(find_tensor(g.graph, w).dtype == type);
    for (const char* t : {"table", "norm.w", "up.b", "norm.y", "up.y", "head.y"}) {
      CHECK(find_tensor(g.graph, t).dtype == DataType::fp16);
    }
    for (const char* n : {"up", "down", "scores", "head"}) CHECK(find_node(g.graph, n).compute == DataType::fp16);
    CHECK(count_ops(g.graph, OpType::cast) == 0);  // Nothing is converted outside the product.
    CHECK(is_weight_only(precision));
  }
  CHECK_FALSE(is_weight_only(Precision::int8));
}

TEST_CASE("8-bit weights have one fp16 scale per output channel, 4-bit ones one per 128 along k",
          "[graph][precision][memory]") {
  Sketch g = model(false);
  assign_precision(g.graph, Precision::w8a16);
  CHECK(find_tensor(g.graph, "up.w.scale").elements() == 512);
  // Table, norm, bias in fp16; three weights of one byte; 512 + 256 + 1000 scales of two.
  const double fp16 = 2.0 * (1000 * 256 + 2 * 256 + 512);
  const double weights = 512.0 * 256 + 256.0 * 512 + 1000.0 * 256;
  CHECK(weight_bytes(g.graph) == fp16 + weights + 2 * (512 + 256 + 1000));

  Sketch h = model(false);
  assign_precision(h.graph, Precision::w4a16);
  CHECK(to_string(find_tensor(h.graph, "down.w.scale").shape) == "[256, 4]");
  CHECK(weight_bytes(h.graph) == fp16 + weights / 2 + 2 * weights / 128);
  CHECK(scale_group(DataType::int8, 300) == 300);
  CHECK(scale_group(DataType::int4, 300) == 128);
}

TEST_CASE("a table that an embedding reads too stays fp16", "[graph][precision]") {
  Sketch g = model(true);
  assign_precision(g.graph, Precision::w4a16);
  CHECK(find_tensor(g.graph, "table").dtype == DataType::fp16);
  CHECK(find_tensor(g.graph, "up.w").dtype == DataType::int4);
}

TEST_CASE("a weight read through a view is quantised with its view, once", "[graph][precision]") {
  Sketch g;
  const TensorId x = g.input("x", {8, 64});
  const TensorId w = g.parameter("w", {64, 32});
  const TensorId t = g.op(OpType::transpose, "wt", {w});
  const TensorId y = g.op(OpType::linear, "fc", {x, t});
  g.graph.outputs = {g.op(OpType::add, "sum", {y, g.op(OpType::linear, "again", {x, t})})};
  assign_precision(g.graph, Precision::w8a16);
  CHECK(find_tensor(g.graph, "w").dtype == DataType::int8);
  CHECK(find_tensor(g.graph, "wt.y").dtype == DataType::int8);
  CHECK(find_tensor(g.graph, "w.scale").elements() == 32);
  CHECK(std::count_if(g.graph.tensors().begin(), g.graph.tensors().end(),
                      [](const Tensor& s) { return s.role == TensorRole::buffer; }) == 1);
}

TEST_CASE("empty weights have no scales", "[graph][precision]") {
  Sketch g;
  g.graph.outputs = {g.op(OpType::linear, "fc", {g.input("x", {4, 0}), g.parameter("w", {8, 0})})};
  assign_precision(g.graph, Precision::w4a16);
  CHECK(weight_bytes(g.graph) == 0);
}
