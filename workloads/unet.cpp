// SPDX-License-Identifier: MIT
#include "workloads/unet.hpp"

#include <numeric>

namespace voltaic::workloads {
namespace {

constexpr double kLeak = 0.01;

TensorId activate(GraphWriter& w, const UNetShape& shape, const std::string& name, TensorId x) {
  if (shape.act != OpType::leaky_relu) return w.apply(shape.act, name, {x});
  return w.apply(OpType::leaky_relu, name, {x}, attributes({{"value", kLeak}}));
}

TensorId conv_block(GraphWriter& w, const UNetShape& shape, const std::string& name, TensorId x, Dim out, Dim stride) {
  x = conv(w, name, x, out, 3, {.stride = stride, .padding = shape.valid ? 0 : kSamePadding, .bias = shape.conv_bias});
  if (shape.norm == UNetNorm::batch) x = batch_norm(w, name + ".norm", x);
  if (shape.norm == UNetNorm::instance) x = instance_norm(w, name + ".norm", x);
  return activate(w, shape, name + ".act", x);
}

TensorId level(GraphWriter& w, const UNetShape& shape, TensorId x, Dim out, Dim stride) {
  x = conv_block(w, shape, "conv1", x, out, stride);
  return conv_block(w, shape, "conv2", x, out, 1);
}

/// The middle of `x`, as large as `like`.
TensorId crop(GraphWriter& w, TensorId x, TensorId like) {
  for (int axis = 2; axis < static_cast<int>(w.shape(x).size()); ++axis) {
    const Dim wanted = w.dim(like, axis);
    const Dim start = (w.dim(x, axis) - wanted) / 2;
    if (w.dim(x, axis) != wanted) x = w.slice("crop" + std::to_string(axis), x, axis, start, start + wanted);
  }
  return x;
}

std::vector<TensorId> encode(GraphWriter& w, const UNetShape& shape, TensorId x) {
  std::vector<TensorId> maps;
  for (std::size_t i = 0; i < shape.filters.size(); ++i) {
    w.scope("encoder" + std::to_string(i));
    if (i > 0 && !shape.strided) x = max_pool(w, "pool", x, 2);
    x = level(w, shape, x, shape.filters[i], i > 0 && shape.strided ? 2 : 1);
    maps.push_back(x);
  }
  return maps;
}

Shape spatial_axes(const GraphWriter& w, TensorId x) {
  Shape axes(w.shape(x).size() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

}  // namespace

std::vector<TensorId> unet(GraphWriter& w, TensorId image, const UNetShape& shape) {
  const std::vector<TensorId> skips = encode(w, shape, image);
  std::vector<TensorId> scores;
  TensorId x = skips.back();
  if (shape.bottom_dropout > 0) x = w.dropout("dropout", x, shape.bottom_dropout);
  for (std::size_t i = skips.size() - 1; i-- > 0;) {
    w.scope("decoder" + std::to_string(i));
    x = conv_transpose(w, "up", x, shape.filters[i], 2, {.stride = 2, .bias = shape.up_bias});
    x = level(w, shape, concat(w, "concat", {crop(w, skips[i], x), x}), shape.filters[i], 1);
    if (i == 0 || (shape.all_levels && w.training())) {
      scores.insert(scores.begin(), conv(w, "classifier", x, shape.classes, 1, {.bias = true}));
    } else if (shape.all_levels) {  // Inference keeps what it does not run.
      Shape filter(w.shape(x).size(), 1);
      filter[0] = shape.classes;
      filter[1] = shape.filters[i];
      w.parameter("classifier.weight", filter);
      w.parameter("classifier.bias", {shape.classes});
    }
  }
  return scores;
}

TensorId pixel_cross_entropy(GraphWriter& w, const std::string& name, TensorId scores) {
  std::vector<Dim> perm(w.shape(scores).size());
  std::iota(perm.begin() + 1, perm.end() - 1, 2);
  perm.back() = 1;
  const TensorId last = w.transpose(name + ".classes_last", scores, perm);
  Shape places = w.shape(last);
  places.pop_back();
  const TensorId labels = w.input(name + ".labels", places, DataType::int64);
  return w.apply(OpType::cross_entropy, name, {last, labels});
}

TensorId dice_loss(GraphWriter& w, const std::string& name, TensorId probabilities) {
  const TensorId target = w.input(name + ".one_hot", w.shape(probabilities));
  const auto sum = [&](const std::string& what, TensorId x) {
    return w.apply(OpType::reduce_sum, name + "." + what, {x}, attributes({{"axes", spatial_axes(w, x)}}));
  };
  const TensorId common = sum("intersection", w.apply(OpType::mul, name + ".product", {probabilities, target}));
  const TensorId both = w.apply(OpType::add, name + ".sizes", {sum("size", probabilities), sum("true_size", target)});
  const TensorId twice = w.scalar(OpType::mul_scalar, name + ".twice", common, 2.0);
  const TensorId ratio = w.apply(OpType::div, name + ".ratio", {twice, both});
  const TensorId mean = w.apply(OpType::reduce_mean, name + ".mean", {ratio});
  return w.scalar(OpType::add_scalar, name, w.apply(OpType::neg, name + ".negative", {mean}), 1.0);
}

void segmentation_loss(GraphWriter& w, const std::vector<TensorId>& scores) {
  w.scope("loss");
  TensorId total = 0;
  double weight = 1;
  for (std::size_t i = 0; i < scores.size(); ++i, weight /= 2) {
    const std::string at = std::to_string(i);
    const TensorId entropy = pixel_cross_entropy(w, "cross_entropy" + at, scores[i]);
    const TensorId probabilities =
        w.apply(OpType::softmax, "softmax" + at, {scores[i]}, attributes({{"axis", std::int64_t{1}}}));
    TensorId sum = w.apply(OpType::add, "sum" + at, {entropy, dice_loss(w, "dice" + at, probabilities)});
    if (scores.size() > 1) sum = w.scalar(OpType::mul_scalar, "weight" + at, sum, weight);
    total = i == 0 ? sum : w.apply(OpType::add, "total" + at, {total, sum});
  }
  w.graph().loss = total;
}

}  // namespace voltaic::workloads
