// SPDX-License-Identifier: MIT
// ResNet (18, 50, 101, 152) and VGG-16 for 1000 classes: convolution networks of [He16] and [Simonyan15] with the
// stride of a bottleneck on its 3x3 convolution, as the common framework implementations have it.
#include <array>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"
#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kClasses = 1000;
constexpr Dim kOwnImage = 224;

TensorId conv_norm(GraphWriter& w, const std::string& number, TensorId x, Dim out, Dim kernel, Dim stride) {
  return batch_norm(w, "bn" + number, conv(w, "conv" + number, x, out, kernel, {.stride = stride}));
}

TensorId shortcut(GraphWriter& w, TensorId x, Dim out, Dim stride) {
  if (stride == 1 && w.dim(x, 1) == out) return x;
  return batch_norm(w, "downsample.1", conv(w, "downsample.0", x, out, 1, {.stride = stride}));
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

void build_resnet(int depth, const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kOwnImage, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  TensorId x = w.input("image", {sizes.batch, 3, sizes.height, sizes.width});
  w.scope("stem");
  x = w.apply(OpType::relu, "relu", {conv_norm(w, "1", x, 64, 7, 2)});
  x = max_pool(w, "maxpool", x, 3, {.stride = 2, .padding = 1});
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
      x = w.apply(OpType::relu, "relu" + number,
                  {conv(w, "conv" + number, x, kStages.at(stage)[0], 3, {.bias = true})});
    }
    x = max_pool(w, "pool", x, 2, {});
  }
  w.scope("classifier");
  x = w.reshape("flatten", x, {sizes.batch, w.dim(x, 1) * w.dim(x, 2) * w.dim(x, 3)});
  for (const std::string number : {"1", "2"}) {
    x = w.apply(OpType::relu, "relu" + number, {w.linear("fc" + number, x, 4096, true)});
    x = w.dropout("dropout" + number, x, 0.5);
  }
  classify(w, workload, w.linear("fc3", x, kClasses, true));
}

template <int kDepth>
void resnet(const BuildOptions& options, Workload& workload) {
  build_resnet(kDepth, options, workload);
}

constexpr ZooModel kModels[] = {
    {"resnet18", "convolution", "ResNet-18, 1000 classes, 224x224", resnet<18>},
    {"resnet50", "convolution", "ResNet-50, 1000 classes, 224x224", resnet<50>},
    {"resnet101", "convolution", "ResNet-101, 1000 classes, 224x224", resnet<101>},
    {"resnet152", "convolution", "ResNet-152, 1000 classes, 224x224", resnet<152>},
    {"vgg16", "convolution", "VGG-16, 1000 classes, 224x224", build_vgg16},
};

}  // namespace

std::span<const ZooModel> classification_models() {
  return kModels;
}

}  // namespace voltaic::workloads
