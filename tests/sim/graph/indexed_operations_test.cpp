// SPDX-License-Identifier: MIT
// Sparse products, bags, regions, sorting, pools of one and three dims, losses: shapes, counts, gradients.
#include "arch/units/error.hpp"
#include "tests/sim/graph/pass_graphs.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using namespace voltaic::graph::test;

namespace {

using Pairs = std::vector<std::pair<std::string, Attributes::Value>>;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

Attributes attributes(const Pairs& pairs) {
  Attributes result;
  for (const auto& [name, value] : pairs) result.set(name, value);
  return result;
}

std::int64_t i(std::int64_t value) {
  return value;
}
std::string word(const char* text) {
  return text;
}

const TensorType kIds{{4, 5}, DataType::int64};
TensorType fp32(Shape shape) {
  return {std::move(shape), DataType::fp32};
}
TensorType int64(Shape shape) {
  return {std::move(shape), DataType::int64};
}

std::string shapes(OpType op, const std::vector<TensorType>& inputs, const Pairs& pairs = {}) {
  std::string text;
  for (const TensorType& type : infer(op, attributes(pairs), inputs)) text += to_string(type.shape);
  return text;
}

std::string refusal(OpType op, const std::vector<TensorType>& inputs, const Pairs& pairs = {}) {
  try {
    return "accepted " + shapes(op, inputs, pairs);
  } catch (const ShapeError& error) {
    return error.place + ": " + error.what();
  }
}

/// The counts of a node over parameters and integer inputs of these types.
OpCount counted(OpType op, const std::vector<TensorType>& inputs, Pairs pairs = {}) {
  Sketch g;
  std::vector<TensorId> ids;
  for (const TensorType& type : inputs) {
    ids.push_back(g.input("x" + std::to_string(ids.size()), type.shape, type.dtype));
  }
  g.op(op, "n", ids, std::move(pairs));
  return count(g.graph, g.graph.node(0));
}

/// Forward and gradient of one operation; floating inputs are parameters.
Sketch differentiated(OpType op, const std::vector<TensorType>& inputs, Pairs pairs = {}, std::size_t outputs = 1) {
  Sketch g;
  std::vector<TensorId> ids;
  for (const TensorType& type : inputs) {
    const std::string name = "x" + std::to_string(ids.size());
    ids.push_back(is_floating(type.dtype) ? g.parameter(name, type.shape) : g.input(name, type.shape, type.dtype));
  }
  g.graph.outputs = {g.op(op, "n", ids, std::move(pairs), outputs)};
  append_backward(g.graph);
  check_sound(g.graph);
  return g;
}

std::string backward_of(const Sketch& g) {
  std::string text;
  for (const Node* node : nodes_of(g.graph, Phase::backward)) {
    text += (text.empty() ? "" : " ") + std::string(to_string(node->op));
  }
  return text;
}

}  // namespace

TEST_CASE("a sparse product has the rows it names and the features of its operand", "[graph][sparse]") {
  CHECK(shapes(OpType::spmm, {fp32({7, 16}), int64({30})}, {{"rows", i(5)}}) == "[5, 16]");
  CHECK(shapes(OpType::spmm, {fp32({7, 16}), int64({30}), fp32({30})}, {{"rows", i(0)}}) == "[0, 16]");
  CHECK(shapes(OpType::spmm, {fp32({0, 16}), int64({0})}, {{"rows", i(5)}}) == "[5, 16]");
  CHECK(shapes(OpType::sddmm, {fp32({5, 16}), fp32({7, 16}), int64({30})}) == "[30]");
  CHECK(refusal(OpType::spmm, {fp32({7, 16}), int64({30})}) ==
        "attributes/rows: spmm: expected an integer of 0 or more, got nothing");
  CHECK(refusal(OpType::spmm, {fp32({7, 16}), fp32({30})}, {{"rows", i(5)}}) ==
        "inputs/1: spmm: expected an index of an integer type, got fp32");
  CHECK(refusal(OpType::spmm, {fp32({7, 16}), int64({30}), fp32({29})}, {{"rows", i(5)}}) ==
        "inputs/2: spmm: expected shape [30], got [29]");
  CHECK(refusal(OpType::spmm, {fp32({7, 16}), int64({30})}, {{"rows", i(5)}, {"reduce", word("min")}}) ==
        "attributes/reduce: spmm: expected sum, mean or max, got 'min'");
  CHECK(refusal(OpType::spmm, {fp32({7, 16}), int64({30})}, {{"rows", kHuge}}).find("2^62") != std::string::npos);
  CHECK(refusal(OpType::sddmm, {fp32({5, 16}), fp32({7, 8}), int64({30})}).starts_with("inputs/1"));
}

