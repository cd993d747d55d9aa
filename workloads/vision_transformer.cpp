// SPDX-License-Identifier: MIT
// Swin transformers [Liu21]: attention within windows of 7 x 7 patches, shifted by half a window in every other block.
// Simplification: attention stays unfused whatever is asked, as its relative position bias has no flash kernel; the
// gradient of patch merging costs what it costs, though its strided slices land elsewhere.
#include <array>
#include <cmath>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

struct SwinConfig {
  Dim width = 0;
  std::array<Dim, 4> depths{};
  std::array<Dim, 4> heads{};
  double drop_path = 0;  ///< Of the last block; earlier blocks have a share of it that grows linearly from 0.
};

constexpr Dim kPatch = 4;
constexpr Dim kWindow = 7;
constexpr Dim kOwnImage = 224;
constexpr Dim kMlpRatio = 4;
constexpr Dim kClasses = 1000;

class Swin {
 public:
  Swin(const SwinConfig& config, const ImageSizes& sizes, Workload& workload)
      : c_(config), s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    TensorId x = patches();
    Dim block = 0;
    for (std::size_t stage = 0; stage < c_.depths.size(); ++stage) {
      const std::string layer = "layers." + std::to_string(stage);
      if (stage > 0) {
        w_.scope(layer + ".downsample");
        x = merge_patches(x);
      }
      shift_mask_ = 0;
      for (Dim i = 0; i < c_.depths.at(stage); ++i, ++block) {
        scope_ = layer + ".blocks." + std::to_string(i);
        x = transformer_block(x, c_.heads.at(stage), i % 2 == 1, drop_path_rate(block));
      }
    }
    w_.scope("head");
    x = w_.layer_norm("norm", x);
    const TensorId pooled = w_.apply(OpType::reduce_mean, "avgpool", {x}, attributes({{"axes", Shape{1}}}));
    classify(w_, workload_, w_.linear("fc", pooled, kClasses, true));
  }

 private:
  double drop_path_rate(Dim block) const {
    Dim blocks = 0;
    for (const Dim depth : c_.depths) blocks += depth;
    return c_.drop_path * static_cast<double>(block) / static_cast<double>(blocks - 1);
  }

  /// Rows [batch, patches, width]; height_ and width_ follow the resolution.
  TensorId patches() {
    w_.scope("patch_embed");
    const TensorId image = w_.input("image", {s_.batch, 3, s_.height, s_.width});
    const TensorId x = conv(w_, "proj", image, c_.width, kPatch, {.stride = kPatch, .padding = 0, .bias = true});
    height_ = s_.height / kPatch;
    width_ = s_.width / kPatch;
    const TensorId rows =
        w_.transpose("tokens", w_.reshape("flatten", x, {s_.batch, c_.width, height_ * width_}), {0, 2, 1});
    return w_.layer_norm("norm", rows);
  }

  /// Four neighbouring patches side by side, then half as wide.
  TensorId merge_patches(TensorId x) {
    const Dim width = w_.dim(x, -1);
    const TensorId map = w_.reshape("map", x, {s_.batch, height_, width_, width});
    std::vector<TensorId> parts;
    for (const Dim column : {0, 1}) {
      for (const Dim row : {0, 1}) {
        const std::string name = "x" + std::to_string(row) + std::to_string(column);
        const TensorId rows = every_other(name + ".rows", map, 1, row);
        parts.push_back(every_other(name, rows, 2, column));
      }
    }
    height_ /= 2;
    width_ /= 2;
    const TensorId joined = concat(w_, "concat", parts, 3);
    const TensorId rows = w_.reshape("view", joined, {s_.batch, height_ * width_, 4 * width});
    return w_.linear("reduction", w_.layer_norm("norm", rows), 2 * width, false);
  }

  TensorId every_other(const std::string& name, TensorId x, Dim axis, Dim start) {
    return w_.apply(
        OpType::slice, name, {x},
        attributes({{"axis", axis}, {"end", w_.dim(x, static_cast<int>(axis))}, {"start", start}, {"step", 2}}));
  }

  TensorId transformer_block(TensorId x, Dim heads, bool second, double drop_path) {
    const Dim width = w_.dim(x, -1);
    const bool shifted = second && height_ > kWindow && width_ > kWindow;
    if (shifted && shift_mask_ == 0) shift_mask_ = shift_mask();
    w_.scope(scope_ + ".attn");
    TensorId y = w_.reshape("map", w_.layer_norm("norm1", x), {s_.batch, height_, width_, width});
    if (shifted) y = rolled("shift", y, false);
    y = window_attention(windows(y), heads, shifted);
    y = from_windows(y, width);
    if (shifted) y = rolled("shift_back", y, true);
    y = w_.reshape("rows", y, {s_.batch, height_ * width_, width});
    x = w_.apply(OpType::add, "add", {x, dropped_path(y, drop_path)});
    w_.scope(scope_ + ".mlp");
    y = w_.linear("fc1", w_.layer_norm("norm2", x), kMlpRatio * width, true);
    y = w_.linear("fc2", w_.activation("act", y, Activation::gelu), width, true);
    return w_.apply(OpType::add, "add", {x, dropped_path(y, drop_path)});
  }

  /// A cyclic shift of both axes by half a window: one copy per axis, forward and backward.
  TensorId rolled(const std::string& name, TensorId x, bool back) {
    for (const Dim axis : {1, 2}) {
      const Dim size = w_.dim(x, static_cast<int>(axis));
      const Dim first = back ? size - kWindow / 2 : kWindow / 2;
      const std::string part = name + std::to_string(axis);
      const auto parts = w_.apply_multiple(OpType::split, part + ".split", {x},
                                           attributes({{"axis", axis}, {"sizes", Shape{first, size - first}}}), 2);
      x = concat(w_, part, {parts[1], parts[0]}, axis);
    }
    return x;
  }

  Dim window_count() const { return (height_ / kWindow) * (width_ / kWindow); }

  /// [batch, h, w, c] -> [batch * windows, tokens of a window, c].
  TensorId windows(TensorId x) {
    const Dim width = w_.dim(x, -1);
    const Shape grid{s_.batch, height_ / kWindow, kWindow, width_ / kWindow, kWindow, width};
    const TensorId split = w_.transpose("windows", w_.reshape("grid", x, grid), {0, 1, 3, 2, 4, 5});
    return w_.reshape("window_rows", w_.contiguous("windows.packed", split),
                      {s_.batch * window_count(), kWindow * kWindow, width});
  }

  TensorId from_windows(TensorId x, Dim width) {
    const Shape grid{s_.batch, height_ / kWindow, width_ / kWindow, kWindow, kWindow, width};
    const TensorId joined = w_.transpose("map_grid", w_.reshape("window_grid", x, grid), {0, 1, 3, 2, 4, 5});
    return w_.reshape("map_view", w_.contiguous("map_packed", joined), {s_.batch, height_, width_, width});
  }

  TensorId window_attention(TensorId x, Dim heads, bool shifted) {
    const Dim width = w_.dim(x, -1);
    const Dim head = width / heads;
    const Dim all = w_.dim(x, 0);
    const Dim tokens = kWindow * kWindow;
    const TensorId qkv = w_.reshape("qkv.view", w_.linear("qkv", x, 3 * width, true), {all, tokens, 3, heads, head});
    const TensorId turned = w_.transpose("qkv.heads", qkv, {2, 0, 3, 1, 4});
    const auto parts = w_.apply_multiple(OpType::split, "qkv.split", {turned},
                                         attributes({{"axis", 0}, {"sizes", Shape{1, 1, 1}}}), 3);
    TensorId operand[3] = {};
    constexpr std::array<const char*, 3> kNames{"q", "k", "v"};
    for (std::size_t i = 0; i < 3; ++i) {
      operand[i] = w_.reshape(std::string(kNames.at(i)) + ".view", parts[i], {all, heads, tokens, head});
    }
    const TensorId q = w_.scalar(OpType::mul_scalar, "scale", operand[0], 1 / std::sqrt(static_cast<double>(head)));
    TensorId p = attention_scores(w_, q, operand[1], false, false);
    p = w_.apply(OpType::add, "biased", {p, position_bias(heads)});
    if (shifted) p = masked(p, heads);
    p = w_.apply(OpType::softmax, "softmax", {p});
    const TensorId y = merge_heads(w_, "merge", attention_context(w_, p, operand[2], false), false);
    return w_.linear("proj", y, width, true);
  }

  /// A bias per head and distance: [1, heads, tokens, tokens].
  TensorId position_bias(Dim heads) {
    constexpr Dim kTokens = kWindow * kWindow;
    constexpr Dim kDistances = (2 * kWindow - 1) * (2 * kWindow - 1);
    const TensorId table = w_.parameter("relative_position_bias_table", {kDistances, heads});
    const TensorId index = w_.buffer(scope_ + ".relative_position_index", {kTokens * kTokens}, DataType::int64);
    const TensorId values = w_.reshape("position.view", w_.apply(OpType::gather, "position.values", {table, index}),
                                       {kTokens, kTokens, heads});
    const TensorId packed = w_.contiguous("position.packed", w_.transpose("position.heads", values, {2, 0, 1}));
    return w_.reshape("position.bias", packed, {1, heads, kTokens, kTokens});
  }

  /// Tokens that the shift brought from the other edge do not see each other.
  TensorId shift_mask() {
    const std::string name = "shift_mask." + std::to_string(height_) + "x" + std::to_string(width_);
    return w_.buffer(name, {1, window_count(), 1, kWindow * kWindow, kWindow * kWindow});
  }

  TensorId masked(TensorId p, Dim heads) {
    constexpr Dim kTokens = kWindow * kWindow;
    const TensorId by_window = w_.reshape("mask.view", p, {s_.batch, window_count(), heads, kTokens, kTokens});
    const TensorId sum = w_.apply(OpType::add, "masked", {by_window, shift_mask_});
    return w_.reshape("mask.rows", sum, {s_.batch * window_count(), heads, kTokens, kTokens});
  }

  /// Stochastic depth: one random number per sample switches the branch off.
  TensorId dropped_path(TensorId x, double rate) {
    if (!w_.training() || rate <= 0) return x;
    const TensorId ones = w_.fill("drop_path.ones", {s_.batch, 1, 1}, DataType::boolean);  // widens nothing
    return w_.apply(OpType::mul, "drop_path", {x, w_.dropout("drop_path.keep", ones, rate)});
  }

  const SwinConfig& c_;
  const ImageSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  std::string scope_;
  Dim height_ = 0;
  Dim width_ = 0;
  TensorId shift_mask_ = 0;
};

