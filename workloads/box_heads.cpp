// SPDX-License-Identifier: MIT
#include "workloads/box_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arch/units/error.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kMostImages = 1024;

TensorId columns(GraphWriter& w, const std::string& name, TensorId x, Dim start, Dim end) {
  return w.slice(name, x, static_cast<Dim>(w.shape(x).size()) - 1, start, end);
}

TensorId compare(GraphWriter& w, const std::string& name, TensorId x, const char* relation, double value) {
  return w.apply(OpType::compare_scalar, name, {x},
                 attributes({{"relation", std::string(relation)}, {"value", value}}));
}

/// Width times height of boxes [..., 4], as [...].
TensorId area(GraphWriter& w, const std::string& name, TensorId boxes) {
  const TensorId sides = w.apply(OpType::sub, name + ".sides",
                                 {columns(w, name + ".high", boxes, 2, 4), columns(w, name + ".low", boxes, 0, 2)});
  const TensorId product =
      w.apply(OpType::mul, name, {columns(w, name + ".width", sides, 0, 1), columns(w, name + ".height", sides, 1, 2)});
  Shape shape = w.shape(product);
  shape.pop_back();
  return w.reshape(name + ".view", product, shape);
}

/// Intersection over union of anchors [a, A, 4] and objects [N, G, 4]: [N, A, G].
TensorId overlaps(GraphWriter& w, const std::string& name, TensorId anchors, TensorId objects) {
  const Dim groups = w.dim(anchors, 0);
  const Dim count = w.dim(anchors, 1);
  const Dim images = w.dim(objects, 0);
  const Dim held = w.dim(objects, 1);
  const TensorId a = w.reshape(name + ".anchors", anchors, {groups, count, 1, 4});
  const TensorId o = w.reshape(name + ".objects", objects, {images, 1, held, 4});
  const TensorId low = w.apply(OpType::maximum, name + ".low",
                               {columns(w, name + ".a_low", a, 0, 2), columns(w, name + ".o_low", o, 0, 2)});
  const TensorId high = w.apply(OpType::minimum, name + ".high",
                                {columns(w, name + ".a_high", a, 2, 4), columns(w, name + ".o_high", o, 2, 4)});
  const TensorId sides =
      w.scalar(OpType::maximum_scalar, name + ".sides", w.apply(OpType::sub, name + ".span", {high, low}), 0);
  const TensorId common =
      w.reshape(name + ".common",
                w.apply(OpType::mul, name + ".product",
                        {columns(w, name + ".w", sides, 0, 1), columns(w, name + ".h", sides, 1, 2)}),
                {images, count, held});
  const TensorId sum =
      w.apply(OpType::add, name + ".areas", {area(w, name + ".a_area", a), area(w, name + ".o_area", o)});
  return w.apply(OpType::div, name, {common, w.apply(OpType::sub, name + ".union", {sum, common})});
}

}  // namespace

void prepare_detector(const ImageSizes& sizes, Workload& workload) {
  if (sizes.batch > kMostImages) {
    throw ConfigError(workload.name, "",
                      fmt::format("expected a batch of at most {} images, got {}", kMostImages, sizes.batch));
  }
  if (sizes.training) workload.assumptions.push_back(fmt::format("{} objects per image", kObjects));
}

TensorId boxes_last(GraphWriter& w, const std::string& name, TensorId x, Dim values) {
  const Dim boxes = w.dim(x, 1) / values * w.dim(x, 2) * w.dim(x, 3);
  const TensorId last = w.contiguous(name + ".packed", w.transpose(name + ".last", x, {0, 2, 3, 1}));
  return w.reshape(name + ".boxes", last, {w.dim(x, 0), boxes, values});
}