TEST_CASE("a bag of rows gives one row per sample", "[graph][embedding]") {
  CHECK(shapes(OpType::embedding_bag, {kIds, fp32({100, 8})}) == "[4, 8]");
  CHECK(shapes(OpType::embedding_bag, {int64({4, 0}), fp32({0, 8})}) == "[4, 8]");
  CHECK(shapes(OpType::embedding_bag_backward, {fp32({4, 8}), kIds}, {{"rows", i(100)}}) == "[100, 8]");
  CHECK(shapes(OpType::embedding_bag_backward, {fp32({4, 8}), kIds}, {{"rows", i(100)}, {"fused_update", i(1)}}) ==
        "[0, 8]");
  CHECK(refusal(OpType::embedding_bag, {kIds, fp32({100, 8})}, {{"zipf", -0.5}}) ==
        "attributes/zipf: embedding_bag: expected 0 to 10, got -0.5");
  CHECK(refusal(OpType::embedding_bag, {kIds, fp32({100, 8})}, {{"mode", word("median")}}) ==
        "attributes/mode: embedding_bag: expected sum, mean or max, got 'median'");
  CHECK(refusal(OpType::embedding_bag, {fp32({4, 5}), fp32({100, 8})}).starts_with("inputs/0"));
  CHECK(refusal(OpType::embedding_bag_backward, {fp32({3, 8}), kIds}, {{"rows", i(9)}}).starts_with("inputs/0"));
}

TEST_CASE("regions are resampled to one size", "[graph][detection]") {
  CHECK(shapes(OpType::roi_align, {fp32({2, 256, 50, 68}), fp32({512, 5})}, {{"size", i(7)}}) == "[512, 256, 7, 7]");
  CHECK(shapes(OpType::roi_align, {fp32({2, 256, 0, 0}), fp32({0, 4})}, {{"size", i(7)}}) == "[0, 256, 7, 7]");
  CHECK(shapes(OpType::roi_align_backward, {fp32({512, 256, 7, 7}), fp32({512, 5})},
               {{"input_shape", Shape{2, 256, 50, 68}}}) == "[2, 256, 50, 68]");
  CHECK(refusal(OpType::roi_align, {fp32({2, 3, 8, 8}), fp32({6, 3})}, {{"size", i(7)}}) ==
        "inputs/1: roi_align: expected 4 or 5 numbers per region, got [6, 3]");
  CHECK(refusal(OpType::roi_align, {fp32({2, 3, 8, 8}), fp32({6, 4})}).starts_with("attributes/size"));
  CHECK(refusal(OpType::roi_align, {fp32({2, 3, 8, 8}), fp32({6, 4})}, {{"size", i(7)}, {"sampling", i(0)}}) ==
        "attributes/sampling: roi_align: expected 1 or more, got 0");
  CHECK(refusal(OpType::roi_align, {fp32({2, 3, 8, 8}), fp32({6, 4})}, {{"size", kHuge}}).find("2^62") !=
        std::string::npos);
  CHECK(shapes(OpType::nms, {fp32({100, 4}), fp32({100})}, {{"keep", i(20)}}) == "[20]");
  CHECK(refusal(OpType::nms, {fp32({100, 4}), fp32({100})}, {{"keep", i(101)}}) ==
        "attributes/keep: nms: expected at most the 100 boxes, got 101");
  CHECK(refusal(OpType::nms, {fp32({100, 5}), fp32({100})}, {{"keep", i(1)}}).starts_with("inputs/0"));
}

TEST_CASE("sorting gives values and their places", "[graph][reduction]") {
  CHECK(shapes(OpType::sort, {fp32({3, 9})}) == "[3, 9][3, 9]");
  CHECK(refusal(OpType::sort, {fp32({3, 9})}, {{"axis", i(2)}}).starts_with("attributes/axis"));
  CHECK(refusal(OpType::sort, {fp32({})}).starts_with("attributes/axis"));
}

