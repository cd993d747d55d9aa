// SPDX-License-Identifier: MIT
// WaveGlow [Prenger19]: 12 invertible flows between audio and noise, each a 1x1 convolution and an affine coupling by
// 8 dilated convolutions that read the mel frames. `--seq` counts mel frames of 256 samples. Training maps audio to
// noise, inference noise to audio with folded weights. `--dim channels=` sets the width of the couplings: 256 as the
// published checkpoints have it, 512 as the paper.
#include "workloads/attention_block.hpp"
#include "workloads/speech.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kFlows = 12;
constexpr Dim kLayers = 8;
constexpr Dim kGroup = 8;       ///< Samples side by side as channels.
constexpr Dim kEarlyEvery = 4;  ///< Flows after which two channels leave.
constexpr Dim kEarly = 2;
constexpr Dim kUpsampling = 1024;
constexpr Dim kTrainingFrames = 64;  ///< Clips of 16,000 samples, rounded up to even frames.

/// Channels that flow `k` works on.
Dim remaining(Dim k) {
  return kGroup - kEarly * (k / kEarlyEvery);
}

/// Mel frames stretched to the rate of the groups of samples: [B, 80 * 8, frames * 32].
TensorId condition(GraphWriter& w, TensorId mel) {
  w.scope("upsample");
  const Dim batch = w.dim(mel, 0);
  const Dim samples = w.dim(mel, 2) * kSamplesPerFrame;
  TensorId x = conv_transpose(w, "conv", mel, kMelChannels, kUpsampling, {.stride = kSamplesPerFrame, .bias = true});
  x = w.slice("cut", x, 2, 0, samples);
  const Dim groups = samples / kGroup;
  x = w.contiguous("cut.packed", x);
  x = w.reshape("unfold", x, {batch, kMelChannels, groups, kGroup});
  x = w.contiguous("grouped", w.transpose("by_group", x, {0, 2, 1, 3}));
  x = w.reshape("view", x, {batch, groups, kMelChannels * kGroup});
  return w.contiguous("packed", w.transpose("channels", x, {0, 2, 1}));
}

TensorId half_of(GraphWriter& w, const std::string& name, TensorId x, bool second) {
  const Dim half = w.dim(x, 1) / 2;
  return w.slice(name, x, 1, second ? half : 0, second ? 2 * half : half);
}

/// tanh of one half of the channels times sigmoid of the other, the condition added first.
TensorId gated(GraphWriter& w, const std::string& name, TensorId x, TensorId condition) {
  const TensorId sum = w.apply(OpType::add, name + ".add", {x, condition});
  const TensorId t = w.apply(OpType::tanh, name + ".tanh", {half_of(w, name + ".t", sum, false)});
  const TensorId s = w.apply(OpType::sigmoid, name + ".sigmoid", {half_of(w, name + ".s", sum, true)});
  return w.apply(OpType::mul, name, {t, s});
}

/// The coupling's network: log scale and shift, [B, 2 * half, T], from one half of the channels.
TensorId coupling(GraphWriter& w, TensorId x, TensorId mel, Dim channels) {
  const Dim half = w.dim(x, 1);
  TensorId audio = weight_normed_conv(w, "start", x, channels, 1);
  const TensorId conditions = weight_normed_conv(w, "cond", mel, 2 * channels * kLayers, 1);
  TensorId out = w.fill("zeros", w.shape(audio), DataType::fp32);
  for (Dim i = 0; i < kLayers; ++i) {
    const std::string layer = numbered("layer", i);
    const TensorId in = weight_normed_conv(w, layer + ".in", audio, 2 * channels, 3, {.dilation = Dim{1} << i});
    const TensorId condition = w.slice(layer + ".cond", conditions, 1, 2 * channels * i, 2 * channels * (i + 1));
    const TensorId acts = gated(w, layer + ".gate", in, condition);
    const bool last = i + 1 == kLayers;
    const TensorId both = weight_normed_conv(w, layer + ".res_skip", acts, last ? channels : 2 * channels, 1);
    if (!last) audio = w.apply(OpType::add, layer + ".residual", {audio, half_of(w, layer + ".res", both, false)});
    const TensorId skip = last ? both : half_of(w, layer + ".skip", both, true);
    out = w.apply(OpType::add, layer + ".output", {out, skip});
  }
  return conv(w, "end", out, 2 * half, 1, {.bias = true});
}

struct Likelihood {
  TensorId sum = UINT32_MAX;

  void add(GraphWriter& w, const std::string& name, TensorId term) {
    sum = sum == UINT32_MAX ? term : w.apply(OpType::add, name, {sum, term});
  }
};

