// SPDX-License-Identifier: MIT
// V-Net [Milletari16] as NVIDIA publishes it for the hippocampus [NGCVNet]: 3x3x3 convolutions, three levels, ReLU;
// batch norm is assumed. Stages of one to three convolutions add their input to their result.
#include <algorithm>

#include "workloads/attention_block.hpp"
#include "workloads/convnets.hpp"
#include "workloads/unet.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kFilters = 16;
constexpr int kLevels = 3;
constexpr int kMostConvolutions = 3;  ///< Of a stage; the first has one, the second two.
constexpr Dim kClasses = 3;

TensorId norm_relu(GraphWriter& w, const std::string& name, TensorId x) {
  return w.apply(OpType::relu, name + ".relu", {batch_norm(w, name + ".norm", x)});
}

/// One channel is repeated over all of a stage's.
TensorId stage(GraphWriter& w, TensorId x, Dim width, int convolutions) {
  TensorId y = x;
  for (int i = 1; i <= convolutions; ++i) {
    const std::string name = "conv" + std::to_string(i);
    y = conv(w, name, y, width, 3);
    y = i < convolutions ? norm_relu(w, name, y) : batch_norm(w, name + ".norm", y);
  }
  return w.apply(OpType::relu, "relu", {w.apply(OpType::add, "add", {y, x})});
}

TensorId scores(GraphWriter& w, TensorId image) {
  std::vector<TensorId> skips;
  TensorId x = image;
  for (int level = 0; level <= kLevels; ++level) {
    w.scope("encoder" + std::to_string(level));
    const Dim width = kFilters << level;
    if (level > 0) x = norm_relu(w, "down", conv(w, "down", x, width, 2, {.stride = 2, .padding = 0}));
    x = stage(w, x, width, std::min(level + 1, kMostConvolutions));
    skips.push_back(x);
  }
  for (int level = kLevels - 1; level >= 0; --level) {
    w.scope("decoder" + std::to_string(level));
    const Dim width = kFilters << level;
    x = norm_relu(w, "up", conv_transpose(w, "up", x, width, 2, {.stride = 2}));
    x = concat(w, "concat", {x, skips[static_cast<std::size_t>(level)]});
    x = stage(w, x, 2 * width, std::min(level + 1, kMostConvolutions));
  }
  w.scope("classifier");
  return conv(w, "conv", x, kClasses, 1, {.bias = true});
}

}  // namespace

void build_vnet(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, {32, 32, 32}, workload);
  require_sides(sizes, Dim{1} << kLevels, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId image = w.input("image", {sizes.batch, 1, sizes.depth, sizes.height, sizes.width});
  const TensorId x = scores(w, image);
  w.scope("loss");
  const TensorId p = w.apply(OpType::softmax, "softmax", {x}, attributes({{"axis", std::int64_t{1}}}));
  if (w.training()) {
    w.graph().loss = dice_loss(w, "dice", p);
    return finish(workload, p);
  }
  finish(workload, w.apply(OpType::argmax, "argmax", {p}, attributes({{"axis", std::int64_t{1}}})));
}

}  // namespace voltaic::workloads
