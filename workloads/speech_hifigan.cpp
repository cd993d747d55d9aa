// SPDX-License-Identifier: MIT
// HiFi-GAN v1 [Kong20]: a generator that stretches mel frames 256-fold to audio by transposed convolutions and residual
// blocks of dilated ones, and, in training, eight discriminators over periods and scales of the audio. `--seq` counts
// mel frames. One graph is one step: discriminators on real and generated audio, then the generator through them.
#include <array>

#include "workloads/attention_block.hpp"
#include "workloads/shared_layers.hpp"
#include "workloads/speech.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kTrainingFrames = 32;  ///< Segments of 8,192 samples.
constexpr double kSlope = 0.1;
constexpr Dim kTransform = 1024;  ///< Of the short-time Fourier transform behind the mel loss.

TensorId leaky(GraphWriter& w, const std::string& name, TensorId x) {
  return w.scalar(OpType::leaky_relu, name, x, kSlope);
}

TensorId residual_block(GraphWriter& w, const std::string& name, TensorId x, Dim kernel) {
  const Dim channels = w.dim(x, 1);
  for (const Dim dilation : {1, 3, 5}) {
    const std::string part = name + numbered(".dilation", dilation);
    TensorId y = leaky(w, part + ".relu1", x);
    y = weight_normed_conv(w, part + ".conv1", y, channels, kernel, {.dilation = dilation});
    y = weight_normed_conv(w, part + ".conv2", leaky(w, part + ".relu2", y), channels, kernel, {});
    x = w.apply(OpType::add, part + ".add", {y, x});
  }
  return x;
}

TensorId generate(GraphWriter& w, TensorId mel) {
  struct Stage {
    Dim stride, kernel, channels;
  };
  constexpr std::array<Stage, 4> kStages{{{8, 16, 256}, {8, 16, 128}, {2, 4, 64}, {2, 4, 32}}};
  w.scope("generator.in");
  TensorId x = weight_normed_conv(w, "conv", mel, 512, 7);
  for (std::size_t s = 0; s < kStages.size(); ++s) {
    const auto& [stride, kernel, channels] = kStages.at(s);
    w.scope("generator.stage" + std::to_string(s + 1));
    x = weight_normed_transposed(w, "up", leaky(w, "relu", x), channels, kernel,
                                 {.stride = stride, .padding = (kernel - stride) / 2});
    TensorId sum = UINT32_MAX;
    for (const Dim filter : {3, 7, 11}) {
      const std::string name = numbered("block", filter);
      const TensorId y = residual_block(w, name, x, filter);
      sum = sum == UINT32_MAX ? y : w.apply(OpType::add, name + ".sum", {sum, y});
    }
    x = w.scalar(OpType::div_scalar, "mean", sum, 3);
  }
  w.scope("generator.out");
  return w.apply(OpType::tanh, "tanh", {weight_normed_conv(w, "conv", leaky(w, "relu", x), 1, 7)});
}

/// Feature maps of one discriminator over one audio, its verdict the last.
using Features = std::vector<TensorId>;

struct Filter {
  Dim out, kernel, stride, groups;
};

TensorId normed(GraphWriter& w, SharedNetwork& net, const std::string& name, const Shape& shape) {
  Shape lengths(shape.size(), 1);
  lengths[0] = shape[0];
  const TensorId g = net.parameter(name + ".weight_g", lengths);
  const TensorId v = net.parameter(name + ".weight_v", shape);
  const auto trailing = static_cast<Dim>(shape.size()) - 1;
  const TensorId unit = w.apply(OpType::rms_norm, name + ".unit", {v}, attributes({{"axes", trailing}}));
  return w.apply(OpType::mul, name + ".weight", {unit, g});
}

/// Filters over the first spatial dim; periods have a second, of filter 1.
TensorId filtered(GraphWriter& w, SharedNetwork& net, const std::string& name, TensorId x, const Filter& f) {
  const bool plane = w.shape(x).size() == 4;
  Shape shape{f.out, w.dim(x, 1) / f.groups, f.kernel};
  Shape padding{(f.kernel - 1) / 2};
  Shape stride{f.stride};
  if (plane) {
    shape.push_back(1);
    padding.push_back(0);
    stride.push_back(1);
  }
  const TensorId weight = normed(w, net, name, shape);
  const TensorId bias = net.parameter(name + ".bias", {f.out});
  graph::Attributes attrs = attributes({{"padding", padding}, {"stride", stride}});
  if (f.groups != 1) attrs.set("groups", f.groups);
  return w.apply(plane ? OpType::conv2d : OpType::conv1d, name, {x, weight, bias}, std::move(attrs));
}

