// SPDX-License-Identifier: MIT
// Detectors: a backbone, feature maps of several sizes, heads over them.
#include "workloads/convnets.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

constexpr ZooModel kModels[] = {
    {"ssd300", "detection", "SSD on VGG-16, 8732 boxes, 91 classes, 300x300", build_ssd300},
    {"ssd300-resnet50", "detection", "SSD on ResNet-50, 8732 boxes, 81 classes, 300x300", build_ssd300_resnet50},
    {"ssd320-resnet50-fpn", "detection", "SSD on ResNet-50 with a feature pyramid, 90 classes, 320x320",
     build_ssd320_fpn},
    {"retinanet", "detection", "RetinaNet on ResNet-50 with a feature pyramid, 91 classes, 800x1344", build_retinanet},
    {"efficientdet-d0", "detection", "EfficientDet-D0: EfficientNet-B0, three two-way pyramids, 512x512",
     build_efficientdet_d0},
    {"mask-rcnn", "detection", "Mask R-CNN on ResNet-50 with a feature pyramid, 91 classes, 800x1344", build_mask_rcnn},
};

}  // namespace

std::span<const ZooModel> detection_models() {
  return kModels;
}

}  // namespace voltaic::workloads
