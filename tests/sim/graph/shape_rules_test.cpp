// SPDX-License-Identifier: MIT
#include "sim/graph/shape_rules.hpp"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::graph;

namespace {

using Ints = std::vector<std::int64_t>;
using Pairs = std::initializer_list<std::pair<const char*, Attributes::Value>>;

Attributes attributes(Pairs pairs) {
  Attributes result;
  for (const auto& [name, value] : pairs) result.set(name, value);
  return result;
}

std::vector<TensorType> types(OpType op, std::vector<TensorType> inputs, Pairs pairs = {}) {
  return infer(op, attributes(pairs), inputs);
}

/// Shapes of the outputs for fp32 inputs.
std::vector<Shape> shapes(OpType op, const std::vector<Shape>& inputs, Pairs pairs = {}) {
  std::vector<TensorType> typed;
  for (const Shape& shape : inputs) typed.push_back({shape, DataType::fp32});
  std::vector<Shape> result;
  for (const TensorType& type : types(op, typed, pairs)) result.push_back(type.shape);
  return result;
}

Shape shape(OpType op, const std::vector<Shape>& inputs, Pairs pairs = {}) {
  return shapes(op, inputs, pairs).at(0);
}

std::string refusal(OpType op, const std::vector<Shape>& inputs, Pairs pairs = {}) {
  try {
    shapes(op, inputs, pairs);
  } catch (const ShapeError& error) {
    return error.place + ": " + error.what();
  }
  return "accepted";
}

std::int64_t i(std::int64_t value) {
  return value;
}

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

}  // namespace

TEST_CASE("matrix products give [.., m, n]", "[graph][shape]") {
  CHECK(shape(OpType::linear, {{8, 512, 1024}, {4096, 1024}, {4096}}) == Shape{8, 512, 4096});
  CHECK(shape(OpType::linear, {{8, 1024}, {1024, 4096}}, {{"transposed_weight", i(1)}}) == Shape{8, 4096});
  CHECK(shape(OpType::matmul, {{2, 16, 5, 7}, {2, 16, 7, 3}}) == Shape{2, 16, 5, 3});
  CHECK(shape(OpType::matmul, {{16, 5, 7}, {7, 3}}) == Shape{16, 5, 3});
  CHECK(shape(OpType::matmul, {{7, 5}, {3, 7}}, {{"transpose_a", i(1)}, {"transpose_b", i(1)}}) == Shape{5, 3});
  CHECK(shape(OpType::grouped_linear, {{8, 100, 64}, {8, 256, 64}}) == Shape{8, 100, 256});

  CHECK(refusal(OpType::linear, {{8, 1000}, {4096, 1024}}) ==
        "inputs/1: linear: expected in features 1000 in dimension 1, got [4096, 1024]");
  CHECK(refusal(OpType::linear, {{8, 1024}, {4096, 1024}, {1024}}) ==
        "inputs/2: linear: expected shape [4096], got [1024]");
  CHECK(refusal(OpType::linear, {{8, 1024}, {4096}}) == "inputs/1: linear: expected rank 2 [out, in], got [4096]");
  CHECK(refusal(OpType::linear, {{8, 1024}}) == "inputs: linear: expected 2 to 3 inputs, got 1");
  CHECK(refusal(OpType::matmul, {{5, 7}, {8, 3}}) == "inputs/1: matmul: expected k of 7 in dimension 0, got [8, 3]");
  CHECK(refusal(OpType::matmul, {{2, 5, 7}, {3, 7, 3}}) ==
        "inputs/1: matmul: expected batch dimensions that broadcast with [2], got [3, 7, 3]");
}