Features judge(GraphWriter& w, SharedNetwork& net, TensorId x, std::span<const Filter> filters) {
  Features features;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const std::string name = "conv" + std::to_string(i + 1);
    x = filtered(w, net, name, x, filters[i]);
    if (i + 1 < filters.size()) x = leaky(w, name + ".relu", x);
    features.push_back(x);
  }
  return features;
}

constexpr std::array<Filter, 6> kPeriodFilters{
    {{32, 5, 3, 1}, {128, 5, 3, 1}, {512, 5, 3, 1}, {1024, 5, 3, 1}, {1024, 5, 1, 1}, {1, 3, 1, 1}}};
constexpr std::array<Filter, 8> kScaleFilters{{{128, 15, 1, 1},
                                               {128, 41, 2, 4},
                                               {256, 41, 2, 16},
                                               {512, 41, 4, 16},
                                               {1024, 41, 4, 16},
                                               {1024, 41, 1, 16},
                                               {1024, 5, 1, 1},
                                               {1, 3, 1, 1}}};
constexpr std::array<Dim, 5> kPeriods{2, 3, 5, 7, 11};
constexpr Dim kScales = 3;

/// Audio folded so that samples a period apart stand below each other.
TensorId fold(GraphWriter& w, TensorId audio, Dim period) {
  const Dim samples = w.dim(audio, 2);
  const Dim missing = (period - samples % period) % period;
  if (missing > 0) audio = w.apply(OpType::pad, "pad", {audio}, attributes({{"pads", Shape{0, 0, 0, 0, 0, missing}}}));
  return w.reshape("fold", audio, {w.dim(audio, 0), 1, (samples + missing) / period, period});
}

/// The discriminators with their parameters.
class Judges {
 public:
  explicit Judges(GraphWriter& w) : w_(&w) {
    for (const Dim period : kPeriods) nets_.emplace_back(w, numbered("discriminator.period", period));
    for (Dim scale = 0; scale < kScales; ++scale) nets_.emplace_back(w, numbered("discriminator.scale", scale));
  }

  std::vector<Features> run(const std::string& name, TensorId audio) {
    std::vector<Features> all;
    std::size_t n = 0;
    for (const Dim period : kPeriods) {
      nets_[n].run(name);
      all.push_back(judge(*w_, nets_[n++], fold(*w_, audio, period), kPeriodFilters));
    }
    for (Dim scale = 0; scale < kScales; ++scale) {
      nets_[n].run(name);
      if (scale > 0) audio = avg_pool(*w_, "pool", audio, 4, {.stride = 2, .padding = 2});
      all.push_back(judge(*w_, nets_[n++], audio, kScaleFilters));
    }
    return all;
  }

 private:
  GraphWriter* w_;
  std::vector<SharedNetwork> nets_;
};

/// Mel frames of audio: four pieces of 256 samples side by side make a frame, the Fourier transform is a product with
/// its basis.
TensorId mel_of(GraphWriter& w, TensorId audio) {
  w.scope("loss.mel");
  constexpr Dim kBins = kTransform / 2 + 1;
  constexpr Dim kPieces = kTransform / kSamplesPerFrame;
  constexpr Dim kPadding = (kTransform - kSamplesPerFrame) / 2;
  const Dim batch = w.dim(audio, 0);
  const Dim frames = w.dim(audio, 2) / kSamplesPerFrame;
  TensorId x = w.apply(OpType::pad, "pad", {audio}, attributes({{"pads", Shape{0, 0, kPadding, 0, 0, kPadding}}}));
  x = w.reshape("pieces", x, {batch, frames + kPieces - 1, kSamplesPerFrame});
  std::vector<TensorId> pieces;
  for (Dim i = 0; i < kPieces; ++i) pieces.push_back(w.slice(numbered("piece", i), x, 1, i, i + frames));
  const TensorId windows = concat(w, "frames", pieces, 2);
  const TensorId both =
      w.apply(OpType::matmul, "transform", {windows, w.buffer("fourier_basis", {kTransform, 2 * kBins})});
  const TensorId square =
      w.scalar(OpType::pow_scalar, "square", w.reshape("parts", both, {batch, frames, 2, kBins}), 2);
  const TensorId power = w.apply(OpType::reduce_sum, "power", {square}, attributes({{"axes", Shape{2}}}));
  const TensorId magnitude = w.apply(OpType::sqrt, "sqrt", {w.scalar(OpType::add_scalar, "floor", power, 1e-9)});
  const TensorId mel = w.apply(OpType::matmul, "mel", {magnitude, w.buffer("mel_basis", {kBins, kMelChannels})});
  const TensorId audible = w.apply(OpType::clamp, "clamp", {mel}, attributes({{"low", 1e-5}, {"high", 1e9}}));
  return w.apply(OpType::log, "log", {audible});
}

