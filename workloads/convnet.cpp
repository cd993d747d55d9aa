// SPDX-License-Identifier: MIT
// The classifiers of the zoo, each for the 1000 classes of ImageNet.
#include "workloads/convnets.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

constexpr ResNetShape kShapes[] = {
    {.blocks = {2, 2, 2, 2}, .bottleneck = false},
    {.blocks = {3, 4, 6, 3}, .bottleneck = false},
    {},
    {.blocks = {3, 4, 23, 3}},
    {.blocks = {3, 8, 36, 3}},
    {.groups = 32, .group_width = 4},
    {.blocks = {3, 4, 23, 3}, .groups = 32, .group_width = 4},
    {.blocks = {3, 4, 23, 3}, .groups = 32, .group_width = 4, .squeeze = true},
};
template <std::size_t kShape>
void resnet(const BuildOptions& options, Workload& workload) {
  build_resnet(kShapes[kShape], options, workload);
}

void vgg16(const BuildOptions& options, Workload& workload) {
  build_vgg({2, 2, 3, 3, 3}, options, workload);
}
void vgg19(const BuildOptions& options, Workload& workload) {
  build_vgg({2, 2, 4, 4, 4}, options, workload);
}

template <bool kWide>
void efficientnet_b0(const BuildOptions& options, Workload& workload) {
  build_efficientnet({.wide_squeeze = kWide}, 224, 0.2, options, workload);
}
template <bool kWide>
void efficientnet_b4(const BuildOptions& options, Workload& workload) {
  build_efficientnet({.width = 1.4, .depth = 1.8, .wide_squeeze = kWide}, 380, 0.4, options, workload);
}

constexpr ZooModel kModels[] = {
    {"resnet18", "convolution", "ResNet-18, 1000 classes, 224x224", resnet<0>},
    {"resnet34", "convolution", "ResNet-34, 1000 classes, 224x224", resnet<1>},
    {"resnet50", "convolution", "ResNet-50, 1000 classes, 224x224", resnet<2>},
    {"resnet101", "convolution", "ResNet-101, 1000 classes, 224x224", resnet<3>},
    {"resnet152", "convolution", "ResNet-152, 1000 classes, 224x224", resnet<4>},
    {"resnext50-32x4d", "convolution", "ResNeXt-50: 32 groups of 4 channels, 224x224", resnet<5>},
    {"resnext101-32x4d", "convolution", "ResNeXt-101: 32 groups of 4 channels, 224x224", resnet<6>},
    {"se-resnext101-32x4d", "convolution", "ResNeXt-101 with squeeze and excitation, 224x224", resnet<7>},
    {"vgg16", "convolution", "VGG-16, 1000 classes, 224x224", vgg16},
    {"vgg19", "convolution", "VGG-19, 1000 classes, 224x224", vgg19},
    {"densenet121", "convolution", "DenseNet-121: growth 32, 224x224", build_densenet121},
    {"inception-v3", "convolution", "Inception-v3 with its auxiliary classifier, 299x299", build_inception_v3},
    {"mobilenet-v2", "convolution", "MobileNet-v2, width 1.0, 224x224", build_mobilenet_v2},
    {"efficientnet-b0", "convolution", "EfficientNet-B0, 224x224", efficientnet_b0<false>},
    {"efficientnet-b4", "convolution", "EfficientNet-B4, 380x380", efficientnet_b4<false>},
    {"efficientnet-widese-b0", "convolution", "EfficientNet-B0 with gates as wide as its blocks",
     efficientnet_b0<true>},
    {"efficientnet-widese-b4", "convolution", "EfficientNet-B4 with gates as wide as its blocks",
     efficientnet_b4<true>},
    {"efficientnet-v2-s", "convolution", "EfficientNetV2-S, 384x384", build_efficientnet_v2_s},
};

}  // namespace

std::span<const ZooModel> classification_models() {
  return kModels;
}

}  // namespace voltaic::workloads