TEST_CASE("convolutions follow floor((in + 2 p - d (f - 1) - 1) / s) + 1", "[graph][shape]") {
  // ResNet stem: (224 + 6 - 7) / 2 + 1 = 112.
  CHECK(shape(OpType::conv2d, {{32, 3, 224, 224}, {64, 3, 7, 7}}, {{"stride", i(2)}, {"padding", i(3)}}) ==
        Shape{32, 64, 112, 112});
  // Depthwise, dilated by 2: reach 5, 14 + 4 - 5 + 1 = 14; the list form gives each dimension its own stride.
  CHECK(shape(OpType::conv2d, {{1, 32, 14, 14}, {32, 1, 3, 3}},
              {{"groups", i(32)}, {"padding", i(2)}, {"dilation", i(2)}, {"stride", Ints{1, 2}}}) ==
        Shape{1, 32, 14, 7});
  CHECK(shape(OpType::conv1d, {{2, 8, 100}, {16, 8, 5}, {16}}) == Shape{2, 16, 96});
  CHECK(shape(OpType::conv3d, {{1, 4, 16, 32, 32}, {8, 4, 3, 3, 3}}, {{"padding", i(1)}}) == Shape{1, 8, 16, 32, 32});
  // (7 - 1) * 2 - 2 + (3 - 1) + 1 + 1 = 14.
  CHECK(shape(OpType::conv_transpose2d, {{1, 64, 7, 7}, {64, 32, 3, 3}},
              {{"stride", i(2)}, {"padding", i(1)}, {"output_padding", i(1)}}) == Shape{1, 32, 14, 14});
  CHECK(shape(OpType::conv2d, {{0, 3, 8, 8}, {4, 3, 3, 3}}) == Shape{0, 4, 6, 6});

  CHECK(refusal(OpType::conv2d, {{1, 3, 2, 8}, {4, 3, 3, 3}}) ==
        "inputs/0: conv2d: expected spatial sizes that hold a filter of [3, 3], got [1, 3, 2, 8]");
  CHECK(refusal(OpType::conv2d, {{1, 3, 8, 8}, {4, 4, 3, 3}}) ==
        "inputs/1: conv2d: expected 3 channels per group in dimension 1, got [4, 4, 3, 3]");
  CHECK(refusal(OpType::conv2d, {{1, 3, 8, 8}, {4, 3, 3, 3}}, {{"stride", i(0)}}) ==
        "attributes/stride: conv2d: expected 1 or more, got 0");
  CHECK(refusal(OpType::conv2d, {{1, 3, 8, 8}, {4, 3, 3, 3}}, {{"padding", Ints{1, 1, 1}}}) ==
        "attributes/padding: conv2d: expected an integer or 2 of them, got [1, 1, 1]");
  CHECK(refusal(OpType::conv2d, {{1, 3, 8, 8}, {4, 1, 3, 3}}, {{"groups", i(2)}}) ==
        "inputs/0: conv2d: expected channels that 2 groups divide, got [1, 3, 8, 8]");
  CHECK(refusal(OpType::conv2d, {{1, 3, 8, 8}, {4, 3, 3, 3}}, {{"padding", kHuge}}) ==
        ": expected at most 2^62 elements, got more");
}

TEST_CASE("convolution gradients have the shapes of what they are gradients of", "[graph][shape]") {
  const Pairs forward = {{"stride", i(2)}, {"padding", i(3)}, {"input_shape", Ints{32, 3, 224, 224}}};
  CHECK(shape(OpType::conv_dgrad, {{32, 64, 112, 112}, {64, 3, 7, 7}}, forward) == Shape{32, 3, 224, 224});
  CHECK(shape(OpType::conv_wgrad, {{32, 3, 224, 224}, {32, 64, 112, 112}},
              {{"stride", i(2)}, {"padding", i(3)}, {"filter_shape", Ints{64, 3, 7, 7}}}) == Shape{64, 3, 7, 7});
  CHECK(shape(OpType::conv_dgrad, {{1, 32, 14, 14}, {64, 32, 3, 3}},
              {{"stride", i(2)},
               {"padding", i(1)},
               {"output_padding", i(1)},
               {"transposed", i(1)},
               {"input_shape", Ints{1, 64, 7, 7}}}) == Shape{1, 64, 7, 7});
  CHECK(refusal(OpType::conv_dgrad, {{32, 64, 111, 112}, {64, 3, 7, 7}}, forward) ==
        "inputs/0: conv_dgrad: expected shape [32, 64, 112, 112], got [32, 64, 111, 112]");
  CHECK(refusal(OpType::conv_dgrad, {{32, 64, 112, 112}, {64, 3, 7, 7}}) ==
        "attributes/input_shape: conv_dgrad: expected a shape, got nothing");
}

