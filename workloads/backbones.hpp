// SPDX-License-Identifier: MIT
// Convolution networks as makers of feature maps, for classifiers, detectors and segmentation alike.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

/// The input of an image network, [N, channels, H, W].
TensorId image_input(GraphWriter& w, const ImageSizes& sizes, Dim channels = 3);

/// Convolution NAME without bias, batch norm NAME.bn.
TensorId conv_norm(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer = {});
/// And an activation NAME.act.
TensorId conv_norm_act(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, OpType act,
                       ConvLayer layer = {});
TensorId conv_relu(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer = {});

/// A convolution whose weights several maps share: made once, applied to each of them.
class SharedConv {
 public:
  SharedConv(GraphWriter& w, const std::string& name, Dim in, Dim out, Dim kernel, ConvLayer layer = {});
  TensorId apply(GraphWriter& w, const std::string& name, TensorId x) const;

 private:
  std::vector<TensorId> parameters_;
  graph::Attributes attributes_;
};

/// Batch norm with fixed statistics and fixed scale, written out as detectors do: a scale and a shift of the map,
/// computed from four vectors each time.
TensorId frozen_norm(GraphWriter& w, const std::string& name, TensorId x);

/// Mean over space, dropout and a dense layer over the classes, with the loss in training.
void classifier_head(GraphWriter& w, Workload& workload, TensorId x, Dim classes, double dropout);

struct ResNetShape {
  std::array<int, 4> blocks{3, 4, 6, 3};
  bool bottleneck = true;
  Dim groups = 1;
  Dim group_width = 64;  ///< Channels of a group in the first stage.
  bool squeeze = false;  ///< Squeeze and excitation, 16 to 1, at the end of each block.
  bool frozen = false;   ///< Norms fixed; stem and first stage not trained.
  std::size_t stages = 4;
  std::array<Dim, 4> strides{1, 2, 2, 2};
};
inline constexpr std::array<int, 4> kResNet50{3, 4, 6, 3};
/// The map of each stage: strides 4, 8, 16, 32 of the image.
std::vector<TensorId> resnet_features(GraphWriter& w, TensorId image, const ResNetShape& shape);

struct EfficientNetShape {
  double width = 1;
  double depth = 1;
  bool wide_squeeze = false;  ///< Squeezes a quarter of the expanded channels, not of the block's input.
};
/// The map after each of the seven stages: strides 2, 4, 8, 16, 16, 32, 32.
std::vector<TensorId> efficientnet_features(GraphWriter& w, TensorId image, const EfficientNetShape& shape);

/// Feature pyramid [Lin17]: 1x1 convolutions to `width` channels, each map added to the doubled map above it, 3x3
/// convolutions. Maps from fine to coarse.
std::vector<TensorId> feature_pyramid(GraphWriter& w, const std::vector<TensorId>& maps, Dim width);

/// The 16-layer network's first convolutions: `counts` of them per stage of 64, 128, 256, 512, 512 channels.
/// Pooling closes each stage; `before_pool` receives the map of each stage before it.
struct VggShape {
  std::array<Dim, 5> counts{2, 2, 3, 3, 3};
  bool ceil_third_pool = false;
  bool last_pool = true;
  std::vector<TensorId>* before_pool = nullptr;
};
TensorId vgg_features(GraphWriter& w, TensorId image, const VggShape& shape);

}  // namespace voltaic::workloads
