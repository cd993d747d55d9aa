// SPDX-License-Identifier: MIT
// The U-Net of Stable Diffusion 1.x [Rombach22]: residual blocks at four widths, transformer blocks at the first three,
// each with attention over the image and over 77 text states of width 768. `--image` is the side of the picture; the
// network sees latents an eighth of it. One forward pass is one denoising step; training predicts the noise.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/generative.hpp"
#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kOwnImage = 512;
constexpr Dim kLatentScale = 8;
constexpr Dim kLatentChannels = 4;
constexpr std::array<Dim, 4> kWidths{320, 640, 1280, 1280};
constexpr Dim kTimeWidth = 1280;
constexpr Dim kHeads = 8;
constexpr Dim kGroups = 32;
constexpr Dim kTextTokens = 77;
constexpr Dim kTextWidth = 768;
constexpr Dim kBlocks = 2;

class UNet {
 public:
  UNet(GraphWriter& w, bool flash, Dim batch)
      : w_(w), flash_(flash), text_(w.input("text_states", {batch, kTextTokens, kTextWidth})) {
    embed_time(batch);
  }

  TensorId predict(TensorId latents) {
    w_.scope("in");
    TensorId x = conv(w_, "conv", latents, kWidths[0], 3, {.bias = true});
    std::vector<TensorId> skips{x};
    for (std::size_t level = 0; level < kWidths.size(); ++level) x = down(level, x, skips);
    x = residual("middle.residual1", x, kWidths.back());
    x = transformer("middle.transformer", x);
    x = residual("middle.residual2", x, kWidths.back());
    for (std::size_t level = kWidths.size(); level-- > 0;) x = up(level, x, skips);
    w_.scope("out");
    x = w_.apply(OpType::silu, "silu", {group_norm(w_, "norm", x, kGroups)});
    return conv(w_, "conv", x, kLatentChannels, 3, {.bias = true});
  }

 private:
  static bool attends(std::size_t level) { return level + 1 < kWidths.size(); }

  /// Sines and cosines of the step, then two dense layers.
  void embed_time(Dim batch) {
    w_.scope("time");
    const TensorId step = w_.input("step", {batch, 1});
    const TensorId angles = w_.apply(OpType::mul, "angles", {step, w_.buffer("frequencies", {1, kWidths[0] / 2})});
    TensorId t =
        concat(w_, "both", {w_.apply(OpType::cos, "cos", {angles}), w_.apply(OpType::sin, "sin", {angles})}, 1);
    t = w_.apply(OpType::silu, "silu", {w_.linear("fc1", t, kTimeWidth, true)});
    time_ = w_.linear("fc2", t, kTimeWidth, true);
  }

  TensorId down(std::size_t level, TensorId x, std::vector<TensorId>& skips) {
    const std::string scope = "down" + std::to_string(level);
    for (Dim i = 0; i < kBlocks; ++i) {
      const std::string block = scope + "." + std::to_string(i);
      x = residual(block + ".residual", x, kWidths.at(level));
      if (attends(level)) x = transformer(block + ".transformer", x);
      skips.push_back(x);
    }
    if (level + 1 == kWidths.size()) return x;
    w_.scope(scope + ".halve");
    x = conv(w_, "conv", x, kWidths.at(level), 3, {.stride = 2, .padding = 1, .bias = true});
    skips.push_back(x);
    return x;
  }

  TensorId up(std::size_t level, TensorId x, std::vector<TensorId>& skips) {
    const std::string scope = "up" + std::to_string(level);
    for (Dim i = 0; i <= kBlocks; ++i) {
      const std::string block = scope + "." + std::to_string(i);
      w_.scope(block);
      x = concat(w_, "skip", {x, skips.back()});
      skips.pop_back();
      x = residual(block + ".residual", x, kWidths.at(level));
      if (attends(level)) x = transformer(block + ".transformer", x);
    }
    if (level == 0) return x;
    w_.scope(scope + ".double");
    return conv(w_, "conv", upsample(w_, "resize", x, 2, "nearest"), kWidths.at(level), 3, {.bias = true});
  }