TEST_CASE("pools of one and three dims round as those of two", "[graph][pooling]") {
  CHECK(shapes(OpType::max_pool1d, {fp32({2, 3, 10})}, {{"kernel", i(3)}, {"stride", i(2)}, {"padding", i(1)}}) ==
        "[2, 3, 5]");
  CHECK(shapes(OpType::avg_pool3d, {fp32({2, 3, 8, 9, 10})}, {{"kernel", i(2)}}) == "[2, 3, 4, 4, 5]");
  CHECK(shapes(OpType::max_pool3d, {fp32({2, 3, 8, 9, 10})}, {{"kernel", Shape{1, 2, 2}}}) == "[2, 3, 8, 4, 5]");
  CHECK(refusal(OpType::max_pool1d, {fp32({2, 3, 8, 8})}, {{"kernel", i(2)}}).starts_with("inputs/0"));
  CHECK(refusal(OpType::avg_pool3d, {fp32({2, 3, 8, 9, 10})}, {{"kernel", Shape{2, 2}}}) ==
        "attributes/kernel: avg_pool3d: expected an integer or 3 of them, got [2, 2]");
  const Pairs gradient{{"of", word("max_pool1d")}, {"kernel", i(2)}, {"input_shape", Shape{2, 3, 10}}};
  CHECK(shapes(OpType::pool_backward, {fp32({2, 3, 5}), fp32({2, 3, 10})}, gradient) == "[2, 3, 10]");
  CHECK(refusal(OpType::pool_backward, {fp32({2, 3, 6}), fp32({2, 3, 10})}, gradient) ==
        "inputs/0: pool_backward: expected shape [2, 3, 5], got [2, 3, 6]");
  CHECK(refusal(OpType::pool_backward, {fp32({2, 3, 6})}, {{"of", word("relu")}, {"input_shape", Shape{2, 3, 10}}}) ==
        "attributes/of: pool_backward: expected a pooling operation, got 'relu'");
}

TEST_CASE("losses give one number and gradients like their input", "[graph][loss]") {
  CHECK(shapes(OpType::ctc_loss, {fp32({100, 8, 29}), int64({8, 20})}) == "[]");
  CHECK(shapes(OpType::ctc_loss_backward, {fp32({100, 8, 29}), int64({8, 20}), fp32({})}) == "[100, 8, 29]");
  CHECK(shapes(OpType::smooth_l1_loss, {fp32({9, 4}), fp32({9, 4})}) == "[]");
  CHECK(refusal(OpType::ctc_loss, {fp32({100, 8, 29}), int64({7, 20})}).starts_with("inputs/1"));
  CHECK(refusal(OpType::bce_loss, {fp32({9, 4}), fp32({9, 5})}).starts_with("inputs/1"));
}

TEST_CASE("operations by index count what they multiply and add", "[graph][count]") {
  // 30 entries of 16 features; a pattern of ones adds only, a mean divides 5 * 16 sums.
  CHECK(counted(OpType::spmm, {fp32({7, 16}), int64({30}), fp32({30})}, {{"rows", i(5)}}).mac == 480);
  CHECK(counted(OpType::spmm, {fp32({7, 16}), int64({30})}, {{"rows", i(5)}}).mac == 0);
  CHECK(counted(OpType::spmm, {fp32({7, 16}), int64({30})}, {{"rows", i(5)}, {"reduce", word("mean")}}).other_flop ==
        480 + 80);
  CHECK(counted(OpType::sddmm, {fp32({5, 16}), fp32({7, 16}), int64({30})}).mac == 480);
  CHECK(counted(OpType::embedding_bag, {kIds, fp32({100, 8})}).other_flop == 4 * 5 * 8);
  // 2 x 2 samples of four corners, a product and a sum each.
  CHECK(counted(OpType::roi_align, {fp32({1, 3, 8, 8}), fp32({6, 4})}, {{"size", i(7)}}).other_flop ==
        6 * 3 * 49 * 32.0);
  CHECK(counted(OpType::sort, {fp32({3, 1024})}).other_flop == 3 * 1024 * 10.0);
  CHECK(counted(OpType::nms, {fp32({100, 4}), fp32({100})}, {{"keep", i(9)}}).other_flop == 15 * 100 * 99 / 2.0);
  CHECK(counted(OpType::max_pool3d, {fp32({1, 2, 4, 4, 4})}, {{"kernel", i(2)}}).other_flop == 2 * 8 * 8.0);
  CHECK(counted(OpType::avg_pool1d, {fp32({1, 2, 9})}, {{"kernel", i(3)}}).other_flop == 2 * 3 * 3.0);
  CHECK(counted(OpType::ctc_loss, {fp32({100, 8, 29}), int64({8, 20})}).other_flop == 10 * 100 * 8 * 41.0);
  CHECK(counted(OpType::smooth_l1_loss, {fp32({9, 4}), fp32({9, 4})}).other_flop == 6 * 36);
}