TensorId decode_boxes(GraphWriter& w, const std::string& name, TensorId offsets, TensorId anchors) {
  constexpr double kCentreWeight = 10;
  constexpr double kSizeWeight = 5;
  constexpr double kLargestStep = 4.135;  // ln(1000 / 16)
  std::vector<TensorId> low;
  std::vector<TensorId> high;
  for (Dim axis = 0; axis < 2; ++axis) {
    const std::string at = name + (axis == 0 ? ".x" : ".y");
    const TensorId centre = columns(w, at + ".anchor_centre", anchors, axis, axis + 1);
    const TensorId size = columns(w, at + ".anchor_size", anchors, 2 + axis, 3 + axis);
    TensorId move =
        w.scalar(OpType::div_scalar, at + ".move", columns(w, at + ".d", offsets, axis, axis + 1), kCentreWeight);
    move = w.apply(OpType::add, at + ".centre", {w.apply(OpType::mul, at + ".moved", {move, size}), centre});
    TensorId grow =
        w.scalar(OpType::div_scalar, at + ".grow", columns(w, at + ".s", offsets, 2 + axis, 3 + axis), kSizeWeight);
    grow = w.apply(OpType::clamp, at + ".clamp", {grow}, attributes({{"high", kLargestStep}, {"low", -1e30}}));
    grow = w.apply(OpType::mul, at + ".size", {w.apply(OpType::exp, at + ".exp", {grow}), size});
    const TensorId half = w.scalar(OpType::mul_scalar, at + ".half", grow, 0.5);
    low.push_back(w.apply(OpType::sub, at + ".low", {move, half}));
    high.push_back(w.apply(OpType::add, at + ".high", {move, half}));
  }
  return concat(w, name, {low[0], low[1], high[0], high[1]}, static_cast<Dim>(w.shape(low[0]).size()) - 1);
}

Matches match(GraphWriter& w, const std::string& name, TensorId anchors, TensorId objects) {
  constexpr double kEnough = 0.5;
  const TensorId overlap = overlaps(w, name + ".overlap", anchors, objects);
  const graph::Attributes by_object = attributes({{"axes", Shape{2}}});
  const TensorId best = w.apply(OpType::reduce_max, name + ".best", {overlap}, by_object);
  const TensorId object = w.apply(OpType::argmax, name + ".object", {overlap}, attributes({{"axis", std::int64_t{2}}}));
  // The best anchor of each object counts however little it overlaps.
  const TensorId top = w.apply(OpType::reduce_max, name + ".top", {overlap},
                               attributes({{"axes", Shape{1}}, {"keepdims", std::int64_t{1}}}));
  const TensorId is_top =
      w.apply(OpType::compare, name + ".is_top", {overlap, top}, attributes({{"relation", std::string("eq")}}));
  const TensorId forced = w.apply(OpType::reduce_max, name + ".forced", {is_top}, by_object);
  const TensorId positive =
      w.apply(OpType::maximum, name + ".positive", {compare(w, name + ".enough", best, "ge", kEnough), forced});
  return {object, positive};
}

TensorId box_targets(GraphWriter& w, const std::string& name, TensorId anchors, TensorId objects, TensorId matched) {
  const Dim images = w.dim(matched, 0);
  const Dim count = w.dim(matched, 1);
  const TensorId index = w.reshape(name + ".index", matched, {images * count});
  const TensorId boxes = w.reshape(name + ".matched", pick(w, name + ".boxes", objects, 2, index), {images, count, 4});
  const TensorId sizes = columns(w, name + ".anchor_sizes", anchors, 2, 4);
  const TensorId centre =
      w.apply(OpType::sub, name + ".distance",
              {columns(w, name + ".centres", boxes, 0, 2), columns(w, name + ".anchor_centres", anchors, 0, 2)});
  const TensorId move = w.apply(OpType::div, name + ".move", {centre, sizes});
  const TensorId ratio = w.apply(OpType::div, name + ".ratio", {columns(w, name + ".sizes", boxes, 2, 4), sizes});
  const TensorId grow = w.apply(OpType::log, name + ".grow", {ratio});
  return w.reshape(name + ".rows", concat(w, name, {move, grow}, 2), {images * count, 4});
}

TensorId pick(GraphWriter& w, const std::string& name, TensorId x, std::size_t dims, TensorId index) {
  const Shape& shape = w.shape(x);
  Shape rows{1};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d < dims) {
      rows[0] *= shape[d];
    } else {
      rows.push_back(shape[d]);
    }
  }
  const TensorId flat = dims == 1 ? x : w.reshape(name + ".flat", x, rows);
  return w.apply(OpType::gather, name, {flat, index});
}