TEST_CASE("attention keeps the query's positions and the value's width", "[graph][shape]") {
  CHECK(shape(OpType::attention, {{2, 32, 1, 128}, {2, 8, 8192, 128}, {2, 8, 8192, 64}}) == Shape{2, 32, 1, 64});
  CHECK(
      shapes(OpType::attention_backward, {{2, 4, 8, 16}, {2, 4, 8, 16}, {2, 2, 9, 16}, {2, 2, 9, 16}, {2, 4, 8, 16}}) ==
      std::vector<Shape>{{2, 4, 8, 16}, {2, 2, 9, 16}, {2, 2, 9, 16}});
  CHECK(refusal(OpType::attention, {{2, 32, 1, 128}, {2, 5, 8, 128}, {2, 5, 8, 128}}) ==
        "inputs/1: attention: expected a number of heads that divides the 32 of the query, got [2, 5, 8, 128]");
  CHECK(refusal(OpType::attention, {{2, 32, 1, 128}, {2, 0, 8, 128}, {2, 0, 8, 128}}).substr(0, 10) == "inputs/1: ");
  CHECK(refusal(OpType::attention, {{2, 4, 1, 64}, {2, 4, 8, 64}, {2, 4, 9, 64}}) ==
        "inputs/2: attention: expected the size of the keys 8 in dimension 2, got [2, 4, 9, 64]");
  CHECK(refusal(OpType::attention, {{2, 4, 1, 64}, {2, 4, 8, 64}, {2, 4, 8, 64}}, {{"window", i(-1)}}) ==
        "attributes/window: attention: expected 0 or more, got -1");
}

TEST_CASE("recurrent layers check each weight of each layer and direction", "[graph][shape]") {
  // Two layers, two directions, four gates of 10: the second layer reads 20 features.
  const Shape first{40, 6}, second{40, 20}, state{40, 10}, bias{40};
  std::vector<Shape> inputs{{5, 3, 6}};
  for (int cell = 0; cell < 4; ++cell) {
    inputs.insert(inputs.end(), {cell < 2 ? first : second, state, bias, bias});
  }
  const Pairs two = {{"hidden", i(10)}, {"layers", i(2)}, {"bidirectional", i(1)}};
  CHECK(shapes(OpType::lstm, inputs, two) == std::vector<Shape>{{5, 3, 20}, {4, 3, 10}, {4, 3, 10}});
  CHECK(shape(OpType::gru, {{5, 3, 6}, {30, 6}, {30, 10}}, {{"hidden", i(10)}}) == Shape{5, 3, 10});
  CHECK(shape(OpType::rnn, {{5, 3, 6}, {123}}, {{"hidden", i(10)}}) == Shape{5, 3, 10});
  CHECK(refusal(OpType::gru, {{5, 3, 6}, {40, 6}, {30, 10}}, {{"hidden", i(10)}}) ==
        "inputs/1: gru: expected shape [30, 6], got [40, 6]");
  CHECK(refusal(OpType::gru, {{5, 3, 6}, {30, 6}}) ==
        "attributes/hidden: gru: expected an integer of 1 or more, got nothing");
  CHECK(refusal(OpType::gru, {{5, 3, 6}, {30, 6}, {30, 10}, {30}}, {{"hidden", i(10)}}) ==
        "inputs: gru: expected 1 packed parameter, 2 weights, or 4 weights and biases, got 3 parameters");
}

