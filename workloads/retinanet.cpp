// SPDX-License-Identifier: MIT
// One-stage detectors over a feature pyramid with heads that all levels share: RetinaNet [Lin17b] and the SSD with the
// same pyramid in TensorFlow's detection models.
#include <string>

#include "workloads/attention_block.hpp"
#include "workloads/box_heads.hpp"
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kWidth = 256;
constexpr int kTower = 4;  ///< Convolutions of a head before its last.

struct HeadShape {
  std::string name;
  Dim values = 4;  ///< Of one anchor.
  Dim anchors = 9;
  bool norm = false;  ///< Batch norm of its own per level, and no bias.
  OpType act = OpType::relu;
};

/// [N, boxes of all levels, values].
TensorId shared_head(GraphWriter& w, const HeadShape& shape, const std::vector<TensorId>& levels) {
  w.scope(shape.name);
  std::vector<SharedConv> tower;
  tower.reserve(kTower);
  for (int i = 0; i < kTower; ++i) {
    tower.emplace_back(w, "conv" + std::to_string(i), kWidth, kWidth, 3, ConvLayer{.bias = !shape.norm});
  }
  const SharedConv last(w, "predict", kWidth, shape.anchors * shape.values, 3, {.bias = true});
  std::vector<TensorId> parts;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const std::string at = "level" + std::to_string(level);
    TensorId x = levels[level];
    for (int i = 0; i < kTower; ++i) {
      const std::string name = at + ".conv" + std::to_string(i);
      x = tower[static_cast<std::size_t>(i)].apply(w, name, x);
      if (shape.norm) x = batch_norm(w, name + ".bn", x);
      x = w.apply(shape.act, name + ".act", {x});
    }
    parts.push_back(boxes_last(w, at, last.apply(w, at + ".predict", x), shape.values));
  }
  return concat(w, "boxes", parts, 1);
}

/// Sums of focal and box losses over matched anchors.
void loss(GraphWriter& w, TensorId offsets, TensorId scores) {
  w.scope("loss");
  const Dim images = w.dim(offsets, 0);
  const Dim count = w.dim(offsets, 1);
  const TensorId anchors = w.buffer("anchors", {1, count, 4});
  const TensorId objects = w.input("objects", {images, kObjects, 4});
  const Matches matches = match(w, "match", anchors, objects);
  const TensorId targets =
      w.reshape("targets.view", box_targets(w, "targets", anchors, objects, matches.object), w.shape(offsets));
  const TensorId mask = w.reshape(
      "mask.view", w.apply(OpType::cast, "mask", {matches.positive}, attributes({{"to", std::string("fp32")}})),
      {images, count, 1});
  const TensorId own = w.apply(OpType::mul, "own_offsets", {offsets, mask});
  const TensorId box =
      w.apply(OpType::smooth_l1_loss, "box", {own, w.apply(OpType::mul, "own_targets", {targets, mask})});
  const TensorId classes = w.apply(OpType::mul, "one_hot", {w.input("labels", w.shape(scores)), mask});
  w.graph().loss = w.apply(OpType::add, "loss", {box, focal_loss(w, "focal", scores, classes)});
}

void close(GraphWriter& w, Workload& workload, TensorId offsets, TensorId scores, Dim keep) {
  constexpr Dim kCandidates = 5000;  // 1,000 of each level
  if (w.training()) {
    loss(w, offsets, scores);
    return finish(workload, scores);
  }
  w.scope("boxes");
  const TensorId p = w.apply(OpType::sigmoid, "sigmoid", {scores});
  const TensorId anchors = w.buffer("anchors", {1, w.dim(offsets, 1), 4});
  finish(workload, final_boxes(w, decode_boxes(w, "decode", offsets, anchors), p, kCandidates, keep));
}

}  // namespace

void build_retinanet(const BuildOptions& options, Workload& workload) {
  constexpr Dim kClasses = 91;
  constexpr Dim kKept = 300;
  const ImageSizes sizes = resolve_padded(options, {800, 1344}, workload);
  prepare_detector(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  auto maps = resnet_features(w, image_input(w, sizes), {.frozen = true});
  maps.erase(maps.begin());  // The finest map would give too many anchors.
  auto levels = feature_pyramid(w, maps, kWidth);
  levels.push_back(conv(w, "p6", levels.back(), kWidth, 3, {.stride = 2, .bias = true}));
  const TensorId relu = w.apply(OpType::relu, "p6.relu", {levels.back()});
  levels.push_back(conv(w, "p7", relu, kWidth, 3, {.stride = 2, .bias = true}));
  const TensorId scores = shared_head(w, {.name = "classes", .values = kClasses}, levels);
  close(w, workload, shared_head(w, {.name = "offsets"}, levels), scores, kKept);
}

void build_ssd320_fpn(const BuildOptions& options, Workload& workload) {
  constexpr Dim kClasses = 90;
  constexpr Dim kAnchors = 6;
  constexpr Dim kKept = 100;
  const ImageSizes sizes = resolve_image(options, 320, workload);
  require_sides(sizes, 32, workload);
  prepare_detector(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  auto maps = resnet_features(w, image_input(w, sizes), {});
  maps.erase(maps.begin());
  std::vector<TensorId> levels = feature_pyramid(w, maps, kWidth);
  for (const char* name : {"p6", "p7"}) {
    levels.push_back(conv_norm_act(w, name, levels.back(), kWidth, 3, OpType::relu6, {.stride = 2}));
  }
  const HeadShape classes{
      .name = "classes", .values = kClasses, .anchors = kAnchors, .norm = true, .act = OpType::relu6};
  HeadShape offsets = classes;
  offsets.name = "offsets";
  offsets.values = 4;
  const TensorId scores = shared_head(w, classes, levels);
  close(w, workload, shared_head(w, offsets, levels), scores, kKept);
}

}  // namespace voltaic::workloads
