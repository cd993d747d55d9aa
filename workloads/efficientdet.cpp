// SPDX-License-Identifier: MIT
// EfficientDet-D0 [Tan20]: EfficientNet-B0, three two-way pyramids of 64 channels with learned sums, heads of depthwise
// separable convolutions that all levels share.
#include <string>
#include <utility>

#include "workloads/attention_block.hpp"
#include "workloads/box_heads.hpp"
#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kWidth = 64;
constexpr int kCells = 3;
constexpr int kTower = 3;
constexpr std::size_t kLevels = 5;  ///< P3 to P7.
constexpr Dim kAnchors = 9;
constexpr Dim kClasses = 90;

/// A map as another level takes it: to 64 channels, then halved by pooling or doubled.
TensorId to_width(GraphWriter& w, const std::string& name, TensorId x) {
  if (w.dim(x, 1) == kWidth) return x;
  return batch_norm(w, name + ".bn", conv(w, name, x, kWidth, 1, {.bias = true}));
}

TensorId halved(GraphWriter& w, const std::string& name, TensorId x) {
  return max_pool(w, name, x, 3, {.stride = 2, .padding = 1});
}

/// Sum with learned weights w_i / (sum of w + e), as the reference code stacks it.
TensorId weighted_sum(GraphWriter& w, const std::string& name, const std::vector<TensorId>& maps) {
  const auto count = static_cast<Dim>(maps.size());
  const TensorId weights = w.apply(OpType::relu, name + ".weights", {w.parameter(name + ".edge_weights", {count})});
  const TensorId sum = w.apply(OpType::reduce_sum, name + ".weight_sum", {weights});
  const TensorId least = w.scalar(OpType::add_scalar, name + ".least", sum, 1e-4);
  std::vector<TensorId> parts;
  Shape shape = w.shape(maps.front());
  shape.push_back(1);
  for (Dim i = 0; i < count; ++i) {
    const std::string at = name + ".in" + std::to_string(i);
    const TensorId own = w.slice(at + ".weight", weights, 0, i, i + 1);
    const TensorId scaled = w.apply(OpType::mul, at + ".scaled", {maps[static_cast<std::size_t>(i)], own});
    parts.push_back(w.reshape(at + ".view", w.apply(OpType::div, at, {scaled, least}), shape));
  }
  return w.apply(OpType::reduce_sum, name + ".sum", {concat(w, name + ".stack", parts, 4)},
                 attributes({{"axes", Shape{4}}}));
}

/// Activation, then a depthwise separable convolution and batch norm.
TensorId fuse(GraphWriter& w, const std::string& name, const std::vector<TensorId>& maps) {
  TensorId x = w.apply(OpType::silu, name + ".act", {weighted_sum(w, name, maps)});
  x = conv(w, name + ".depthwise", x, kWidth, 3, {.groups = kWidth});
  return batch_norm(w, name + ".bn", conv(w, name + ".pointwise", x, kWidth, 1, {.bias = true}));
}

/// Down from the coarsest map to the finest, and up again with what came in.
std::vector<TensorId> pyramid_cell(GraphWriter& w, const std::vector<TensorId>& in) {
  std::vector<TensorId> top_down(kLevels);
  top_down.back() = in.back();
  for (std::size_t i = kLevels - 1; i-- > 0;) {
    const std::string name = "down" + std::to_string(i + 3);
    const TensorId above = upsample(w, name + ".upsample", top_down[i + 1], 2, "nearest");
    top_down[i] = fuse(w, name, {to_width(w, name + ".resample", in[i]), above});
  }
  std::vector<TensorId> out(kLevels);
  out.front() = top_down.front();
  for (std::size_t i = 1; i < kLevels; ++i) {
    const std::string name = "up" + std::to_string(i + 3);
    std::vector<TensorId> maps{to_width(w, name + ".resample", in[i])};
    if (i + 1 < kLevels) maps.push_back(top_down[i]);
    maps.push_back(halved(w, name + ".pool", out[i - 1]));
    out[i] = fuse(w, name, maps);
  }
  return out;
}