  TensorId residual(const std::string& scope, TensorId x, Dim out) {
    w_.scope(scope);
    TensorId y = w_.apply(OpType::silu, "silu1", {group_norm(w_, "norm1", x, kGroups)});
    y = conv(w_, "conv1", y, out, 3, {.bias = true});
    TensorId t = w_.linear("time", w_.apply(OpType::silu, "time.silu", {time_}), out, true);
    t = w_.reshape("time.view", t, {w_.dim(t, 0), out, 1, 1});
    y = w_.apply(OpType::add, "with_time", {y, t});
    y = w_.apply(OpType::silu, "silu2", {group_norm(w_, "norm2", y, kGroups)});
    y = conv(w_, "conv2", y, out, 3, {.bias = true});
    if (w_.dim(x, 1) != out) x = conv(w_, "shortcut", x, out, 1, {.bias = true});
    return w_.apply(OpType::add, "add", {x, y});
  }

  /// Attention of tokens x[B, T, C] over `states`.
  TensorId attention(TensorId x, TensorId states) {
    const Dim width = w_.dim(x, 2);
    const TensorId q = split_heads(w_, "query", w_.linear("query", x, width, false), kHeads);
    const TensorId k = split_heads(w_, "key", w_.linear("key", states, width, false), kHeads);
    const TensorId v = split_heads(w_, "value", w_.linear("value", states, width, false), kHeads);
    TensorId y = 0;
    if (flash_) {
      y = flash_attention(w_, q, k, v, false);
    } else {
      const TensorId scores = w_.scalar(OpType::mul_scalar, "scaled", attention_scores(w_, q, k, false, false), 0.1);
      y = attention_context(w_, w_.apply(OpType::softmax, "softmax", {scores}), v, false);
    }
    return w_.linear("output", merge_heads(w_, "context", y, flash_), width, true);
  }

  TensorId transformer(const std::string& scope, TensorId image) {
    w_.scope(scope);
    const Dim width = w_.dim(image, 1);
    const Shape shape = w_.shape(image);
    TensorId x = conv(w_, "in", group_norm(w_, "norm", image, kGroups), width, 1, {.bias = true});
    x = w_.reshape("pixels", x, {shape[0], width, shape[2] * shape[3]});
    x = w_.contiguous("tokens.packed", w_.transpose("tokens", x, {0, 2, 1}));
    w_.scope(scope + ".self");
    x = w_.apply(OpType::add, "add", {attention_of_norm(x, false), x});
    w_.scope(scope + ".text");
    x = w_.apply(OpType::add, "add", {attention_of_norm(x, true), x});
    w_.scope(scope + ".feed_forward");
    x = w_.apply(OpType::add, "add", {feed_forward(w_.layer_norm("norm", x)), x});
    w_.scope(scope + ".out");
    x = w_.contiguous("image.packed", w_.transpose("channels", x, {0, 2, 1}));
    x = conv(w_, "conv", w_.reshape("image", x, shape), width, 1, {.bias = true});
    return w_.apply(OpType::add, "add", {x, image});
  }

  TensorId attention_of_norm(TensorId x, bool over_text) {
    const TensorId y = w_.layer_norm("norm", x);
    return attention(y, over_text ? text_ : y);
  }

  /// One half of the first product gates the other through a GELU.
  TensorId feed_forward(TensorId x) {
    const Dim width = w_.dim(x, 2);
    const TensorId both = w_.linear("fc1", x, 8 * width, true);
    const auto parts = w_.apply_multiple(OpType::split, "halves", {both},
                                         attributes({{"axis", 2}, {"sizes", Shape{4 * width, 4 * width}}}), 2);
    const TensorId gate = w_.apply(OpType::gelu, "gelu", {parts[1]});
    return w_.linear("fc2", w_.apply(OpType::mul, "gated", {parts[0], gate}), width, true);
  }

  GraphWriter& w_;
  bool flash_;
  TensorId text_;
  TensorId time_ = 0;
};

void check_size(const ImageSizes& sizes, const Workload& workload) {
  constexpr Dim kStep = kLatentScale * 8;  // Three halvings, doubled back.
  if (sizes.height % kStep == 0 && sizes.width % kStep == 0) return;
  throw ConfigError(workload.name, "",
                    "expected an image whose sides are multiples of 64, got " + std::to_string(sizes.height) + "x" +
                        std::to_string(sizes.width));
}

}  // namespace

void build_stable_diffusion_unet(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kOwnImage, workload);
  check_size(sizes, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId latents =
      w.input("latents", {sizes.batch, kLatentChannels, sizes.height / kLatentScale, sizes.width / kLatentScale});
  const TensorId noise = UNet(w, options.attention == AttentionForm::flash, sizes.batch).predict(latents);
  if (sizes.training) {
    w.scope("loss");
    w.graph().loss = w.apply(OpType::mse_loss, "mse", {noise, w.input("noise", w.shape(latents))});
  }
  finish(workload, noise);
}

}  // namespace voltaic::workloads