TEST_CASE("norms keep the shape and check their parameters", "[graph][shape]") {
  CHECK(shape(OpType::layer_norm, {{8, 512, 1024}, {1024}, {1024}}) == Shape{8, 512, 1024});
  CHECK(shape(OpType::layer_norm, {{8, 5, 4}, {5, 4}}, {{"axes", i(2)}}) == Shape{8, 5, 4});
  CHECK(shape(OpType::group_norm, {{8, 32, 7, 7}, {32}, {32}}, {{"groups", i(8)}}) == Shape{8, 32, 7, 7});
  CHECK(shape(OpType::batch_norm, {{8, 32, 7, 7}, {32}, {32}, {32}, {32}}) == Shape{8, 32, 7, 7});
  CHECK(shapes(OpType::batch_norm_backward, {{8, 32, 7, 7}, {8, 32, 7, 7}, {32}}) ==
        std::vector<Shape>{{8, 32, 7, 7}, {32}, {32}});
  CHECK(shapes(OpType::norm_param_grad, {{8, 5, 4}, {8, 5, 4}}) == std::vector<Shape>{{4}, {4}});
  CHECK(shapes(OpType::norm_param_grad, {{8, 5, 4}, {8, 5, 4}}, {{"bias", i(0)}}) == std::vector<Shape>{{4}});
  CHECK(refusal(OpType::layer_norm, {{8, 1024}, {1000}}) == "inputs/1: layer_norm: expected shape [1024], got [1000]");
  CHECK(refusal(OpType::layer_norm, {{8}, {8}}, {{"axes", i(2)}}) ==
        "attributes/axes: layer_norm: expected at most the rank 1 of the input, got 2");
  CHECK(refusal(OpType::group_norm, {{8, 30, 7, 7}}, {{"groups", i(8)}}) ==
        "inputs/0: group_norm: expected channels that 8 groups divide, got [8, 30, 7, 7]");
}

TEST_CASE("pointwise operations broadcast and promote", "[graph][shape]") {
  CHECK(shape(OpType::add, {{8, 1, 4}, {5, 1}}) == Shape{8, 5, 4});
  CHECK(shape(OpType::where, {{8, 1}, {4}, {1, 1}}) == Shape{8, 4});
  CHECK(shape(OpType::mul, {{0, 4}, {1, 4}}) == Shape{0, 4});
  CHECK(types(OpType::add, {{{2}, DataType::fp16}, {{2}, DataType::fp32}})[0].dtype == DataType::fp32);
  CHECK(types(OpType::add, {{{2}, DataType::fp16}, {{2}, DataType::bf16}})[0].dtype == DataType::fp32);
  CHECK(types(OpType::add, {{{2}, DataType::fp16}, {{2}, DataType::int64}})[0].dtype == DataType::fp16);
  CHECK(types(OpType::add, {{{2}, DataType::boolean}, {{2}, DataType::int8}})[0].dtype == DataType::int8);
  CHECK(types(OpType::compare, {{{2}, DataType::fp16}, {{2}, DataType::fp16}})[0].dtype == DataType::boolean);
  CHECK(types(OpType::cast, {{{2}, DataType::fp32}}, {{"to", std::string("bf16")}})[0].dtype == DataType::bf16);
  CHECK(types(OpType::gelu, {{{2, 3}, DataType::bf16}})[0].dtype == DataType::bf16);
  CHECK(shape(OpType::fused_pointwise, {{8, 4}, {4}, {8, 1}}, {{"functions", std::string("add,gelu")}}) == Shape{8, 4});
  CHECK(shape(OpType::pointwise_backward, {{8, 4}, {8, 4}}, {{"of", std::string("gelu")}, {"shape", Ints{8, 4}}}) ==
        Shape{8, 4});

  CHECK(refusal(OpType::add, {{8, 4}, {3}}) == "inputs/1: add: expected a shape that broadcasts with [8, 4], got [3]");
  CHECK(refusal(OpType::silu_mul, {{8, 4}, {4}}) == "inputs/1: silu_mul: expected shape [8, 4], got [4]");
  CHECK(refusal(OpType::cast, {{4}}) == "attributes/to: cast: expected a data type, got nothing");
  CHECK(refusal(OpType::cast, {{4}}, {{"to", std::string("fp17")}}) ==
        "attributes/to: cast: expected a data type, got 'fp17'");
  CHECK(refusal(OpType::compare_scalar, {{4}}, {{"relation", std::string("!=")}}) ==
        "attributes/relation: compare_scalar: expected lt, le, gt, ge, eq or ne, got '!='");
  CHECK(refusal(OpType::dropout, {{4}}, {{"p", 1.5}}) == "attributes/p: dropout: expected [0, 1], got 1.5");
}

TEST_CASE("broadcast is numpy's", "[graph][shape]") {
  CHECK(broadcast({}, {3, 1}) == Shape{3, 1});
  CHECK(broadcast({3, 1}, {1, 0}) == Shape{3, 0});
  CHECK_THROWS_AS(broadcast({2}, {0}), ShapeError);
}