/// The 1x1 convolution of a flow. Its log determinant comes of an LU factorisation of at most 8x8 numbers, here three
/// small kernels.
TensorId mix(GraphWriter& w, TensorId x, Likelihood& likelihood) {
  const Dim channels = w.dim(x, 1);
  if (w.training()) {
    const TensorId weight = w.parameter("mix.weight", {channels, channels, 1});
    const TensorId diagonal = w.apply(OpType::log, "mix.log", {w.apply(OpType::abs, "mix.abs", {weight})});
    const TensorId determinant = w.apply(OpType::reduce_sum, "mix.log_det", {diagonal});
    likelihood.add(w, "mix.likelihood", determinant);
    return w.apply(OpType::conv1d, "mix", {x, weight});
  }
  return conv(w, "mix", x, channels, 1, {});
}

TensorId to_noise(GraphWriter& w, TensorId x, TensorId mel, Dim channels) {
  Likelihood likelihood;
  std::vector<TensorId> noise;
  for (Dim k = 0; k < kFlows; ++k) {
    w.scope(numbered("flow", k));
    if (k > 0 && k % kEarlyEvery == 0) {
      noise.push_back(w.slice("early", x, 1, 0, kEarly));
      x = w.slice("kept", x, 1, kEarly, w.dim(x, 1));
    }
    x = mix(w, w.contiguous("packed", x), likelihood);
    const TensorId first = half_of(w, "first", x, false);
    const TensorId second = half_of(w, "second", x, true);
    const TensorId out = coupling(w, w.contiguous("first.packed", first), mel, channels);
    const TensorId log_scale = half_of(w, "log_scale", out, true);
    TensorId y = w.apply(OpType::mul, "scaled", {w.apply(OpType::exp, "exp", {log_scale}), second});
    y = w.apply(OpType::add, "shifted", {y, half_of(w, "shift", out, false)});
    likelihood.add(w, "likelihood", w.apply(OpType::reduce_sum, "sum", {log_scale}));
    x = concat(w, "joined", {first, y});
  }
  w.scope("likelihood");
  noise.push_back(x);
  const TensorId z = concat(w, "noise", noise);
  const TensorId energy = w.apply(OpType::reduce_sum, "sum", {w.apply(OpType::mul, "square", {z, z})});
  const TensorId scaled = w.scalar(OpType::div_scalar, "scaled", energy, 2);
  const TensorId total = w.apply(OpType::sub, "negative_likelihood", {scaled, likelihood.sum});
  add_loss(w, w.scalar(OpType::div_scalar, "mean", total, static_cast<double>(w.graph().tensor(z).elements())));
  return z;
}

TensorId to_audio(GraphWriter& w, Dim batch, Dim groups, TensorId mel, Dim channels) {
  Likelihood unused;
  TensorId x = w.input("noise", {batch, remaining(kFlows - 1), groups});
  for (Dim k = kFlows - 1; k >= 0; --k) {
    w.scope(numbered("flow", k));
    const TensorId first = half_of(w, "first", x, false);
    const TensorId out = coupling(w, w.contiguous("first.packed", first), mel, channels);
    const TensorId scale = w.apply(OpType::exp, "exp", {half_of(w, "log_scale", out, true)});
    TensorId y = w.apply(OpType::sub, "shifted", {half_of(w, "second", x, true), half_of(w, "shift", out, false)});
    y = w.apply(OpType::div, "scaled", {y, scale});
    x = mix(w, concat(w, "joined", {first, y}), unused);
    if (k > 0 && k % kEarlyEvery == 0) {
      x = concat(w, "with_early", {w.input(numbered("noise.early", k), {batch, kEarly, groups}), x});
    }
  }
  w.scope("audio");
  return w.contiguous("packed", w.transpose("samples", x, {0, 2, 1}));
}

}  // namespace

TensorId waveglow(GraphWriter& w, TensorId mel, Dim channels) {
  const Dim batch = w.dim(mel, 0);
  const TensorId conditions = condition(w, mel);
  const Dim groups = w.dim(conditions, 2);
  if (!w.training()) return to_audio(w, batch, groups, conditions, channels);
  const TensorId audio = w.input("audio", {batch, groups, kGroup});
  w.scope("audio");
  const TensorId grouped = w.contiguous("grouped", w.transpose("channels", audio, {0, 2, 1}));
  return to_noise(w, grouped, conditions, channels);
}

void build_waveglow(const BuildOptions& options, Workload& workload) {
  const LengthSizes sizes = resolve_length(options, options.training ? kTrainingFrames : kMeanClipFrames,
                                           "mel frames of 256 samples", workload, {"channels"});
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId mel = w.input("mel", {sizes.batch, kMelChannels, sizes.length});
  finish(workload, waveglow(w, mel, resolve_dim(options, "channels", kWaveglowChannels)));
}

}  // namespace voltaic::workloads
