// SPDX-License-Identifier: MIT
// Mask R-CNN [He17] on ResNet-50 and a feature pyramid: proposals from five levels, boxes and classes from 7x7 regions,
// masks from 14x14 ones.
#include <algorithm>
#include <string>
#include <utility>

#include "workloads/attention_block.hpp"
#include "workloads/box_heads.hpp"
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kWidth = 256;
constexpr Dim kClasses = 91;
constexpr Dim kAnchorsPerPlace = 3;
constexpr Dim kBoxRegion = 7;
constexpr Dim kMaskRegion = 14;
constexpr Dim kHidden = 1024;
constexpr Dim kSampledAnchors = 256;  ///< Of an image, for the loss of proposals.
constexpr Dim kSampledBoxes = 512;    ///< Of an image, for the losses of boxes; a quarter of them hold an object.
constexpr Dim kDetections = 100;

Dim proposals(const GraphWriter& w) {
  return w.training() ? 2000 : 1000;
}

struct Proposals {
  TensorId scores = 0;   ///< [N, anchors, 1] of all levels.
  TensorId offsets = 0;  ///< [N, anchors, 4].
  TensorId boxes = 0;    ///< [N, kept, 4].
};

/// The best of one level as (scores [N, k], corners [N, k, 4]).
std::pair<TensorId, TensorId> best_of_level(GraphWriter& w, const std::string& at, TensorId scores, TensorId offsets) {
  const Dim images = w.dim(scores, 0);
  const Dim count = w.dim(scores, 1);
  const Dim k = std::min(count, proposals(w));
  const TensorId p = w.apply(OpType::sigmoid, at + ".sigmoid", {w.reshape(at + ".flat", scores, {images, count})});
  const auto best = w.apply_multiple(OpType::topk, at + ".topk", {p}, attributes({{"k", k}}), 2);
  const TensorId index = w.reshape(at + ".places", best[1], {images * k});
  const TensorId chosen = w.reshape(at + ".chosen_view", pick(w, at + ".chosen", offsets, 2, index), {images, k, 4});
  const TensorId anchors = pick(w, at + ".anchors", w.buffer(at + ".all_anchors", {count, 4}), 1, index);
  const TensorId corners =
      decode_boxes(w, at + ".decode", chosen, w.reshape(at + ".anchor_view", anchors, {images, k, 4}));
  return {best[0], w.apply(OpType::clamp, at + ".clip", {corners}, attributes({{"high", 1e4}, {"low", 0.0}}))};
}

Proposals region_proposals(GraphWriter& w, const std::vector<TensorId>& levels) {
  w.scope("rpn");
  const SharedConv shared(w, "conv", kWidth, kWidth, 3, {.bias = true});
  const SharedConv objectness(w, "objectness", kWidth, kAnchorsPerPlace, 1, {.bias = true});
  const SharedConv deltas(w, "deltas", kWidth, 4 * kAnchorsPerPlace, 1, {.bias = true});
  std::vector<TensorId> scores;
  std::vector<TensorId> offsets;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string at = "level" + std::to_string(i);
    const TensorId x = w.apply(OpType::relu, at + ".relu", {shared.apply(w, at + ".conv", levels[i])});
    scores.push_back(boxes_last(w, at + ".score", objectness.apply(w, at + ".objectness", x), 1));
    offsets.push_back(boxes_last(w, at + ".offset", deltas.apply(w, at + ".deltas", x), 4));
  }
  std::vector<TensorId> best;
  std::vector<TensorId> corners;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto [score, box] = best_of_level(w, "level" + std::to_string(i), scores[i], offsets[i]);
    best.push_back(score);
    corners.push_back(box);
  }
  const TensorId kept =
      suppress(w, "suppress", concat(w, "corners", corners, 1), concat(w, "best", best, 1), proposals(w));
  if (!w.training()) return {0, 0, kept};
  return {concat(w, "scores", scores, 1), concat(w, "offsets", offsets, 1), kept};
}

/// `k` random rows of each image among `count`: indices [N * k].
TensorId sample(GraphWriter& w, const std::string& name, TensorId positive, Dim k) {
  const Dim images = w.dim(positive, 0);
  k = std::min(k, w.dim(positive, 1));
  const TensorId keys = w.fill(name + ".random", w.shape(positive), DataType::fp32);
  const TensorId split = w.apply(OpType::add, name + ".keys", {keys, positive});
  const auto chosen = w.apply_multiple(OpType::topk, name + ".topk", {split}, attributes({{"k", k}}), 2);
  return w.reshape(name + ".index", chosen[1], {images * k});
}