TEST_CASE("a sparse product's gradients are the transposed product and one dot product per entry",
          "[graph][backward][sparse]") {
  const Sketch g = differentiated(OpType::spmm, {fp32({7, 16}), int64({30}), fp32({30})}, {{"rows", i(5)}});
  CHECK(backward_of(g) == "spmm sddmm");
  CHECK(find_tensor(g.graph, "x0.grad").shape == Shape{7, 16});
  CHECK(find_tensor(g.graph, "x2.grad").shape == Shape{30});
  const Node& dx = find_node(g.graph, "n.backward.dx");
  CHECK(dx.attributes.flag("transposed"));
  CHECK(count(g.graph, dx).mac == count(g.graph, g.graph.node(0)).mac);
  CHECK(backward_of(differentiated(OpType::spmm, {fp32({7, 16}), int64({30})},
                                   {{"rows", i(5)}, {"reduce", word("mean")}})) == "div_scalar spmm");
}

TEST_CASE("values sampled at entries pass gradients to both operands", "[graph][backward][sparse]") {
  const Sketch g = differentiated(OpType::sddmm, {fp32({5, 16}), fp32({7, 16}), int64({30})});
  CHECK(backward_of(g) == "spmm spmm");
  CHECK(find_tensor(g.graph, "x0.grad").shape == Shape{5, 16});
  CHECK(find_tensor(g.graph, "x1.grad").shape == Shape{7, 16});
}

TEST_CASE("a bag's gradient is dense, or none where the kernel updates the table", "[graph][backward][embedding]") {
  const Sketch dense = differentiated(OpType::embedding_bag, {kIds, fp32({100, 8})}, {{"zipf", 1.05}});
  CHECK(backward_of(dense) == "embedding_bag_backward");
  CHECK(find_tensor(dense.graph, "x1.grad").shape == Shape{100, 8});
  CHECK(find_node(dense.graph, "n.backward.grad").attributes.number("zipf", 0) == 1.05);

  Sketch fused = differentiated(OpType::embedding_bag, {kIds, fp32({100, 8})}, {{"fused_update", i(1)}});
  CHECK(output_of(fused.graph, "n.backward.update").elements() == 0);
  for (const Tensor& tensor : fused.graph.tensors()) CHECK(tensor.role != TensorRole::parameter_gradient);
  append_optimizer(fused.graph, Optimizer::adam, Precision::fp32);
  CHECK(count_ops(fused.graph, OpType::optimizer_step) == 0);
}

TEST_CASE("regions, pools, sorting and losses pass gradients to what they read", "[graph][backward]") {
  const Shape map{2, 3, 8, 8};
  Sketch g;
  const TensorId x = g.parameter("x", map);
  const TensorId boxes = g.input("boxes", {6, 5});
  g.graph.outputs = {g.op(OpType::roi_align, "n", {x, boxes}, {{"size", i(7)}})};
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(backward_of(g) == "roi_align_backward");
  CHECK(find_tensor(g.graph, "x.grad").shape == map);

  for (const OpType op : {OpType::max_pool1d, OpType::avg_pool1d}) {
    CHECK(backward_of(differentiated(op, {fp32({2, 3, 10})}, {{"kernel", i(2)}})) == "pool_backward");
  }
  for (const OpType op : {OpType::max_pool3d, OpType::avg_pool3d}) {
    CHECK(backward_of(differentiated(op, {fp32({2, 3, 8, 9, 10})}, {{"kernel", i(2)}})) == "pool_backward");
  }
  CHECK(backward_of(differentiated(OpType::sort, {fp32({3, 9})}, {}, 2)) == "reshape reshape scatter_add reshape copy");
  CHECK(backward_of(differentiated(OpType::smooth_l1_loss, {fp32({9, 4}), fp32({9, 4})})) ==
        "smooth_l1_loss_backward smooth_l1_loss_backward");
  CHECK(backward_of(differentiated(OpType::bce_loss, {fp32({9, 4}), fp32({9, 4})})) == "bce_loss_backward");
  CHECK(backward_of(differentiated(OpType::ctc_loss, {fp32({100, 8, 29}), int64({8, 20})})) == "ctc_loss_backward");
}

TEST_CASE("suppressing boxes passes no gradient", "[graph][backward][detection]") {
  Sketch g;
  const TensorId boxes = g.parameter("boxes", {100, 4});
  const TensorId scores = g.parameter("scores", {100});
  const TensorId kept = g.op(OpType::nms, "nms", {boxes, scores}, {{"keep", i(20)}});
  g.graph.outputs = {g.op(OpType::gather, "n", {boxes, kept})};
  append_backward(g.graph);
  check_sound(g.graph);
  CHECK(backward_of(g) == "scatter_add");
}

