// SPDX-License-Identifier: MIT
// Builders of the convolution networks in the zoo; the tables are in convnet.cpp, detection.cpp and segmentation.cpp.
#pragma once

#include "workloads/backbones.hpp"
#include "workloads/builder.hpp"

namespace voltaic::workloads {

// Classifiers.
void build_resnet(const ResNetShape& shape, const BuildOptions& options, Workload& workload);
void build_vgg(const std::array<Dim, 5>& counts, const BuildOptions& options, Workload& workload);
void build_densenet121(const BuildOptions& options, Workload& workload);
void build_inception_v3(const BuildOptions& options, Workload& workload);
void build_mobilenet_v2(const BuildOptions& options, Workload& workload);
void build_efficientnet(const EfficientNetShape& shape, Dim image, double dropout, const BuildOptions& options,
                        Workload& workload);
void build_efficientnet_v2_s(const BuildOptions& options, Workload& workload);

// Detectors.
void build_ssd300(const BuildOptions& options, Workload& workload);
void build_ssd300_resnet50(const BuildOptions& options, Workload& workload);
void build_ssd320_fpn(const BuildOptions& options, Workload& workload);
void build_retinanet(const BuildOptions& options, Workload& workload);
void build_efficientdet_d0(const BuildOptions& options, Workload& workload);
void build_mask_rcnn(const BuildOptions& options, Workload& workload);

// Segmentation.
void build_unet(const BuildOptions& options, Workload& workload);
void build_unet_medical(const BuildOptions& options, Workload& workload);
void build_unet_industrial(const BuildOptions& options, Workload& workload);
void build_unet3d(const BuildOptions& options, Workload& workload);
void build_nnunet_2d(const BuildOptions& options, Workload& workload);
void build_nnunet_3d(const BuildOptions& options, Workload& workload);
void build_vnet(const BuildOptions& options, Workload& workload);

}  // namespace voltaic::workloads
