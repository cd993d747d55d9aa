// SPDX-License-Identifier: MIT
// Speech recognition and synthesis.
#include "workloads/speech.hpp"

#include <utility>

#include "workloads/shared_layers.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

/// g v / |v| with a norm per slice of the first dim. Simplification: two kernels, where the framework has one.
TensorId normed_weight(GraphWriter& w, const std::string& name, const Shape& shape) {
  if (!w.training()) return w.parameter(name + ".weight", shape);
  const TensorId length = w.parameter(name + ".weight_g", {shape[0], 1, 1});
  const TensorId direction = w.parameter(name + ".weight_v", shape);
  const TensorId unit = w.apply(OpType::rms_norm, name + ".unit", {direction}, attributes({{"axes", 2}}));
  return w.apply(OpType::mul, name + ".weight", {unit, length});
}

constexpr ZooModel kModels[] = {
    {"jasper", "speech", "Jasper 10x5 dense residual: 64 features per 10 ms, 29 characters", build_jasper},
    {"quartznet", "speech", "QuartzNet 15x5: separable convolutions, 64 features per 10 ms", build_quartznet},
    {"tacotron2", "speech", "Tacotron 2: text to mel frames, one decoder step per frame", build_tacotron2},
    {"waveglow", "speech", "WaveGlow: mel frames to audio, 12 flows of 8 layers, 256 channels", build_waveglow},
    {"fastpitch", "speech", "FastPitch: 6 + 6 feed-forward transformer layers of width 384", build_fastpitch},
    {"hifigan", "speech", "HiFi-GAN v1: a training step of generator and discriminators", build_hifigan},
    {"hifigan-generator", "speech", "HiFi-GAN v1 generator: mel frames to audio", build_hifigan_generator},
    {"tacotron2-waveglow", "speech", "Text to audio: Tacotron 2, then WaveGlow", build_tacotron2_waveglow},
    {"fastpitch-waveglow", "speech", "Text to audio: FastPitch, then WaveGlow", build_fastpitch_waveglow},
    {"fastpitch-hifigan", "speech", "Text to audio: FastPitch, then the HiFi-GAN generator", build_fastpitch_hifigan},
};

}  // namespace

std::string numbered(const std::string& name, Dim number) {
  return name + std::to_string(number);
}

TensorId weight_normed_conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer) {
  const TensorId weight = normed_weight(w, name, {out, w.dim(x, 1) / layer.groups, kernel});
  layer.bias = true;
  return conv_with(w, name, x, weight, w.parameter(name + ".bias", {out}), layer);
}

TensorId weight_normed_transposed(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel,
                                  TransposedLayer layer) {
  const TensorId weight = normed_weight(w, name, {w.dim(x, 1), out, kernel});
  const TensorId bias = w.parameter(name + ".bias", {out});
  return w.apply(OpType::conv_transpose1d, name, {x, weight, bias},
                 attributes({{"padding", layer.padding}, {"stride", layer.stride}}));
}

std::span<const ZooModel> speech_models() {
  return kModels;
}

}  // namespace voltaic::workloads