TensorId proposal_loss(GraphWriter& w, const Proposals& p, TensorId objects) {
  w.scope("rpn_loss");
  const Dim count = w.dim(p.scores, 1);
  const TensorId anchors = w.buffer("anchors", {1, count, 4});
  const Matches matches = match(w, "match", anchors, objects);
  const TensorId targets = box_targets(w, "targets", anchors, objects, matches.object);
  const TensorId index = sample(w, "sample", matches.positive, kSampledAnchors);
  const TensorId labels = w.apply(OpType::cast, "labels", {pick(w, "label_rows", matches.positive, 2, index)},
                                  attributes({{"to", std::string("fp32")}}));
  const TensorId scores = pick(w, "score_rows", p.scores, 3, index);
  const TensorId objectness = w.apply(OpType::bce_loss, "objectness", {scores, labels});
  const TensorId box =
      w.apply(OpType::smooth_l1_loss, "box",
              {pick(w, "offset_rows", p.offsets, 2, index), pick(w, "target_rows", targets, 1, index)});
  return w.apply(OpType::add, "sum", {objectness, box});
}

/// Regions [R, C, size, size] of boxes [R, 4], each from the level that its size calls for: a quarter from each.
TensorId regions(GraphWriter& w, const std::string& name, const std::vector<TensorId>& levels, TensorId boxes,
                 Dim size) {
  const Dim count = w.dim(boxes, 0);
  const TensorId sides = w.apply(OpType::sub, name + ".sides",
                                 {w.slice(name + ".high", boxes, 1, 2, 4), w.slice(name + ".low", boxes, 1, 0, 2)});
  const TensorId area = w.apply(OpType::mul, name + ".area",
                                {w.slice(name + ".w", sides, 1, 0, 1), w.slice(name + ".h", sides, 1, 1, 2)});
  const TensorId scale = w.apply(OpType::log, name + ".log", {w.apply(OpType::sqrt, name + ".scale", {area})});
  const TensorId level = w.apply(OpType::clamp, name + ".level", {scale}, attributes({{"high", 5.0}, {"low", 2.0}}));
  std::vector<TensorId> parts;
  Dim start = 0;
  for (Dim i = 0; i < 4; ++i) {
    const std::string at = name + ".level" + std::to_string(i);
    const Dim end = i == 3 ? count : start + count / 4;
    if (end == start) continue;
    w.apply(OpType::compare_scalar, at + ".here", {level},
            attributes({{"relation", std::string("eq")}, {"value", static_cast<double>(i + 2)}}));
    const TensorId own = w.contiguous(at + ".boxes", w.slice(at + ".rows", boxes, 0, start, end));
    parts.push_back(w.apply(OpType::roi_align, at, {levels[static_cast<std::size_t>(i)], own},
                            attributes({{"sampling", std::int64_t{2}}, {"size", size}})));
    start = end;
  }
  return parts.size() == 1 ? parts.front() : concat(w, name, parts, 0);
}

struct BoxScores {
  TensorId classes = 0;  ///< [R, classes].
  TensorId offsets = 0;  ///< [R, classes, 4].
};

BoxScores box_head(GraphWriter& w, const std::vector<TensorId>& levels, TensorId boxes) {
  w.scope("box_head");
  TensorId x = regions(w, "regions", levels, boxes, kBoxRegion);
  x = w.reshape("flatten", x, {w.dim(x, 0), kWidth * kBoxRegion * kBoxRegion});
  for (const std::string name : {"fc6", "fc7"})
    x = w.apply(OpType::relu, name + ".relu", {w.linear(name, x, kHidden, true)});
  const TensorId classes = w.linear("classes", x, kClasses, true);
  return {classes, w.reshape("offset_view", w.linear("offsets", x, 4 * kClasses, true), {w.dim(x, 0), kClasses, 4})};
}

/// [R, classes, 28, 28].
TensorId mask_head(GraphWriter& w, const std::vector<TensorId>& levels, TensorId boxes) {
  w.scope("mask_head");
  TensorId x = regions(w, "regions", levels, boxes, kMaskRegion);
  for (int i = 1; i <= 4; ++i) x = conv_relu(w, "conv" + std::to_string(i), x, kWidth, 3, {.bias = true});
  x = w.apply(OpType::relu, "up.relu", {conv_transpose(w, "up", x, kWidth, 2, {.stride = 2, .bias = true})});
  return conv(w, "classes", x, kClasses, 1, {.bias = true});
}

/// Proposals and labelled boxes, sampled: corners [N * k, 4] and their targets.
struct Sampled {
  TensorId boxes = 0;
  TensorId targets = 0;
  TensorId labels = 0;
};

Sampled sample_boxes(GraphWriter& w, TensorId kept, TensorId objects) {
  w.scope("sampler");
  const TensorId all = concat(w, "with_objects", {kept, objects}, 1);
  const Matches matches = match(w, "match", all, objects);
  const TensorId targets = box_targets(w, "targets", all, objects, matches.object);
  const TensorId index = sample(w, "sample", matches.positive, kSampledBoxes);
  const TensorId object = pick(w, "object_rows", matches.object, 2, index);
  const TensorId labels =
      pick(w, "labels", w.input("object_labels", {w.dim(objects, 0) * kObjects}, DataType::int64), 1, object);
  return {pick(w, "box_rows", all, 2, index), pick(w, "target_rows", targets, 1, index), labels};
}

