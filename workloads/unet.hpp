// SPDX-License-Identifier: MIT
// The U-Net and its descendants: an encoder that halves, a decoder that doubles, a joint at every resolution.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/backbones.hpp"

namespace voltaic::workloads {

enum class UNetNorm : std::uint8_t { none, batch, instance };

struct UNetShape {
  std::vector<Dim> filters;  ///< From the finest resolution to the coarsest.
  Dim classes = 2;
  UNetNorm norm = UNetNorm::none;
  OpType act = OpType::relu;
  bool conv_bias = false;
  bool up_bias = false;
  bool valid = false;       ///< Convolutions without padding; skips are cropped.
  bool strided = false;     ///< Halved by the first convolution of a level, not by pooling.
  bool all_levels = false;  ///< A classifier per decoder level (deep supervision); training runs all of them.
  double bottom_dropout = 0;
};

/// Scores [N, classes, spatial], the finest resolution first.
std::vector<TensorId> unet(GraphWriter& w, TensorId image, const UNetShape& shape);

/// Losses of segmentation over scores and labels of the same places, each a scalar tensor.
/// Cross entropy over classes.
TensorId pixel_cross_entropy(GraphWriter& w, const std::string& name, TensorId scores);
/// 1 - 2 |p t| / (|p| + |t|) of the class probabilities and one-hot labels, averaged over classes.
TensorId dice_loss(GraphWriter& w, const std::string& name, TensorId probabilities);
/// Cross entropy plus Dice, on every resolution given; each half as heavy as the one before. Sets the graph's loss.
void segmentation_loss(GraphWriter& w, const std::vector<TensorId>& scores);

}  // namespace voltaic::workloads
