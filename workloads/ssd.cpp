// SPDX-License-Identifier: MIT
// SSD [Liu16] on 300x300 images: boxes on six maps from 38x38 to 1x1, with the VGG-16 of its authors or the ResNet-50
// of NVIDIA's reference model.
#include "workloads/attention_block.hpp"
#include "workloads/box_heads.hpp"
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kImage = 300;
constexpr std::array<Dim, 6> kBoxesPerPlace{4, 6, 6, 6, 4, 4};

/// Offsets and class scores of all default boxes. `axis`: where the values of a box stand, 2 in [N, boxes, values], 1
/// in [N, values, boxes].
struct Boxes {
  TensorId offsets = 0;
  TensorId scores = 0;
  Dim axis = 2;

  Dim box_axis() const { return 3 - axis; }
};

Boxes box_heads(GraphWriter& w, const std::vector<TensorId>& maps, Dim classes, Dim axis) {
  const auto head = [&](const std::string& name, std::size_t i, Dim values) {
    const TensorId x = conv(w, name + std::to_string(i), maps[i], kBoxesPerPlace.at(i) * values, 3, {.bias = true});
    if (axis == 2) return boxes_last(w, name + std::to_string(i), x, values);
    return w.reshape(name + std::to_string(i) + ".view", x,
                     {w.dim(x, 0), values, kBoxesPerPlace.at(i) * w.dim(x, 2) * w.dim(x, 3)});
  };
  w.scope("head");
  std::vector<TensorId> offsets;
  std::vector<TensorId> scores;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    offsets.push_back(head("loc", i, 4));
    scores.push_back(head("conf", i, classes));
  }
  return {concat(w, "offsets", offsets, 3 - axis), concat(w, "scores", scores, 3 - axis), axis};
}

/// Cross entropy of each box, [N, boxes].
TensorId box_entropy(GraphWriter& w, const Boxes& boxes) {
  const Dim images = w.dim(boxes.scores, 0);
  const Dim count = w.dim(boxes.scores, static_cast<int>(boxes.box_axis()));
  const TensorId logs = w.apply(OpType::log_softmax, "log_softmax", {boxes.scores}, attributes({{"axis", boxes.axis}}));
  const TensorId own = pick(w, "label_score", logs, 3, w.input("label_places", {images * count}, DataType::int64));
  return w.reshape("entropy", w.apply(OpType::neg, "nll", {own}), {images, count});
}

/// Each image keeps its positives and three times as many of the hardest negatives: ranks by two sorts.
TensorId hard_negatives(GraphWriter& w, TensorId entropy, TensorId positive, TensorId wanted) {
  const graph::Attributes rows = attributes({{"axis", std::int64_t{1}}});
  const TensorId others = w.apply(OpType::masked_fill, "negatives", {entropy, positive}, attributes({{"value", 0.0}}));
  const auto order = w.apply_multiple(OpType::sort, "order", {others}, rows, 2);
  const auto rank = w.apply_multiple(OpType::sort, "rank", {order[1]}, rows, 2);
  return w.apply(OpType::compare, "hard", {rank[1], wanted}, attributes({{"relation", std::string("lt")}}));
}