void build_swin(const SwinConfig& config, const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kOwnImage, workload);
  if (sizes.height % kOwnImage != 0 || sizes.width % kOwnImage != 0) {
    throw ConfigError(workload.name, "",
                      "expected an image with sides that are multiples of 224 (whole windows of 7x7 patches at every "
                      "stage), got " +
                          std::to_string(sizes.height) + "x" + std::to_string(sizes.width));
  }
  if (options.attention == AttentionForm::flash)
    workload.assumptions.emplace_back("attention runs unfused: the relative position bias has no flash kernel");
  Swin(config, sizes, workload).build();
}

void swin_t(const BuildOptions& options, Workload& workload) {
  build_swin({.width = 96, .depths = {2, 2, 6, 2}, .heads = {3, 6, 12, 24}, .drop_path = 0.2}, options, workload);
}
void swin_s(const BuildOptions& options, Workload& workload) {
  build_swin({.width = 96, .depths = {2, 2, 18, 2}, .heads = {3, 6, 12, 24}, .drop_path = 0.3}, options, workload);
}
void swin_b(const BuildOptions& options, Workload& workload) {
  build_swin({.width = 128, .depths = {2, 2, 18, 2}, .heads = {4, 8, 16, 32}, .drop_path = 0.5}, options, workload);
}

constexpr ZooModel kModels[] = {
    {"swin-t", "swin", "Swin-T, windows of 7, 1000 classes, 224x224", swin_t},
    {"swin-s", "swin", "Swin-S, windows of 7, 1000 classes, 224x224", swin_s},
    {"swin-b", "swin", "Swin-B, windows of 7, 1000 classes, 224x224", swin_b},
};

}  // namespace

std::span<const ZooModel> vision_transformer_models() {
  return kModels;
}

}  // namespace voltaic::workloads