TEST_CASE("softmax and reductions check their axes", "[graph][shape]") {
  CHECK(shape(OpType::softmax, {{2, 16, 5, 5}}) == Shape{2, 16, 5, 5});
  CHECK(shape(OpType::softmax_backward, {{2, 5}, {2, 5}}, {{"axis", i(0)}}) == Shape{2, 5});
  CHECK(shape(OpType::reduce_sum, {{2, 3, 4}}) == Shape{});
  CHECK(shape(OpType::reduce_mean, {{2, 3, 4}}, {{"axes", Ints{0, -1}}}) == Shape{3});
  CHECK(shape(OpType::reduce_max, {{2, 3, 4}}, {{"axes", Ints{1}}, {"keepdims", i(1)}}) == Shape{2, 1, 4});
  CHECK(types(OpType::argmax, {{{2, 3}, DataType::fp16}})[0].dtype == DataType::int64);
  CHECK(shapes(OpType::topk, {{2, 50}}, {{"k", i(5)}}) == std::vector<Shape>{{2, 5}, {2, 5}});
  CHECK(refusal(OpType::softmax, {{2, 3}}, {{"axis", i(2)}}) ==
        "attributes/axis: softmax: expected an axis of a rank 2 tensor, got 2");
  CHECK(refusal(OpType::softmax, {{}}) == "attributes/axis: softmax: expected an axis of a rank 0 tensor, got -1");
  CHECK(refusal(OpType::reduce_sum, {{2, 3}}, {{"axes", Ints{-3}}}) ==
        "attributes/axes: reduce_sum: expected axes of a rank 2 tensor, got -3");
  CHECK(refusal(OpType::topk, {{2, 3}}, {{"k", i(4)}}) ==
        "attributes/k: topk: expected at most the last dimension, 3, got 4");
}

TEST_CASE("pooling and resizing follow the frameworks' rounding", "[graph][shape]") {
  CHECK(shape(OpType::max_pool2d, {{8, 64, 112, 112}}, {{"kernel", i(3)}, {"stride", i(2)}, {"padding", i(1)}}) ==
        Shape{8, 64, 56, 56});
  CHECK(shape(OpType::avg_pool2d, {{1, 1, 7, 9}}, {{"kernel", Ints{2, 3}}}) == Shape{1, 1, 3, 3});
  CHECK(shape(OpType::max_pool2d, {{1, 1, 6, 6}}, {{"kernel", i(3)}, {"stride", i(2)}, {"ceil_mode", i(1)}}) ==
        Shape{1, 1, 3, 3});
  // ceil gives 3 windows, but the third would begin at 2 * 2 = 4 = in + padding: it does not count.
  CHECK(shape(OpType::max_pool2d, {{1, 1, 3, 3}},
              {{"kernel", i(2)}, {"stride", i(2)}, {"padding", i(1)}, {"ceil_mode", i(1)}}) == Shape{1, 1, 2, 2});
  CHECK(shape(OpType::global_avg_pool2d, {{8, 2048, 7, 7}}) == Shape{8, 2048, 1, 1});
  CHECK(shape(OpType::pool_backward, {{8, 64, 56, 56}}, {{"input_shape", Ints{8, 64, 112, 112}}}) ==
        Shape{8, 64, 112, 112});
  CHECK(shape(OpType::resize, {{1, 3, 5, 5}}, {{"scale", 1.5}}) == Shape{1, 3, 7, 7});
  CHECK(shape(OpType::resize, {{1, 3, 5, 5}}, {{"size", Ints{10, 20}}}) == Shape{1, 3, 10, 20});
  CHECK(refusal(OpType::max_pool2d, {{1, 1, 6, 6}}) ==
        "attributes/kernel: max_pool2d: expected an integer or 2 of them, got nothing");
  CHECK(refusal(OpType::max_pool2d, {{1, 1, 6, 6}}, {{"kernel", i(3)}, {"padding", i(2)}}) ==
        "attributes/padding: max_pool2d: expected at most half the kernel, 1, got 2");
  CHECK(refusal(OpType::resize, {{1, 3, 5, 5}}) ==
        "attributes/scale: resize: expected a number above 0, or attribute 'size', got nothing");
}