TensorId focal_loss(GraphWriter& w, const std::string& name, TensorId scores, TensorId targets) {
  // alpha_t (1 - p_t)^2 times the cross entropy x (1 - t) + softplus(-x), as the reference code writes it out.
  const TensorId p = w.apply(OpType::sigmoid, name + ".p", {scores});
  const auto opposite = [&](const std::string& what, TensorId x) {
    return w.scalar(OpType::add_scalar, name + what, w.apply(OpType::neg, name + what + "_neg", {x}), 1.0);
  };
  const TensorId other = opposite(".other", targets);
  const TensorId soft =
      w.apply(OpType::softplus, name + ".softplus", {w.apply(OpType::neg, name + ".minus", {scores})});
  const TensorId entropy =
      w.apply(OpType::add, name + ".entropy", {w.apply(OpType::mul, name + ".x", {scores, other}), soft});
  const TensorId hit = w.apply(OpType::mul, name + ".hit", {p, targets});
  const TensorId miss = w.apply(OpType::mul, name + ".miss", {opposite(".q", p), other});
  const TensorId likely = w.apply(OpType::add, name + ".likely", {hit, miss});
  const TensorId factor = w.apply(OpType::square, name + ".factor", {opposite(".unlikely", likely)});
  const TensorId weighted = w.apply(OpType::mul, name + ".weighted", {entropy, factor});
  const TensorId alpha = w.scalar(OpType::add_scalar, name + ".alpha",
                                  w.scalar(OpType::mul_scalar, name + ".balance", targets, -0.5), 0.75);
  const TensorId balanced = w.apply(OpType::mul, name + ".balanced", {weighted, alpha});
  const TensorId sum = w.apply(OpType::reduce_sum, name + ".sum", {balanced});
  const TensorId positives = w.apply(OpType::reduce_sum, name + ".positives", {targets});
  return w.apply(OpType::div, name, {sum, w.scalar(OpType::maximum_scalar, name + ".least", positives, 1.0)});
}

TensorId suppress(GraphWriter& w, const std::string& name, TensorId boxes, TensorId scores, Dim keep) {
  const Dim images = w.dim(boxes, 0);
  const Dim count = w.dim(boxes, 1);
  keep = std::min(keep, count);
  std::vector<TensorId> kept;
  for (Dim i = 0; i < images; ++i) {
    const std::string at = name + ".image" + std::to_string(i);
    const TensorId own = w.reshape(at + ".view", w.slice(at + ".boxes", boxes, 0, i, i + 1), {count, 4});
    const TensorId score = w.reshape(at + ".score_view", w.slice(at + ".scores", scores, 0, i, i + 1), {count});
    const TensorId index = w.apply(OpType::nms, at + ".nms", {own, score}, attributes({{"keep", keep}}));
    kept.push_back(w.reshape(at + ".kept_view", w.apply(OpType::gather, at + ".kept", {own, index}), {1, keep, 4}));
  }
  return images == 1 ? kept.front() : concat(w, name, kept, 0);
}

TensorId final_boxes(GraphWriter& w, TensorId boxes, TensorId scores, Dim candidates, Dim keep) {
  const Dim images = w.dim(scores, 0);
  const Dim count = w.dim(scores, 1) * w.dim(scores, 2);
  candidates = std::min(candidates, count);
  const TensorId flat = w.reshape("scores", scores, {images, count});
  const auto best = w.apply_multiple(OpType::topk, "topk", {flat}, attributes({{"k", candidates}}), 2);
  // A place among all classes is a box times the classes, and the class.
  const TensorId index = w.scalar(OpType::div_scalar, "box_index", w.reshape("places", best[1], {images * candidates}),
                                  static_cast<double>(w.dim(scores, 2)));
  const TensorId chosen = w.reshape("candidates.view", pick(w, "candidates", boxes, 2, index), {images, candidates, 4});
  return suppress(w, "final", chosen, best[0], keep);
}

}  // namespace voltaic::workloads
