// SPDX-License-Identifier: MIT
// Networks of depthwise separable convolutions: MobileNet-v2 [Sandler18], EfficientNet [Tan19] and its second version
// [Tan21].
#include <algorithm>
#include <cmath>

#include "workloads/convnets.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kClasses = 1000;
constexpr double kDropPath = 0.2;  ///< Of the last block; rises from 0 with the depth.

/// One inverted residual block.
struct MobileBlock {
  Dim expand = 1, kernel = 3, stride = 1, out = 1;
  Dim squeezed = 0;  ///< Channels of the gate; 0: none.
  OpType act = OpType::silu;
  double drop_path = 0;
  bool fused = false;  ///< One full convolution in place of the expanding and the depthwise one.
};

/// Stochastic depth: drops the branch of whole samples by a random vector.
TensorId drop_path(GraphWriter& w, TensorId x, double p) {
  if (!w.training() || p <= 0) return x;
  const TensorId chosen = w.fill("drop.bernoulli", {w.dim(x, 0), 1, 1, 1}, DataType::fp32);
  const TensorId scaled = w.scalar(OpType::div_scalar, "drop.scale", chosen, 1 - p);
  return w.apply(OpType::mul, "drop", {x, scaled});
}

TensorId mobile_block(GraphWriter& w, const MobileBlock& b, TensorId x) {
  const Dim in = w.dim(x, 1);
  const Dim inner = in * b.expand;
  TensorId y = x;
  if (b.fused) {
    y = conv_norm_act(w, "fused", y, b.expand == 1 ? b.out : inner, b.kernel, b.act, {.stride = b.stride});
  } else {
    if (b.expand != 1) y = conv_norm_act(w, "expand", y, inner, 1, b.act);
    y = conv_norm_act(w, "depthwise", y, inner, b.kernel, b.act, {.stride = b.stride, .groups = inner});
  }
  if (b.squeezed > 0) y = squeeze_excite(w, "se", y, b.squeezed, OpType::silu, OpType::sigmoid);
  if (!b.fused || b.expand != 1) y = conv_norm(w, "project", y, b.out, 1);
  if (b.stride != 1 || in != b.out) return y;
  return w.apply(OpType::add, "add", {drop_path(w, y, b.drop_path), x});
}

struct Stage {
  Dim expand, kernel, stride, out, layers;
  bool fused = false;
  bool gate = true;
};

/// The multiple of 8 next to `channels`, never 10 % below it.
Dim round_channels(double channels) {
  const Dim rounded = std::max<Dim>(8, static_cast<Dim>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

/// Runs the stages; the gate squeezes a quarter of the block's input, or of its inner channels.
template <std::size_t kCount>
std::vector<TensorId> run_stages(GraphWriter& w, TensorId x, const std::array<Stage, kCount>& stages, OpType act,
                                 bool wide_squeeze) {
  Dim total = 0;
  for (const Stage& s : stages) total += s.layers;
  std::vector<TensorId> maps;
  Dim done = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& s = stages.at(i);
    for (Dim layer = 0; layer < s.layers; ++layer, ++done) {
      w.scope("stage" + std::to_string(i + 1) + "." + std::to_string(layer));
      const Dim in = w.dim(x, 1);
      MobileBlock block{.expand = s.expand, .kernel = s.kernel, .stride = layer == 0 ? s.stride : 1, .out = s.out};
      block.act = act;
      block.fused = s.fused;
      if (s.gate) block.squeezed = std::max<Dim>(1, (wide_squeeze ? in * s.expand : in) / 4);
      if (act == OpType::silu) block.drop_path = kDropPath * static_cast<double>(done) / static_cast<double>(total);
      x = mobile_block(w, block, x);
    }
    maps.push_back(x);
  }
  return maps;
}

constexpr std::array<Stage, 7> kMobileNetV2{{{1, 3, 1, 16, 1, false, false},
                                             {6, 3, 2, 24, 2, false, false},
                                             {6, 3, 2, 32, 3, false, false},
                                             {6, 3, 2, 64, 4, false, false},
                                             {6, 3, 1, 96, 3, false, false},
                                             {6, 3, 2, 160, 3, false, false},
                                             {6, 3, 1, 320, 1, false, false}}};
constexpr std::array<Stage, 7> kEfficientNet{{{1, 3, 1, 16, 1},
                                              {6, 3, 2, 24, 2},
                                              {6, 5, 2, 40, 2},
                                              {6, 3, 2, 80, 3},
                                              {6, 5, 1, 112, 3},
                                              {6, 5, 2, 192, 4},
                                              {6, 3, 1, 320, 1}}};
constexpr std::array<Stage, 6> kEfficientNetV2S{{{1, 3, 1, 24, 2, true, false},
                                                 {4, 3, 2, 48, 4, true, false},
                                                 {4, 3, 2, 64, 4, true, false},
                                                 {4, 3, 2, 128, 6},
                                                 {6, 3, 1, 160, 9},
                                                 {6, 3, 2, 256, 15}}};

TensorId stem(GraphWriter& w, TensorId x, Dim out, OpType act) {
  w.scope("stem");
  return conv_norm_act(w, "conv", x, out, 3, act, {.stride = 2});
}

void head(GraphWriter& w, Workload& workload, TensorId x, Dim width, OpType act, double dropout) {
  w.scope("last");
  classifier_head(w, workload, conv_norm_act(w, "conv", x, width, 1, act), kClasses, dropout);
}

}  // namespace

std::vector<TensorId> efficientnet_features(GraphWriter& w, TensorId image, const EfficientNetShape& shape) {
  auto stages = kEfficientNet;
  for (Stage& s : stages) {
    s.out = round_channels(static_cast<double>(s.out) * shape.width);
    s.layers = static_cast<Dim>(std::ceil(static_cast<double>(s.layers) * shape.depth));
  }
  const TensorId x = stem(w, image, round_channels(32 * shape.width), OpType::silu);
  return run_stages(w, x, stages, OpType::silu, shape.wide_squeeze);
}

void build_efficientnet(const EfficientNetShape& shape, Dim image, double dropout, const BuildOptions& options,
                        Workload& workload) {
  const ImageSizes sizes = resolve_image(options, image, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const auto maps = efficientnet_features(w, image_input(w, sizes), shape);
  head(w, workload, maps.back(), 4 * w.dim(maps.back(), 1), OpType::silu, dropout);
}

void build_efficientnet_v2_s(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 384, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId x = stem(w, image_input(w, sizes), 24, OpType::silu);
  head(w, workload, run_stages(w, x, kEfficientNetV2S, OpType::silu, false).back(), 1280, OpType::silu, 0.2);
}

void build_mobilenet_v2(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 224, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId x = stem(w, image_input(w, sizes), 32, OpType::relu6);
  head(w, workload, run_stages(w, x, kMobileNetV2, OpType::relu6, false).back(), 1280, OpType::relu6, 0.2);
}

}  // namespace voltaic::workloads
