// SPDX-License-Identifier: MIT
// DenseNet-121 [Huang17]: every layer of a block reads the joined maps of all layers before it.
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kGrowth = 32;
constexpr Dim kBottleneck = 4 * kGrowth;

TensorId norm_relu_conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel) {
  const TensorId normed = w.apply(OpType::relu, name + ".relu", {batch_norm(w, name + ".norm", x)});
  return conv(w, name, normed, out, kernel);
}

TensorId dense_block(GraphWriter& w, const std::string& name, TensorId x, int layers) {
  std::vector<TensorId> maps{x};
  for (int i = 0; i < layers; ++i) {
    w.scope(name + ".layer" + std::to_string(i + 1));
    const TensorId joined = concat(w, "concat", maps);
    const TensorId narrow = norm_relu_conv(w, "conv1", joined, kBottleneck, 1);
    maps.push_back(norm_relu_conv(w, "conv2", narrow, kGrowth, 3));
  }
  w.scope(name);
  return concat(w, "concat", maps);
}

}  // namespace

void build_densenet121(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 224, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  TensorId x = image_input(w, sizes);
  w.scope("stem");
  x = conv_norm_act(w, "conv0", x, 64, 7, OpType::relu, {.stride = 2});
  x = max_pool(w, "pool0", x, 3, {.stride = 2, .padding = 1});
  constexpr std::array<int, 4> kLayers{6, 12, 24, 16};
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    x = dense_block(w, "block" + std::to_string(i + 1), x, kLayers.at(i));
    if (i + 1 == kLayers.size()) break;
    w.scope("transition" + std::to_string(i + 1));
    x = avg_pool(w, "pool", norm_relu_conv(w, "conv", x, w.dim(x, 1) / 2, 1), 2);
  }
  w.scope("final");
  x = w.apply(OpType::relu, "relu", {batch_norm(w, "norm5", x)});
  classifier_head(w, workload, x, 1000, 0);
}

}  // namespace voltaic::workloads