/// Smooth L1 on the boxes that hold an object, cross entropy on those and on hard negatives.
void ssd_loss(GraphWriter& w, const Boxes& boxes, TensorId targets, TensorId positive) {
  const Dim images = w.dim(positive, 0);
  const Dim count = w.dim(positive, 1);
  const graph::Attributes to_float = attributes({{"to", std::string("fp32")}});
  const graph::Attributes per_image = attributes({{"axes", Shape{1}}});
  const TensorId mask = w.apply(OpType::cast, "mask", {positive}, to_float);
  const TensorId positives = w.apply(OpType::reduce_sum, "positives", {mask}, per_image);
  const TensorId spread =
      w.reshape("mask_view", mask, boxes.axis == 2 ? Shape{images, count, 1} : Shape{images, 1, count});
  const TensorId located = w.apply(OpType::mul, "located", {boxes.offsets, spread});
  const TensorId place =
      w.apply(OpType::smooth_l1_loss, "smooth_l1", {located, w.apply(OpType::mul, "true_places", {targets, spread})});

  const TensorId entropy = box_entropy(w, boxes);
  const TensorId wanted = w.reshape("wanted", w.scalar(OpType::mul_scalar, "three_each", positives, 3.0), {images, 1});
  const TensorId hard = w.apply(OpType::cast, "hard_mask", {hard_negatives(w, entropy, positive, wanted)}, to_float);
  const TensorId used = w.apply(OpType::mul, "used", {entropy, w.apply(OpType::add, "chosen", {mask, hard})});
  const TensorId sum = w.apply(OpType::reduce_sum, "entropy_sum", {used}, per_image);
  const TensorId least = w.scalar(OpType::maximum_scalar, "least", positives, 1e-6);
  const TensorId mean = w.apply(OpType::reduce_mean, "mean", {w.apply(OpType::div, "per_positive", {sum, least})});
  w.graph().loss = w.apply(OpType::add, "loss", {place, mean});
}

/// Class probabilities, corners, and the best 200 boxes of an image.
void ssd_outputs(GraphWriter& w, Workload& workload, Boxes boxes) {
  constexpr Dim kCandidates = 400;
  constexpr Dim kFinal = 200;
  w.scope("boxes");
  if (boxes.axis == 1) {
    boxes.offsets = w.transpose("offsets_last", boxes.offsets, {0, 2, 1});
    boxes.scores = w.transpose("scores_last", boxes.scores, {0, 2, 1});
  }
  const Dim classes = w.dim(boxes.scores, 2);
  const TensorId p = w.apply(OpType::softmax, "softmax", {boxes.scores}, attributes({{"axis", std::int64_t{2}}}));
  const TensorId defaults = w.buffer("default_boxes", {1, w.dim(p, 1), 4});
  const TensorId corners = decode_boxes(w, "decode", boxes.offsets, defaults);
  const TensorId objects = w.contiguous("objects", w.slice("no_background", p, 2, 1, classes));
  finish(workload, final_boxes(w, corners, objects, kCandidates, kFinal));
}

/// Squeeze to `inner` channels, then a 3x3 convolution to `out`: halved with padding, or less its border.
TensorId extra_layer(GraphWriter& w, TensorId x, Dim inner, Dim out, bool halve, bool normed) {
  const ConvLayer last{.stride = halve ? 2 : 1, .padding = halve ? 1 : 0, .bias = !normed};
  if (normed) {
    return conv_norm_act(w, "conv2", conv_norm_act(w, "conv1", x, inner, 1, OpType::relu), out, 3, OpType::relu, last);
  }
  return conv_relu(w, "conv2", conv_relu(w, "conv1", x, inner, 1, {.bias = true}), out, 3, last);
}

/// The map of the fourth stage, each place scaled to one learned length over its channels.
TensorId l2_normed(GraphWriter& w, TensorId x) {
  w.scope("l2_norm");
  const TensorId weight = w.parameter("weight", {1, w.dim(x, 1), 1, 1});
  const TensorId sum = w.apply(OpType::reduce_sum, "sum", {w.apply(OpType::square, "square", {x})},
                               attributes({{"axes", Shape{1}}, {"keepdims", std::int64_t{1}}}));
  const TensorId length = w.scalar(OpType::maximum_scalar, "least", w.apply(OpType::sqrt, "length", {sum}), 1e-12);
  return w.apply(OpType::mul, "scaled", {weight, w.apply(OpType::div, "unit", {x, length})});
}