TEST_CASE("tables, gathers and expert routing", "[graph][shape]") {
  const TensorType ids{{8, 512}, DataType::int64};
  const TensorType choices{{100, 2}, DataType::int32};
  CHECK(types(OpType::embedding, {ids, {{30522, 1024}, DataType::fp16}})[0].shape == Shape{8, 512, 1024});
  CHECK(types(OpType::embedding, {ids, {{30522, 1024}, DataType::fp16}})[0].dtype == DataType::fp16);
  CHECK(types(OpType::embedding_backward, {{{8, 512, 64}, DataType::fp32}, ids}, {{"rows", i(30522)}})[0].shape ==
        Shape{30522, 64});
  CHECK(types(OpType::gather, {{{50, 3, 4}, DataType::fp32}, ids})[0].shape == Shape{8, 512, 3, 4});
  CHECK(types(OpType::scatter_add, {{{8, 512, 4}, DataType::fp32}, ids}, {{"rows", i(50)}})[0].shape == Shape{50, 4});
  // ceil(100 * 2 / 8) = 25 tokens per expert.
  CHECK(types(OpType::moe_dispatch, {{{100, 64}, DataType::fp32}, choices}, {{"experts", i(8)}})[0].shape ==
        Shape{8, 25, 64});
  CHECK(types(OpType::moe_combine, {{{8, 25, 64}, DataType::fp32}, choices, {{100, 2}, DataType::fp32}})[0].shape ==
        Shape{100, 64});
  CHECK(refusal(OpType::embedding, {{8}, {10, 4}}) == "inputs/0: embedding: expected ids of an integer type, got fp32");
}

TEST_CASE("views and copies place every element", "[graph][shape]") {
  CHECK(shape(OpType::reshape, {{8, 512, 1024}}, {{"shape", Ints{8, 512, -1, 64}}}) == Shape{8, 512, 16, 64});
  CHECK(shape(OpType::reshape, {{0, 4}}, {{"shape", Ints{4, 0}}}) == Shape{4, 0});
  CHECK(shape(OpType::expand, {{1, 4}}, {{"shape", Ints{3, 5, -1}}}) == Shape{3, 5, 4});
  CHECK(shape(OpType::transpose, {{2, 3, 4}}) == Shape{2, 4, 3});
  CHECK(shape(OpType::transpose, {{2, 3, 4}}, {{"perm", Ints{2, 0, 1}}}) == Shape{4, 2, 3});
  CHECK(shapes(OpType::split, {{2, 9}}, {{"sizes", Ints{3, 0, 6}}}) == std::vector<Shape>{{2, 3}, {2, 0}, {2, 6}});
  CHECK(shape(OpType::slice, {{10, 4}}, {{"axis", i(0)}, {"start", i(-7)}, {"end", i(100)}, {"step", i(3)}}) ==
        Shape{3, 4});
  CHECK(shape(OpType::slice, {{10, 4}}, {{"axis", i(0)}, {"start", i(6)}, {"end", i(2)}}) == Shape{0, 4});
  CHECK(shape(OpType::concat, {{2, 3}, {2, 0}, {2, 5}}, {{"axis", i(-1)}}) == Shape{2, 8});
  CHECK(shape(OpType::pad, {{2, 3}}, {{"pads", Ints{0, 1, 0, -2}}}) == Shape{2, 2});
  CHECK(shape(OpType::fill, {}, {{"shape", Ints{2, 0}}}) == Shape{2, 0});

  CHECK(refusal(OpType::reshape, {{8, 3}}, {{"shape", Ints{5, -1}}}) ==
        "attributes/shape: reshape: expected 24 elements as in [8, 3], got [5, -1]");
  CHECK(refusal(OpType::reshape, {{0, 3}}, {{"shape", Ints{0, -1}}}) ==
        "attributes/shape: reshape: expected 0 elements as in [0, 3], got [0, -1]");
  CHECK(refusal(OpType::reshape, {{8, 3}}, {{"shape", Ints{-1, -1}}}) ==
        "attributes/shape: expected dimensions of 0 or more, got [1, -1]");
  CHECK(refusal(OpType::transpose, {{2, 3}}, {{"perm", Ints{0, 0}}}) ==
        "attributes/perm: transpose: expected a permutation of 2 axes, got [0, 0]");
  CHECK(refusal(OpType::split, {{2, 9}}, {{"sizes", Ints{3, 3}}}) ==
        "attributes/sizes: split: expected sizes that add up to 9, got [3, 3]");
  CHECK(refusal(OpType::slice, {{2, 9}}) == "attributes/axis: slice: expected an axis, got nothing");
  CHECK(refusal(OpType::concat, {{2, 3}, {3, 3}}, {{"axis", i(1)}}) ==
        "inputs/1: concat: expected a shape like [2, 3] outside axis 1, got [3, 3]");
}

