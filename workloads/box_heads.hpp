// SPDX-License-Identifier: MIT
// What detectors share behind their feature maps: boxes relative to anchors, matching against labelled objects, losses
// and the choice of the final boxes. All images of a batch go through the pointwise part at once; suppression runs
// image by image.
#pragma once

#include <string>
#include <vector>

#include "workloads/backbones.hpp"

namespace voltaic::workloads {

inline constexpr Dim kObjects = 8;  ///< Labelled objects of an image (COCO has 7.3 on average).

/// Refuses batches whose images would each become nodes beyond reason, and states the assumed objects in training.
void prepare_detector(const ImageSizes& sizes, Workload& workload);

/// [N, A * values, H, W] to [N, H * W * A, values], one copy.
TensorId boxes_last(GraphWriter& w, const std::string& name, TensorId x, Dim values);

/// Corners from offsets [..., 4] to anchors [..., 4]: centres move by the anchor's size, sizes scale by an exponential.
TensorId decode_boxes(GraphWriter& w, const std::string& name, TensorId offsets, TensorId anchors);

/// For each anchor [1 or N, A, 4] the object [N, G, 4] that overlaps it most: its index in [N, A]; and whether it
/// overlaps enough, as a boolean [N, A].
struct Matches {
  TensorId object = 0;
  TensorId positive = 0;
};
Matches match(GraphWriter& w, const std::string& name, TensorId anchors, TensorId objects);
/// Offsets [N * A, 4] of the matched objects relative to anchors that broadcast to [N, A, 4].
TensorId box_targets(GraphWriter& w, const std::string& name, TensorId anchors, TensorId objects, TensorId matched);

/// Rows of `x`, its leading `dims` dims taken as one.
TensorId pick(GraphWriter& w, const std::string& name, TensorId x, std::size_t dims, TensorId index);

/// Focal loss [Lin17b] of scores against targets of the same shape, summed, over the number of positives.
TensorId focal_loss(GraphWriter& w, const std::string& name, TensorId scores, TensorId targets);

/// The best `keep` of `candidates` boxes per image: the highest scores of all classes [N, R, C], their boxes [N, R, 4],
/// suppression of those that overlap. Indices into the candidates, image after image.
TensorId final_boxes(GraphWriter& w, TensorId boxes, TensorId scores, Dim candidates, Dim keep);
/// Suppression alone, image by image, over boxes [N, R, 4] and scores [N, R]: [N, keep, 4].
TensorId suppress(GraphWriter& w, const std::string& name, TensorId boxes, TensorId scores, Dim keep);

}  // namespace voltaic::workloads