TEST_CASE("operations that networks train through have gradients of the right shapes", "[graph][backward]") {
  struct Case {
    OpType op;
    std::vector<TensorType> inputs;
    Pairs pairs;
    std::size_t outputs = 1;
  };
  const std::vector<Case> cases{
      {OpType::conv1d, {fp32({2, 6, 20}), fp32({8, 3, 5}), fp32({8})}, {{"groups", i(2)}, {"padding", i(2)}}},
      {OpType::conv3d, {fp32({2, 4, 6, 6, 6}), fp32({8, 4, 3, 3, 3}), fp32({8})}, {{"padding", i(1)}}},
      {OpType::conv_transpose1d, {fp32({2, 6, 10}), fp32({6, 4, 4}), fp32({4})}, {{"stride", i(2)}}},
      {OpType::conv_transpose2d, {fp32({2, 6, 5, 5}), fp32({6, 4, 4, 4})}, {{"stride", i(2)}, {"padding", i(1)}}},
      {OpType::conv_transpose3d, {fp32({2, 6, 4, 4, 4}), fp32({6, 4, 2, 2, 2})}, {{"stride", i(2)}}},
      {OpType::resize, {fp32({2, 6, 5, 5})}, {{"scale", 2.0}, {"mode", word("bilinear")}}},
      {OpType::group_norm, {fp32({2, 6, 5, 5}), fp32({6}), fp32({6})}, {{"groups", i(3)}}},
      {OpType::concat, {fp32({2, 6}), fp32({2, 4})}, {{"axis", i(1)}}},
      {OpType::slice, {fp32({2, 9})}, {{"axis", i(1)}, {"start", i(-4)}, {"end", i(9)}}},
      {OpType::slice, {fp32({2, 9})}, {{"axis", i(1)}, {"step", i(2)}}},
      {OpType::pad, {fp32({2, 9})}, {{"pads", Shape{0, 1, 0, 2}}}},
      {OpType::gather, {fp32({7, 3}), int64({4, 2})}, {}},
      {OpType::scatter_add, {fp32({4, 3}), int64({4})}, {{"rows", i(7)}}},
      {OpType::split, {fp32({2, 9})}, {{"sizes", Shape{4, 5}}}, 2},
      {OpType::masked_fill, {fp32({2, 9}), {{2, 9}, DataType::boolean}}, {}},
      {OpType::where, {{{2, 9}, DataType::boolean}, fp32({2, 9}), fp32({1, 9})}, {}},
      {OpType::cumsum, {fp32({2, 9})}, {}},
      {OpType::topk, {fp32({2, 9})}, {{"k", i(3)}}, 2},
      {OpType::reduce_max, {fp32({2, 9})}, {{"axes", Shape{1}}}},
      {OpType::log_softmax, {fp32({2, 9})}, {}},
  };
  for (const Case& c : cases) {
    INFO(to_string(c.op));
    const Sketch g = differentiated(c.op, c.inputs, c.pairs, c.outputs);
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      if (!is_floating(c.inputs[k].dtype)) continue;
      CHECK(to_string(find_tensor(g.graph, "x" + std::to_string(k) + ".grad").shape) == to_string(c.inputs[k].shape));
    }
  }
  for (const OpType op : all_ops()) {  // Every function of one tensor.
    const bool unary = family(op) == OpFamily::pointwise && op < OpType::add && op != OpType::cast &&
                       op != OpType::logical_not && op != OpType::compare_scalar;
    if (!unary) continue;
    INFO(to_string(op));
    CHECK(find_tensor(differentiated(op, {fp32({2, 9})}).graph, "x0.grad").shape == Shape{2, 9});
  }
}

TEST_CASE("losses run in fp32 under autocast, and so do regions", "[graph][precision]") {
  for (const OpType op : {OpType::smooth_l1_loss, OpType::bce_loss}) {
    Sketch g;
    const TensorId x = g.op(OpType::linear, "fc", {g.input("x", {8, 16}), g.parameter("w", {4, 16})});
    g.graph.loss = g.op(op, "loss", {x, g.input("target", {8, 4})});
    assign_precision(g.graph, Precision::mixed_fp16);
    CHECK(g.graph.tensor(g.graph.loss).dtype == DataType::fp32);
    CHECK(count_ops(g.graph, OpType::cast) == 3);  // x and w to 16 bit, the result back.
  }
}
