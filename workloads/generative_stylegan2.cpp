// SPDX-License-Identifier: MIT
// StyleGAN2 generator, configuration F [Karras20]: eight dense layers map a latent to styles; each convolution is
// modulated by a style, so every sample has filters of its own and a batch runs as a grouped convolution. Layers that
// double the image are transposed convolutions followed by a 4x4 blur. `--image` from 8 to 1024, a power of two.
// Training ends in the mean of the image, which stands for the gradient that a discriminator hands back.
#include <algorithm>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/generative.hpp"
#include "workloads/shared_layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kOwnImage = 1024;
constexpr Dim kSmallest = 8;
constexpr Dim kLatent = 512;
constexpr Dim kMapping = 8;
constexpr double kSlope = 0.2;
constexpr double kGain = 1.4142135623730951;

Dim channels_at(Dim size) {
  return std::min<Dim>(512, 32768 / size);
}

/// Dense layer with the learning rate folded in as a factor on the weight.
TensorId equalized(GraphWriter& w, const std::string& name, TensorId x, Dim out) {
  const TensorId weight = w.parameter(name + ".weight", {out, w.dim(x, -1)});
  const TensorId scaled = w.scalar(OpType::mul_scalar, name + ".scaled", weight, 0.01);
  return w.apply(OpType::linear, name, {x, scaled, w.parameter(name + ".bias", {out})});
}

TensorId map_latent(GraphWriter& w, Dim batch) {
  w.scope("mapping");
  TensorId x = w.input("latent", {batch, kLatent});
  const TensorId square = w.apply(OpType::reduce_mean, "power", {w.apply(OpType::square, "square", {x})},
                                  attributes({{"axes", Shape{1}}, {"keepdims", 1}}));
  x = w.apply(OpType::mul, "unit", {x, w.apply(OpType::rsqrt, "rsqrt", {square})});
  for (Dim i = 0; i < kMapping; ++i) {
    const std::string name = "fc" + std::to_string(i);
    x = w.scalar(OpType::leaky_relu, name + ".relu", equalized(w, name, x, kLatent), kSlope);
  }
  return x;
}

enum class Kind : std::uint8_t { plain, up, to_rgb };

/// Filters of each sample: the weight times its style, to unit norm (but for colours).
TensorId modulated_weight(GraphWriter& w, TensorId latent, Dim in, Dim out, Dim kernel, bool unit) {
  const Dim batch = w.dim(latent, 0);
  const TensorId style = equalized(w, "style", latent, in);
  const TensorId weight = w.parameter("weight", {1, out, in, kernel, kernel});
  TensorId m = w.apply(OpType::mul, "modulated", {weight, w.reshape("style.view", style, {batch, 1, in, 1, 1})});
  if (!unit) return m;
  const TensorId power = w.apply(OpType::reduce_sum, "power", {w.apply(OpType::square, "square", {m})},
                                 attributes({{"axes", Shape{2, 3, 4}}, {"keepdims", 1}}));
  const TensorId norm = w.apply(OpType::rsqrt, "rsqrt", {w.scalar(OpType::add_scalar, "floor", power, 1e-8)});
  return w.apply(OpType::mul, "demodulated", {m, norm});
}

/// The 4x4 low-pass filter that follows a doubling, channel by channel.
TensorId blur(GraphWriter& w, TensorId x) {
  const Dim channels = w.dim(x, 1);
  const TensorId taps = w.buffer(w.graph().tensor(x).name + ".taps", {channels, 1, 4, 4});
  return conv_with(w, "blur", x, taps, kNoBias, {.padding = 1, .groups = channels});
}