std::vector<TensorId> vgg_maps(GraphWriter& w, TensorId image) {
  std::vector<TensorId> before;
  TensorId x = vgg_features(w, image, {.ceil_third_pool = true, .last_pool = false, .before_pool = &before});
  w.scope("fc");
  x = max_pool(w, "pool5", x, 3, {.stride = 1, .padding = 1});
  x = conv_relu(w, "fc6", x, 1024, 3, {.dilation = 6, .bias = true});
  x = conv_relu(w, "fc7", x, 1024, 1, {.bias = true});
  std::vector<TensorId> maps{l2_normed(w, before[3]), x};
  for (const int i : {0, 1, 2, 3}) {
    w.scope("extra" + std::to_string(i));
    maps.push_back(extra_layer(w, maps.back(), i == 0 ? 256 : 128, i == 0 ? 512 : 256, i < 2, false));
  }
  return maps;
}

std::vector<TensorId> resnet_maps(GraphWriter& w, TensorId image) {
  std::vector<TensorId> maps{resnet_features(w, image, {.stages = 3, .strides = {1, 2, 1, 1}}).back()};
  constexpr std::array<std::array<Dim, 2>, 5> kWidths{{{256, 512}, {256, 512}, {128, 256}, {128, 256}, {128, 256}}};
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    w.scope("extra" + std::to_string(i));
    maps.push_back(extra_layer(w, maps.back(), kWidths.at(i)[0], kWidths.at(i)[1], i < 3, true));
  }
  return maps;
}

}  // namespace

void build_ssd300(const BuildOptions& options, Workload& workload) {
  constexpr Dim kClasses = 91;
  const ImageSizes sizes = resolve_image(options, kImage, workload);
  require_own_size(sizes, kImage, "its default boxes are laid out for it", workload);
  prepare_detector(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const Boxes boxes = box_heads(w, vgg_maps(w, image_input(w, sizes)), kClasses, 2);
  if (!w.training()) return ssd_outputs(w, workload, boxes);
  w.scope("loss");
  const TensorId defaults = w.buffer("default_boxes", {1, w.dim(boxes.offsets, 1), 4});
  const TensorId objects = w.input("objects", {sizes.batch, kObjects, 4});
  const Matches matches = match(w, "match", defaults, objects);
  const TensorId rows = box_targets(w, "targets", defaults, objects, matches.object);
  ssd_loss(w, boxes, w.reshape("targets.view", rows, w.shape(boxes.offsets)), matches.positive);
  finish(workload, boxes.scores);
}

void build_ssd300_resnet50(const BuildOptions& options, Workload& workload) {
  constexpr Dim kClasses = 81;
  const ImageSizes sizes = resolve_image(options, kImage, workload);
  require_own_size(sizes, kImage, "its default boxes are laid out for it", workload);
  prepare_detector(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const Boxes boxes = box_heads(w, resnet_maps(w, image_input(w, sizes)), kClasses, 1);
  if (!w.training()) return ssd_outputs(w, workload, boxes);
  w.scope("loss");
  // The input pipeline matches; the loss computes offsets of the matched boxes.
  const TensorId matched = w.input("matched_boxes", w.shape(boxes.offsets));
  const TensorId defaults = w.buffer("default_boxes", {1, 4, w.dim(boxes.offsets, 2)});
  const TensorId sides = w.slice("default_sides", defaults, 1, 2, 4);
  const TensorId distance = w.apply(
      OpType::sub, "distance", {w.slice("centres", matched, 1, 0, 2), w.slice("default_centres", defaults, 1, 0, 2)});
  const TensorId move = w.apply(OpType::div, "move", {distance, sides});
  const TensorId ratio = w.apply(OpType::div, "ratio", {w.slice("sides", matched, 1, 2, 4), sides});
  const TensorId targets = concat(w, "targets", {move, w.apply(OpType::log, "grow", {ratio})}, 1);
  const TensorId labels = w.input("labels", {sizes.batch, w.dim(boxes.offsets, 2)}, DataType::int64);
  const TensorId positive = w.apply(OpType::compare_scalar, "positive", {labels},
                                    attributes({{"relation", std::string("gt")}, {"value", 0.0}}));
  ssd_loss(w, boxes, targets, positive);
  finish(workload, boxes.scores);
}

}  // namespace voltaic::workloads