TEST_CASE("losses give a scalar and collectives change the first dimension", "[graph][shape]") {
  CHECK(types(OpType::cross_entropy, {{{8, 10}, DataType::fp32}, {{8}, DataType::int64}})[0].shape == Shape{});
  CHECK(shape(OpType::mse_loss, {{8, 10}, {8, 10}}) == Shape{});
  CHECK(shape(OpType::mse_loss_backward, {{8, 10}, {8, 10}}) == Shape{8, 10});
  CHECK(shape(OpType::all_gather, {{8, 10}}, {{"ranks", i(4)}}) == Shape{32, 10});
  CHECK(shape(OpType::reduce_scatter, {{8, 10}}, {{"ranks", i(4)}}) == Shape{2, 10});
  CHECK(shapes(OpType::optimizer_step, {{8}, {8}}).empty());
  CHECK(refusal(OpType::cross_entropy, {{8, 10}, {8}}) ==
        "inputs/1: cross_entropy: expected labels of an integer type, got fp32");
  CHECK(refusal(OpType::reduce_scatter, {{9}}, {{"ranks", i(4)}}) ==
        "inputs/0: reduce_scatter: expected a first dimension that 4 ranks divide, got [9]");
}

TEST_CASE("results beyond 2^62 elements are refused, not wrapped around", "[graph][shape]") {
  CHECK(shape(OpType::expand, {{1}}, {{"shape", Ints{kHuge}}}) == Shape{kHuge});
  CHECK(refusal(OpType::expand, {{1}}, {{"shape", Ints{kHuge, 2}}}).find("2^62") != std::string::npos);
  CHECK(refusal(OpType::matmul, {{std::int64_t{1} << 40, 1}, {1, std::int64_t{1} << 40}}).find("2^62") !=
        std::string::npos);
  CHECK(refusal(OpType::concat, {{kHuge}, {kHuge}}).find("2^62") != std::string::npos);
  CHECK(refusal(OpType::all_gather, {{kHuge}}, {{"ranks", kHuge}}).find("2^62") != std::string::npos);
  CHECK(refusal(OpType::resize, {{1, 1, 8}}, {{"scale", 1e300}}).find("2^62") != std::string::npos);
  CHECK(refusal(OpType::conv_transpose1d, {{1, 1, kHuge}, {1, 1, 1}}, {{"stride", kHuge}}).find("2^62") !=
        std::string::npos);
  CHECK(refusal(OpType::fill, {}, {{"shape", Ints(65, 1)}}) ==
        "attributes/shape: expected at most 64 dimensions, got 65");
}

TEST_CASE("a fused row kernel states its shape and whole rows", "[graph][shape]") {
  const std::vector<std::int64_t> s{4, 8};
  CHECK(shape(OpType::fused_softmax, {{4, 8}, {8}}, {{"shape", s}, {"cols", i(8)}}) == Shape{4, 8});
  CHECK(refusal(OpType::fused_norm, {{4, 8}}, {{"cols", i(8)}}) ==
        "attributes/shape: fused_norm: expected a shape, got nothing");
  CHECK(refusal(OpType::fused_norm, {{4, 8}}, {{"shape", s}, {"cols", i(7)}}) ==
        "attributes/cols: fused_norm: expected a divisor of the 32 elements, got 7");
  CHECK(refusal(OpType::fused_norm, {{4, 8}}, {{"shape", s}, {"cols", i(8)}, {"parameters", i(3)}}) ==
        "attributes/parameters: fused_norm: expected at most 2, got 3");
  CHECK(refusal(OpType::fused_norm, {{4, 8}}, {{"shape", s}, {"cols", i(8)}, {"row_inputs", i(-1)}}) ==
        "attributes/row_inputs: fused_norm: expected 0 or more, got -1");
}