/// Losses summed one by one.
class Total {
 public:
  explicit Total(GraphWriter& w) : w_(&w) {}
  void add(TensorId term) {
    sum_ = sum_ == UINT32_MAX ? term : w_->apply(OpType::add, numbered("sum", count_), {sum_, term});
    ++count_;
  }
  TensorId sum() const { return sum_; }

 private:
  GraphWriter* w_;
  TensorId sum_ = UINT32_MAX;
  Dim count_ = 0;
};

/// Squared distance of verdicts from what they should be.
void verdicts(GraphWriter& w, Total& total, const std::string& name, const std::vector<Features>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string id = name + std::to_string(i);
    const TensorId wanted = w.fill(id + ".wanted", w.shape(all[i].back()), DataType::fp32);
    total.add(w.apply(OpType::mse_loss, id, {all[i].back(), wanted}));
  }
}

/// The whole step. The discriminators' own pass sees generated audio as an input: no gradient runs back from it.
void train(GraphWriter& w, TensorId generated, TensorId known_mel) {
  Judges judges(w);
  const TensorId real = w.input("audio", w.shape(generated));
  const TensorId detached = w.input("audio.generated", w.shape(generated));
  const auto on_real = judges.run("real", real);
  const auto on_detached = judges.run("detached", detached);
  const TensorId mel = mel_of(w, generated);
  const auto again = judges.run("real_again", real);
  const auto on_generated = judges.run("generated", generated);
  w.scope("loss");
  Total total(w);
  verdicts(w, total, "real", on_real);
  verdicts(w, total, "detached", on_detached);
  verdicts(w, total, "fooled", on_generated);
  for (std::size_t d = 0; d < again.size(); ++d) {
    for (std::size_t i = 0; i + 1 < again[d].size(); ++i) {
      const std::string id = "features" + std::to_string(d) + "." + std::to_string(i);
      total.add(w.apply(OpType::smooth_l1_loss, id, {on_generated[d][i], again[d][i]}));
    }
  }
  total.add(w.scalar(OpType::mul_scalar, "mel.weighted",
                     w.apply(OpType::smooth_l1_loss, "mel", {mel, w.reshape("mel.known", known_mel, w.shape(mel))}),
                     45));
  w.graph().loss = total.sum();
}

void build(bool with_discriminators, const BuildOptions& options, Workload& workload) {
  const LengthSizes sizes = resolve_length(options, options.training ? kTrainingFrames : kMeanClipFrames,
                                           "mel frames of 256 samples", workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId mel = w.input("mel", {sizes.batch, kMelChannels, sizes.length});
  if (!sizes.training || !with_discriminators) return finish(workload, hifigan_generator(w, mel));
  const TensorId audio = generate(w, mel);
  train(w, audio, mel);
  finish(workload, audio);
}

}  // namespace

TensorId hifigan_generator(GraphWriter& w, TensorId mel) {
  const TensorId audio = generate(w, mel);
  if (w.training()) {
    w.scope("generator.loss");
    add_loss(w, w.apply(OpType::mse_loss, "mse", {audio, w.input("audio", w.shape(audio))}));
  }
  return audio;
}

void build_hifigan(const BuildOptions& options, Workload& workload) {
  build(true, options, workload);
}

void build_hifigan_generator(const BuildOptions& options, Workload& workload) {
  build(false, options, workload);
}

}  // namespace voltaic::workloads
