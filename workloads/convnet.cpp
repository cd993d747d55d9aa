// SPDX-License-Identifier: MIT
// ResNet (18, 50, 101, 152) and VGG-16 for 1000 classes: convolution networks of [He16] and [Simonyan15] with the
// stride of a bottleneck on its 3x3 convolution, as the common framework implementations have it.
#include <array>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kClasses = 1000;
constexpr Dim kOwnImage = 224;

TensorId conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, Dim stride, bool bias) {
  const TensorId weight = w.parameter(name + ".weight", {out, w.dim(x, 1), kernel, kernel});
  graph::Attributes attrs = attributes({{"padding", kernel / 2}, {"stride", stride}});
  if (!bias) return w.apply(OpType::conv2d, name, {x, weight}, std::move(attrs));
  return w.apply(OpType::conv2d, name, {x, weight, w.parameter(name + ".bias", {out})}, std::move(attrs));
}

TensorId batch_norm(GraphWriter& w, const std::string& name, TensorId x) {
  const Shape channels{w.dim(x, 1)};
  const TensorId weight = w.parameter(name + ".weight", channels);
  const TensorId bias = w.parameter(name + ".bias", channels);
  const TensorId mean = w.buffer(name + ".running_mean", channels);
  const TensorId variance = w.buffer(name + ".running_var", channels);
  graph::Attributes attrs;
  if (w.training()) attrs.set("training", std::int64_t{1});
  return w.apply(OpType::batch_norm, name, {x, weight, bias, mean, variance}, std::move(attrs));
}

TensorId conv_norm(GraphWriter& w, const std::string& number, TensorId x, Dim out, Dim kernel, Dim stride) {
  return batch_norm(w, "bn" + number, conv(w, "conv" + number, x, out, kernel, stride, false));
}

TensorId shortcut(GraphWriter& w, TensorId x, Dim out, Dim stride) {
  if (stride == 1 && w.dim(x, 1) == out) return x;
  return batch_norm(w, "downsample.1", conv(w, "downsample.0", x, out, 1, stride, false));
}

TensorId basic_block(GraphWriter& w, TensorId x, Dim width, Dim stride) {
  TensorId y = w.apply(OpType::relu, "relu1", {conv_norm(w, "1", x, width, 3, stride)});
  y = conv_norm(w, "2", y, width, 3, 1);
  const TensorId skip = shortcut(w, x, width, stride);
  return w.apply(OpType::relu, "relu2", {w.apply(OpType::add, "add", {y, skip})});
}

TensorId bottleneck(GraphWriter& w, TensorId x, Dim width, Dim stride) {
  TensorId y = w.apply(OpType::relu, "relu1", {conv_norm(w, "1", x, width, 1, 1)});
  y = w.apply(OpType::relu, "relu2", {conv_norm(w, "2", y, width, 3, stride)});
  y = conv_norm(w, "3", y, 4 * width, 1, 1);
  const TensorId skip = shortcut(w, x, 4 * width, stride);
  return w.apply(OpType::relu, "relu3", {w.apply(OpType::add, "add", {y, skip})});
}

std::array<int, 4> resnet_stages(int depth) {
  switch (depth) {
    case 18: return {2, 2, 2, 2};
    case 50: return {3, 4, 6, 3};
    case 101: return {3, 4, 23, 3};
    case 152: return {3, 8, 36, 3};
    default: break;
  }
  throw InternalError("resnet depth is one of 18, 50, 101, 152");
}

TensorId max_pool(GraphWriter& w, const std::string& name, TensorId x, Dim kernel, Dim stride, Dim padding) {
  return w.apply(OpType::max_pool2d, name, {x},
                 attributes({{"kernel", kernel}, {"padding", padding}, {"stride", stride}}));
}

void classify(GraphWriter& w, Workload& workload, TensorId logits) {
  if (w.training()) {
    w.scope("loss");
    const TensorId labels = w.input("labels", {w.dim(logits, 0)}, DataType::int64);
    w.graph().loss = w.apply(OpType::cross_entropy, "cross_entropy", {logits, labels});
  }
  finish(workload, logits);
}

}  // namespace

void build_resnet(int depth, const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kOwnImage, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  TensorId x = w.input("image", {sizes.batch, 3, sizes.height, sizes.width});
  w.scope("stem");
  x = w.apply(OpType::relu, "relu", {conv_norm(w, "1", x, 64, 7, 2)});
  x = max_pool(w, "maxpool", x, 3, 2, 1);
  const auto stages = resnet_stages(depth);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Dim width = Dim{64} << stage;
    for (int block = 0; block < stages.at(stage); ++block) {
      w.scope("layer" + std::to_string(stage + 1) + "." + std::to_string(block));
      const Dim stride = stage > 0 && block == 0 ? 2 : 1;
      x = depth < 50 ? basic_block(w, x, width, stride) : bottleneck(w, x, width, stride);
    }
  }
  w.scope("head");
  x = w.apply(OpType::global_avg_pool2d, "avgpool", {x});
  x = w.reshape("flatten", x, {sizes.batch, w.dim(x, 1)});
  classify(w, workload, w.linear("fc", x, kClasses, true));
}

void build_vgg16(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kOwnImage, workload);
  if (sizes.height != kOwnImage || sizes.width != kOwnImage) {
    throw ConfigError(workload.name, "",
                      "expected a 224x224 image (its classifier reads 7x7 features), got " +
                          std::to_string(sizes.height) + "x" + std::to_string(sizes.width));
  }
  GraphWriter w(workload.graph, workload.name, sizes.training);
  TensorId x = w.input("image", {sizes.batch, 3, sizes.height, sizes.width});
  constexpr std::array<std::array<Dim, 2>, 5> kStages{
      {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}};  // width, convolutions
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    w.scope("features" + std::to_string(stage + 1));
    for (Dim i = 0; i < kStages.at(stage)[1]; ++i) {
      const std::string number = std::to_string(i + 1);
      x = w.apply(OpType::relu, "relu" + number, {conv(w, "conv" + number, x, kStages.at(stage)[0], 3, 1, true)});
    }
    x = max_pool(w, "pool", x, 2, 2, 0);
  }
  w.scope("classifier");
  x = w.reshape("flatten", x, {sizes.batch, w.dim(x, 1) * w.dim(x, 2) * w.dim(x, 3)});
  for (const std::string number : {"1", "2"}) {
    x = w.apply(OpType::relu, "relu" + number, {w.linear("fc" + number, x, 4096, true)});
    x = w.dropout("dropout" + number, x, 0.5);
  }
  classify(w, workload, w.linear("fc3", x, kClasses, true));
}

}  // namespace voltaic::workloads