TensorId box_loss(GraphWriter& w, const BoxScores& scores, const Sampled& sampled) {
  w.scope("box_loss");
  const Dim positives = std::max<Dim>(1, w.dim(sampled.boxes, 0) / 4);
  const TensorId classes = w.apply(OpType::cross_entropy, "classes", {scores.classes, sampled.labels});
  const TensorId index = w.input("own_class", {positives}, DataType::int64);
  const TensorId own = pick(w, "own_offsets", scores.offsets, 2, index);
  const TensorId box =
      w.apply(OpType::smooth_l1_loss, "box", {own, w.slice("own_targets", sampled.targets, 0, 0, positives)});
  return w.apply(OpType::add, "sum", {classes, box});
}

/// Masks of the labelled objects, cut out by the boxes, against the scores of the right class.
TensorId mask_loss(GraphWriter& w, TensorId scores, TensorId boxes, const ImageSizes& sizes) {
  w.scope("mask_loss");
  const Dim count = w.dim(boxes, 0);
  const Dim side = w.dim(scores, 2);
  const TensorId drawn =
      w.input("object_masks", {sizes.batch * kObjects, 1, sizes.height, sizes.width}, DataType::boolean);
  const TensorId masks = w.apply(OpType::cast, "masks", {drawn}, attributes({{"to", std::string("fp32")}}));
  const TensorId cut = w.apply(OpType::roi_align, "targets", {masks, boxes},
                               attributes({{"sampling", std::int64_t{2}}, {"size", side}}));
  const TensorId own = pick(w, "own_class", scores, 2, w.input("mask_class", {count}, DataType::int64));
  return w.apply(OpType::bce_loss, "masks_loss", {own, w.reshape("targets_view", cut, {count, side, side})});
}

void train(GraphWriter& w, Workload& workload, const std::vector<TensorId>& levels, const Proposals& p,
           const ImageSizes& sizes) {
  const TensorId objects = w.input("objects", {sizes.batch, kObjects, 4});
  const TensorId first = proposal_loss(w, p, objects);
  const Sampled sampled = sample_boxes(w, p.boxes, objects);
  const BoxScores scores = box_head(w, levels, sampled.boxes);
  const TensorId second = box_loss(w, scores, sampled);
  const Dim positives = std::max<Dim>(1, w.dim(sampled.boxes, 0) / 4);
  const TensorId own = w.contiguous("positive_boxes", w.slice("positive_rows", sampled.boxes, 0, 0, positives));
  const TensorId masks = mask_head(w, levels, own);
  const TensorId third = mask_loss(w, masks, own, sizes);
  w.graph().loss = w.apply(OpType::add, "loss", {w.apply(OpType::add, "boxes", {first, second}), third});
  finish(workload, masks);
}

void infer(GraphWriter& w, Workload& workload, const std::vector<TensorId>& levels, TensorId kept, Dim images) {
  const Dim count = w.dim(kept, 1);
  const TensorId boxes = w.reshape("proposals", kept, {images * count, 4});
  const BoxScores scores = box_head(w, levels, boxes);
  w.scope("boxes");
  const TensorId p = w.apply(OpType::softmax, "softmax", {scores.classes});
  const TensorId corners =
      decode_boxes(w, "decode", scores.offsets, w.reshape("anchors", boxes, {images * count, 1, 4}));
  const TensorId clipped = w.apply(OpType::clamp, "clip", {corners}, attributes({{"high", 1e4}, {"low", 0.0}}));
  const TensorId objects = w.contiguous("objects", w.slice("no_background", p, 1, 1, kClasses));
  const TensorId final =
      final_boxes(w, w.reshape("by_image", clipped, {images, count * kClasses, 4}),
                  w.reshape("scores_by_image", objects, {images, count, kClasses - 1}), count, kDetections);
  const Dim found = w.dim(final, 1);
  const TensorId masks = mask_head(w, levels, w.reshape("detections", final, {images * found, 4}));
  const TensorId own = pick(w, "own_class", masks, 2, w.fill("classes_found", {images * found}, DataType::int64));
  finish(workload, w.apply(OpType::sigmoid, "sigmoid", {own}));
}

}  // namespace

void build_mask_rcnn(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_padded(options, {800, 1344}, workload);
  prepare_detector(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  auto levels = feature_pyramid(w, resnet_features(w, image_input(w, sizes), {.frozen = true}), kWidth);
  levels.push_back(max_pool(w, "p6", levels.back(), 1, {.stride = 2}));
  const Proposals p = region_proposals(w, levels);
  if (w.training()) return train(w, workload, levels, p, sizes);
  infer(w, workload, levels, p.boxes, sizes.batch);
}

}  // namespace voltaic::workloads