/// Convolution with a filter set per sample: samples become groups.
TensorId per_sample(GraphWriter& w, TensorId x, TensorId weight, Dim out, Kind kind) {
  const Dim batch = w.dim(x, 0);
  const Dim in = w.dim(x, 1);
  const Dim size = w.dim(x, 2);
  const Dim kernel = w.dim(weight, -1);
  const TensorId side = w.reshape("samples_as_groups", x, {1, batch * in, size, size});
  TensorId y = 0;
  if (kind == Kind::up) {
    const TensorId swapped = w.contiguous("swapped.packed", w.transpose("swapped", weight, {0, 2, 1, 3, 4}));
    const TensorId filters = w.reshape("filters", swapped, {batch * in, out, kernel, kernel});
    y = w.apply(OpType::conv_transpose2d, "conv", {side, filters}, attributes({{"groups", batch}, {"stride", 2}}));
  } else {
    const TensorId filters = w.reshape("filters", weight, {batch * out, in, kernel, kernel});
    y = conv_with(w, "conv", side, filters, kNoBias, {.groups = batch});
  }
  const Dim grown = w.dim(y, 2);
  y = w.reshape("samples", y, {batch, out, grown, grown});
  return kind == Kind::up ? blur(w, y) : y;
}

/// Modulated convolution, noise, bias, activation and gain.
TensorId style_layer(GraphWriter& w, const std::string& scope, TensorId x, TensorId latent, Dim out, Kind kind) {
  w.scope(scope);
  const Dim in = w.dim(x, 1);
  TensorId y = per_sample(w, x, modulated_weight(w, latent, in, out, 3, true), out, kind);
  const Dim size = w.dim(y, 2);
  const TensorId noise = w.apply(OpType::mul, "noise.scaled",
                                 {w.buffer(scope + ".noise", {size, size}), w.parameter("noise.strength", {1})});
  y = w.apply(OpType::add, "noise", {y, noise});
  y = w.apply(OpType::add, "biased", {y, w.parameter("bias", {out, 1, 1})});
  return w.scalar(OpType::mul_scalar, "gain", w.scalar(OpType::leaky_relu, "relu", y, kSlope), kGain);
}

TensorId to_rgb(GraphWriter& w, const std::string& scope, TensorId x, TensorId latent) {
  w.scope(scope);
  const TensorId y = per_sample(w, x, modulated_weight(w, latent, w.dim(x, 1), 3, 1, false), 3, Kind::to_rgb);
  return w.apply(OpType::add, "biased", {y, w.parameter("bias", {3, 1, 1})});
}

/// Colours so far, twice as large, and those of this size.
TensorId accumulate_rgb(GraphWriter& w, TensorId rgb, TensorId more) {
  const TensorId taps = w.buffer(w.graph().tensor(rgb).name + ".taps", {3, 1, 4, 4});
  const TensorId grown = w.apply(OpType::conv_transpose2d, "rgb.up", {rgb, taps},
                                 attributes({{"groups", 3}, {"padding", 1}, {"stride", 2}}));
  return w.apply(OpType::add, "rgb", {grown, more});
}

ImageSizes checked_size(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kOwnImage, workload);
  const bool power = (sizes.height & (sizes.height - 1)) == 0;
  if (sizes.height == sizes.width && power && sizes.height >= kSmallest && sizes.height <= kOwnImage) return sizes;
  throw ConfigError(workload.name, "",
                    "expected a square image of 8, 16, 32 ... 1024, got " + std::to_string(sizes.height) + "x" +
                        std::to_string(sizes.width));
}

}  // namespace

void build_stylegan2(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = checked_size(options, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId latent = map_latent(w, sizes.batch);
  w.scope("synthesis.4");
  const TensorId constant = w.parameter("constant", {1, kLatent, 4, 4});
  TensorId x = w.contiguous("repeated", w.apply(OpType::expand, "expanded", {constant},
                                                attributes({{"shape", Shape{sizes.batch, kLatent, 4, 4}}})));
  x = style_layer(w, "synthesis.4.conv", x, latent, channels_at(4), Kind::plain);
  TensorId rgb = to_rgb(w, "synthesis.4.rgb", x, latent);
  for (Dim size = 8; size <= sizes.height; size *= 2) {
    const std::string scope = "synthesis." + std::to_string(size);
    x = style_layer(w, scope + ".up", x, latent, channels_at(size), Kind::up);
    x = style_layer(w, scope + ".conv", x, latent, channels_at(size), Kind::plain);
    rgb = accumulate_rgb(w, rgb, to_rgb(w, scope + ".rgb", x, latent));
  }
  if (sizes.training) {
    w.scope("loss");
    w.graph().loss = w.apply(OpType::reduce_mean, "mean", {rgb});
  }
  finish(workload, rgb);
}

}  // namespace voltaic::workloads
