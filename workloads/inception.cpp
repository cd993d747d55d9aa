// SPDX-License-Identifier: MIT
// Inception-v3 [Szegedy16]: blocks of parallel branches, with an auxiliary classifier in training.
#include "workloads/attention_block.hpp"
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kClasses = 1000;

/// Convolution, batch norm and ReLU; `padding` as a number or to keep the size.
TensorId basic(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer = {}) {
  return conv_norm_act(w, name, x, out, kernel, OpType::relu, layer);
}

/// With a kernel of 1 x n or n x 1.
TensorId basic(GraphWriter& w, const std::string& name, TensorId x, Dim out, const Shape& kernel) {
  return w.apply(OpType::relu, name + ".act", {batch_norm(w, name + ".bn", conv(w, name, x, out, kernel))});
}

TensorId pooled_branch(GraphWriter& w, TensorId x, Dim out) {
  return basic(w, "branch_pool", avg_pool(w, "avg_pool", x, 3, {.stride = 1, .padding = 1}), out, 1);
}

TensorId block_a(GraphWriter& w, TensorId x, Dim pool_features) {
  const TensorId one = basic(w, "branch1x1", x, 64, 1);
  const TensorId five = basic(w, "branch5x5_2", basic(w, "branch5x5_1", x, 48, 1), 64, 5);
  TensorId three = basic(w, "branch3x3_2", basic(w, "branch3x3_1", x, 64, 1), 96, 3);
  three = basic(w, "branch3x3_3", three, 96, 3);
  return concat(w, "concat", {one, five, three, pooled_branch(w, x, pool_features)});
}

TensorId block_b(GraphWriter& w, TensorId x) {
  const ConvLayer halving{.stride = 2, .padding = 0};
  const TensorId three = basic(w, "branch3x3", x, 384, 3, halving);
  TensorId twice = basic(w, "branch3x3dbl_2", basic(w, "branch3x3dbl_1", x, 64, 1), 96, 3);
  twice = basic(w, "branch3x3dbl_3", twice, 96, 3, halving);
  return concat(w, "concat", {three, twice, max_pool(w, "max_pool", x, 3, {.stride = 2})});
}

TensorId block_c(GraphWriter& w, TensorId x, Dim inner) {
  const TensorId one = basic(w, "branch1x1", x, 192, 1);
  TensorId seven = basic(w, "branch7x7_2", basic(w, "branch7x7_1", x, inner, 1), inner, {1, 7});
  seven = basic(w, "branch7x7_3", seven, 192, {7, 1});
  TensorId twice = basic(w, "branch7x7dbl_1", x, inner, 1);
  for (const int i : {2, 4}) {
    twice = basic(w, "branch7x7dbl_" + std::to_string(i), twice, inner, {7, 1});
    twice = basic(w, "branch7x7dbl_" + std::to_string(i + 1), twice, i == 4 ? 192 : inner, {1, 7});
  }
  return concat(w, "concat", {one, seven, twice, pooled_branch(w, x, 192)});
}

TensorId block_d(GraphWriter& w, TensorId x) {
  const ConvLayer halving{.stride = 2, .padding = 0};
  const TensorId three = basic(w, "branch3x3_2", basic(w, "branch3x3_1", x, 192, 1), 320, 3, halving);
  TensorId seven = basic(w, "branch7x7x3_2", basic(w, "branch7x7x3_1", x, 192, 1), 192, {1, 7});
  seven = basic(w, "branch7x7x3_3", seven, 192, {7, 1});
  seven = basic(w, "branch7x7x3_4", seven, 192, 3, halving);
  return concat(w, "concat", {three, seven, max_pool(w, "max_pool", x, 3, {.stride = 2})});
}

TensorId forked(GraphWriter& w, const std::string& name, TensorId x) {
  const TensorId wide = basic(w, name + "a", x, 384, {1, 3});
  const TensorId tall = basic(w, name + "b", x, 384, {3, 1});
  return concat(w, name + ".concat", {wide, tall});
}

