// SPDX-License-Identifier: MIT
// Residual networks [He16], their grouped form [Xie17] and that with channel gates [Hu18]; the stride of a bottleneck
// is on its 3x3 convolution, as the common framework implementations have it.
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kClasses = 1000;
constexpr Dim kSqueezed = 16;

/// One residual block of a network.
struct Block {
  const ResNetShape& shape;
  Dim planes = 64;
  Dim stride = 1;

  Dim out() const { return shape.bottleneck ? 4 * planes : planes; }
};

TensorId norm(GraphWriter& w, const ResNetShape& shape, const std::string& name, TensorId x) {
  return shape.frozen ? frozen_norm(w, name, x) : batch_norm(w, name, x);
}

TensorId normed(GraphWriter& w, const ResNetShape& shape, const std::string& number, TensorId x, Dim out, Dim kernel,
                ConvLayer layer = {}) {
  return norm(w, shape, "bn" + number, conv(w, "conv" + number, x, out, kernel, layer));
}

TensorId shortcut(GraphWriter& w, const Block& block, TensorId x) {
  if (block.stride == 1 && w.dim(x, 1) == block.out()) return x;
  const TensorId y = conv(w, "downsample.0", x, block.out(), 1, {.stride = block.stride});
  return norm(w, block.shape, "downsample.1", y);
}

TensorId close_block(GraphWriter& w, const Block& block, TensorId x, TensorId y, const std::string& relu) {
  if (block.shape.squeeze) y = squeeze_excite(w, "se", y, block.out() / kSqueezed, OpType::relu, OpType::sigmoid);
  const TensorId skip = shortcut(w, block, x);
  return w.apply(OpType::relu, relu, {w.apply(OpType::add, "add", {y, skip})});
}

TensorId basic_block(GraphWriter& w, const Block& block, TensorId x) {
  const TensorId y =
      w.apply(OpType::relu, "relu1", {normed(w, block.shape, "1", x, block.planes, 3, {.stride = block.stride})});
  return close_block(w, block, x, normed(w, block.shape, "2", y, block.planes, 3), "relu2");
}

TensorId bottleneck(GraphWriter& w, const Block& block, TensorId x) {
  const ResNetShape& shape = block.shape;
  const Dim width = block.planes * shape.group_width / 64 * shape.groups;
  TensorId y = w.apply(OpType::relu, "relu1", {normed(w, shape, "1", x, width, 1)});
  const ConvLayer grouped{.stride = block.stride, .groups = shape.groups};
  y = w.apply(OpType::relu, "relu2", {normed(w, shape, "2", y, width, 3, grouped)});
  return close_block(w, block, x, normed(w, shape, "3", y, block.out(), 1), "relu3");
}

void freeze(GraphWriter& w) {
  const auto count = static_cast<TensorId>(w.graph().tensors().size());
  for (TensorId t = 0; t < count; ++t) w.graph().tensor(t).trainable = false;
}

}  // namespace

std::vector<TensorId> resnet_features(GraphWriter& w, TensorId image, const ResNetShape& shape) {
  w.scope("stem");
  TensorId x = w.apply(OpType::relu, "relu", {normed(w, shape, "1", image, 64, 7, {.stride = 2})});
  x = max_pool(w, "maxpool", x, 3, {.stride = 2, .padding = 1});
  std::vector<TensorId> maps;
  for (std::size_t stage = 0; stage < shape.stages; ++stage) {
    for (int i = 0; i < shape.blocks.at(stage); ++i) {
      w.scope("layer" + std::to_string(stage + 1) + "." + std::to_string(i));
      const Block block{shape, Dim{64} << stage, i == 0 ? shape.strides.at(stage) : 1};
      x = shape.bottleneck ? bottleneck(w, block, x) : basic_block(w, block, x);
    }
    maps.push_back(x);
    if (shape.frozen && stage == 0) freeze(w);
  }
  return maps;
}

void build_resnet(const ResNetShape& shape, const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 224, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const auto maps = resnet_features(w, image_input(w, sizes), shape);
  classifier_head(w, workload, maps.back(), kClasses, 0);
}

}  // namespace voltaic::workloads