std::vector<TensorId> pyramid(GraphWriter& w, TensorId image) {
  const auto stages = efficientnet_features(w, image, {});
  w.scope("fpn");
  std::vector<TensorId> maps{stages[2], stages[4], stages[6]};
  maps.push_back(halved(w, "p6", to_width(w, "p6.resample", stages[6])));
  maps.push_back(halved(w, "p7", maps.back()));
  for (int cell = 0; cell < kCells; ++cell) {
    w.scope("fpn.cell" + std::to_string(cell));
    maps = pyramid_cell(w, maps);
  }
  return maps;
}

/// Depthwise and pointwise convolution whose weights all levels share.
struct SharedSeparable {
  SharedConv depthwise;
  SharedConv pointwise;

  SharedSeparable(GraphWriter& w, const std::string& name, Dim out)
      : depthwise(w, name + ".depthwise", kWidth, kWidth, 3, {.groups = kWidth}),
        pointwise(w, name + ".pointwise", kWidth, out, 1, {.bias = true}) {}
  TensorId apply(GraphWriter& w, const std::string& name, TensorId x) const {
    return pointwise.apply(w, name + ".pointwise", depthwise.apply(w, name + ".depthwise", x));
  }
};

/// Norms belong to a level, convolutions to all.
TensorId head(GraphWriter& w, const std::string& scope, const std::vector<TensorId>& levels, Dim values) {
  w.scope(scope);
  std::vector<SharedSeparable> tower;
  tower.reserve(kTower);
  for (int i = 0; i < kTower; ++i) tower.emplace_back(w, "conv" + std::to_string(i), kWidth);
  const SharedSeparable predict(w, "predict", kAnchors * values);
  std::vector<TensorId> parts;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const std::string at = "level" + std::to_string(level);
    TensorId x = levels[level];
    for (int i = 0; i < kTower; ++i) {
      const std::string name = at + ".conv" + std::to_string(i);
      x = batch_norm(w, name + ".bn", tower[static_cast<std::size_t>(i)].apply(w, name, x));
      x = w.apply(OpType::silu, name + ".act", {x});
    }
    parts.push_back(boxes_last(w, at, predict.apply(w, at + ".predict", x), values));
  }
  return concat(w, "boxes", parts, 1);
}

/// Anchors are matched by the input pipeline: the loss gets targets.
void loss(GraphWriter& w, TensorId offsets, TensorId scores) {
  w.scope("loss");
  const TensorId focal = focal_loss(w, "focal", scores, w.input("classes", w.shape(scores)));
  const TensorId targets = w.input("targets", w.shape(offsets));
  const TensorId mask = w.apply(OpType::cast, "mask",
                                {w.apply(OpType::compare_scalar, "is_box", {targets},
                                         attributes({{"relation", std::string("ne")}, {"value", 0.0}}))},
                                attributes({{"to", std::string("fp32")}}));
  const TensorId box =
      w.apply(OpType::smooth_l1_loss, "huber", {w.apply(OpType::mul, "own", {offsets, mask}), targets});
  w.graph().loss = w.apply(OpType::add, "loss", {focal, w.scalar(OpType::mul_scalar, "box_weight", box, 50.0)});
}

}  // namespace

void build_efficientdet_d0(const BuildOptions& options, Workload& workload) {
  constexpr Dim kCandidates = 5000;
  constexpr Dim kKept = 100;
  const ImageSizes sizes = resolve_image(options, 512, workload);
  require_sides(sizes, 128, workload);
  prepare_detector(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const auto levels = pyramid(w, image_input(w, sizes));
  const TensorId scores = head(w, "classes", levels, kClasses);
  const TensorId offsets = head(w, "offsets", levels, 4);
  if (w.training()) {
    loss(w, offsets, scores);
    return finish(workload, scores);
  }
  w.scope("boxes");
  const TensorId anchors = w.buffer("anchors", {1, w.dim(offsets, 1), 4});
  const TensorId p = w.apply(OpType::sigmoid, "sigmoid", {scores});
  finish(workload, final_boxes(w, decode_boxes(w, "decode", offsets, anchors), p, kCandidates, kKept));
}

}  // namespace voltaic::workloads