TensorId block_e(GraphWriter& w, TensorId x) {
  const TensorId one = basic(w, "branch1x1", x, 320, 1);
  const TensorId three = forked(w, "branch3x3_2", basic(w, "branch3x3_1", x, 384, 1));
  const TensorId twice = basic(w, "branch3x3dbl_2", basic(w, "branch3x3dbl_1", x, 448, 1), 384, 3);
  const TensorId deep = forked(w, "branch3x3dbl_3", twice);
  return concat(w, "concat", {one, three, deep, pooled_branch(w, x, 192)});
}

TensorId stem(GraphWriter& w, TensorId x) {
  w.scope("stem");
  x = basic(w, "conv1a", x, 32, 3, {.stride = 2, .padding = 0});
  x = basic(w, "conv2a", x, 32, 3, {.padding = 0});
  x = max_pool(w, "pool1", basic(w, "conv2b", x, 64, 3), 3, {.stride = 2});
  x = basic(w, "conv3b", x, 80, 1);
  return max_pool(w, "pool2", basic(w, "conv4a", x, 192, 3, {.padding = 0}), 3, {.stride = 2});
}

TensorId auxiliary(GraphWriter& w, TensorId x) {
  w.scope("aux");
  x = avg_pool(w, "pool", x, 5, {.stride = 3});
  x = basic(w, "conv1", basic(w, "conv0", x, 128, 1), 768, 5, {.padding = 0});
  x = global_pool(w, "avgpool", x);
  return w.linear("fc", w.reshape("flatten", x, {w.dim(x, 0), 768}), kClasses, true);
}

/// What inference keeps and does not run.
void idle_auxiliary(GraphWriter& w) {
  w.scope("aux");
  w.parameter("conv0.weight", {128, 768, 1, 1});
  w.parameter("conv1.weight", {768, 128, 5, 5});
  for (const auto& [name, channels] : {std::pair<std::string, Dim>{"conv0.bn", 128}, {"conv1.bn", 768}}) {
    w.parameter(name + ".weight", {channels});
    w.parameter(name + ".bias", {channels});
  }
  w.parameter("fc.weight", {kClasses, 768});
  w.parameter("fc.bias", {kClasses});
}

/// Cross entropy of the classifier and 0.4 times that of the auxiliary one.
void loss(GraphWriter& w, TensorId logits, TensorId aux) {
  w.scope("loss");
  const TensorId labels = w.input("labels", {w.dim(logits, 0)}, DataType::int64);
  const TensorId own = w.apply(OpType::cross_entropy, "cross_entropy", {logits, labels});
  const TensorId other = w.apply(OpType::cross_entropy, "aux_cross_entropy", {aux, labels});
  w.graph().loss = w.apply(OpType::add, "sum", {own, w.scalar(OpType::mul_scalar, "aux_weight", other, 0.4)});
}

TensorId middle(GraphWriter& w, TensorId x) {
  for (const auto& [name, pool] : {std::pair<const char*, Dim>{"mixed5b", 32}, {"mixed5c", 64}, {"mixed5d", 64}}) {
    w.scope(name);
    x = block_a(w, x, pool);
  }
  w.scope("mixed6a");
  x = block_b(w, x);
  constexpr std::array<std::pair<const char*, Dim>, 4> kWidths{
      {{"mixed6b", 128}, {"mixed6c", 160}, {"mixed6d", 160}, {"mixed6e", 192}}};
  for (const auto& [name, width] : kWidths) {
    w.scope(name);
    x = block_c(w, x, width);
  }
  return x;
}

}  // namespace

void build_inception_v3(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 299, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  TensorId x = middle(w, stem(w, image_input(w, sizes)));
  TensorId aux = 0;
  if (w.training()) {
    aux = auxiliary(w, x);
  } else {
    idle_auxiliary(w);
  }
  w.scope("mixed7a");
  x = block_d(w, x);
  for (const char* name : {"mixed7b", "mixed7c"}) {
    w.scope(name);
    x = block_e(w, x);
  }
  w.scope("head");
  x = global_pool(w, "avgpool", x);
  x = w.dropout("dropout", x, 0.5);
  const TensorId logits = w.linear("fc", w.reshape("flatten", x, {sizes.batch, w.dim(x, 1)}), kClasses, true);
  if (w.training()) loss(w, logits, aux);
  finish(workload, logits);
}

}  // namespace voltaic::workloads
