// SPDX-License-Identifier: MIT
// Encoders and decoders that label each pixel or voxel: the U-Net of [Ronneberger15], with padding and batch norm,
// small, in three dimensions [Isensee21] and as that work configures itself.
#include <fmt/format.h>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/convnets.hpp"
#include "workloads/unet.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

/// Labels each place by the largest score, or closes with the loss.
void close(GraphWriter& w, Workload& workload, const std::vector<TensorId>& scores) {
  if (w.training()) {
    segmentation_loss(w, scores);
    return finish(workload, scores.front());
  }
  w.scope("labels");
  const graph::Attributes classes = attributes({{"axis", std::int64_t{1}}});
  const TensorId probabilities = w.apply(OpType::softmax, "softmax", {scores.front()}, classes);
  finish(workload, w.apply(OpType::argmax, "argmax", {probabilities}, classes));
}

/// Without padding, a side of 16 b + 60 is halved evenly four times, with b at the bottom, and 16 b - 124 come out.
void require_even_halving(const ImageSizes& sizes, const Workload& workload) {
  constexpr Dim kStep = 16;
  constexpr Dim kOffset = 60;
  constexpr Dim kLeastBottom = 8;
  for (const Dim side : {sizes.height, sizes.width}) {
    const Dim least = kStep * kLeastBottom + kOffset;
    if (side >= least && (side - kOffset) % kStep == 0) continue;
    const Dim below = side < least ? least : (side - kOffset) / kStep * kStep + kOffset;
    throw ConfigError(
        workload.name, "",
        fmt::format("expected sides of 188 + 16 k, which unpadded convolutions halve evenly ({} or {}), got {}", below,
                    below + kStep, side));
  }
}

TensorId volume_input(GraphWriter& w, const ImageSizes& sizes, Dim channels) {
  return w.input("image", {sizes.batch, channels, sizes.depth, sizes.height, sizes.width});
}

UNetShape nnunet(std::vector<Dim> filters) {
  return {.filters = std::move(filters),
          .classes = 4,
          .norm = UNetNorm::instance,
          .act = OpType::leaky_relu,
          .conv_bias = true,
          .up_bias = true,
          .strided = true,
          .all_levels = true};
}

constexpr Dim kModalities = 4;  ///< Magnetic resonance images of one brain.

constexpr ZooModel kModels[] = {
    {"unet", "segmentation", "U-Net with padding and batch norm: 64 to 1024 filters, RGB, 2 classes, 512x512",
     build_unet},
    {"unet-medical", "segmentation", "U-Net of 2015: unpadded convolutions, one channel, 572x572 to 388x388",
     build_unet_medical},
    {"unet-industrial", "segmentation", "U-Net with 32 to 256 filters for defects, one channel, 512x512",
     build_unet_industrial},
    {"unet3d", "segmentation", "3D U-Net: 32 to 320 filters, instance norm, 4 channels, 128x128x128", build_unet3d},
    {"nnunet-2d", "segmentation", "nnU-Net in 2D: 32 to 512 filters, 4 channels and classes, 192x160", build_nnunet_2d},
    {"nnunet-3d", "segmentation", "nnU-Net in 3D: 32 to 320 filters, 4 channels and classes, 128x128x128",
     build_nnunet_3d},
    {"vnet", "segmentation", "V-Net of three levels: 16 to 128 filters, one channel, 3 classes, 32x32x32", build_vnet},
};

}  // namespace

void build_unet(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 512, workload);
  require_sides(sizes, 16, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const UNetShape shape{.filters = {64, 128, 256, 512, 1024}, .norm = UNetNorm::batch, .up_bias = true};
  close(w, workload, unet(w, image_input(w, sizes), shape));
}

void build_unet_medical(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 572, workload);
  require_even_halving(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const UNetShape shape{
      .filters = {64, 128, 256, 512, 1024}, .conv_bias = true, .up_bias = true, .valid = true, .bottom_dropout = 0.5};
  close(w, workload, unet(w, image_input(w, sizes, 1), shape));
}

/// Three halvings, and the size of a published copy (7.45 MB in fp32) give 32 to 256 filters [NGCUNetIndustrial].
/// Simplification: doubling and the convolution after it are one transposed convolution.
void build_unet_industrial(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 512, workload);
  require_sides(sizes, 8, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const UNetShape shape{.filters = {32, 64, 128, 256}, .classes = 1, .conv_bias = true, .up_bias = true};
  const TensorId scores = unet(w, image_input(w, sizes, 1), shape).front();
  w.scope("loss");
  const TensorId defects = w.apply(OpType::sigmoid, "sigmoid", {scores});
  if (w.training()) w.graph().loss = dice_loss(w, "dice", defects);
  finish(workload, defects);
}

void build_unet3d(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, {128, 128, 128}, workload);
  require_sides(sizes, 32, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const UNetShape shape{.filters = {32, 64, 128, 256, 320, 320},
                        .classes = 3,
                        .norm = UNetNorm::instance,
                        .up_bias = true,
                        .strided = true};
  close(w, workload, unet(w, volume_input(w, sizes, kModalities), shape));
}

void build_nnunet_2d(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, {192, 160}, workload);
  require_sides(sizes, 32, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  close(w, workload, unet(w, image_input(w, sizes, kModalities), nnunet({32, 64, 128, 256, 512, 512})));
}

void build_nnunet_3d(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, {128, 128, 128}, workload);
  require_sides(sizes, 32, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  close(w, workload, unet(w, volume_input(w, sizes, kModalities), nnunet({32, 64, 128, 256, 320, 320})));
}

std::span<const ZooModel> segmentation_models() {
  return kModels;
}

}  // namespace voltaic::workloads
