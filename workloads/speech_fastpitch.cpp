// SPDX-License-Identifier: MIT
// FastPitch [Lancucki21] with the aligner of its version 1.1: characters through six transformer layers, durations,
// pitch and energy predicted from them, each character repeated over its frames, six more layers, mel frames. The
// feed-forward part is two convolutions over three steps. `--seq` counts mel frames, `--dim text=` characters.
#include <string>
#include <vector>

#include "workloads/attention_block.hpp"
#include "workloads/speech.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kWidth = 384;
constexpr Dim kHead = 64;
constexpr Dim kInner = 1536;
constexpr Dim kLayers = 6;
constexpr Dim kPredictor = 256;
constexpr double kDropout = 0.1;

/// Convolution of [B, T, C] over T, in and out.
TensorId conv_over_time(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel) {
  const TensorId channels = w.contiguous(name + ".packed", w.transpose(name + ".channels", x, {0, 2, 1}));
  return conv(w, name, channels, out, kernel, {.bias = true});
}

/// One head, so that query, key and value are views of their product.
TensorId self_attention(GraphWriter& w, TensorId x, TensorId mask) {
  const Dim batch = w.dim(x, 0);
  const Dim steps = w.dim(x, 1);
  const TensorId qkv = w.linear("qkv", x, 3 * kHead, true);
  const auto parts = w.apply_multiple(OpType::split, "heads", {qkv},
                                      attributes({{"axis", 2}, {"sizes", Shape{kHead, kHead, kHead}}}), 3);
  TensorId p = w.apply(OpType::matmul, "scores", {parts[0], parts[1]}, attributes({{"transpose_b", 1}}));
  p = w.scalar(OpType::mul_scalar, "scaled", p, 0.125);
  const TensorId keys = w.reshape("mask.keys", mask, {batch, 1, steps});
  p = w.apply(OpType::masked_fill, "scores.masked", {p, keys}, attributes({{"value", -1e9}}));
  p = w.dropout("attention.dropout", w.apply(OpType::softmax, "softmax", {p}), kDropout);
  const TensorId context = w.apply(OpType::matmul, "context", {p, parts[2]});
  const TensorId y = w.dropout("output.dropout", w.linear("output", context, kWidth, false), kDropout);
  return w.layer_norm("attention.norm", w.apply(OpType::add, "attention.add", {x, y}));
}

TensorId feed_forward(GraphWriter& w, TensorId x) {
  TensorId y = w.apply(OpType::relu, "relu", {conv_over_time(w, "conv1", x, kInner, 3)});
  y = w.dropout("conv.dropout", conv(w, "conv2", y, kWidth, 3, {.bias = true}), kDropout);
  y = w.transpose("steps", y, {0, 2, 1});
  return w.layer_norm("conv.norm", w.apply(OpType::add, "conv.add", {x, y}));
}

/// `mask` is true behind the end, `kept` is its complement as [B, T, 1].
struct Lengths {
  TensorId mask;
  TensorId kept;
};

Lengths lengths_of(GraphWriter& w, const std::string& name, Dim batch, Dim steps) {
  return {w.input(name + ".mask", {batch, steps}, DataType::boolean), w.input(name + ".kept", {batch, steps, 1})};
}

TensorId transformer(GraphWriter& w, const std::string& name, TensorId x, const Lengths& lengths) {
  w.scope(name + ".positions");
  const Dim steps = w.dim(x, 1);
  const TensorId angles =
      w.apply(OpType::matmul, "angles",
              {w.fill("steps", {steps, 1}, DataType::fp32), w.buffer(name + ".frequencies", {1, kWidth / 2})});
  const TensorId positions =
      concat(w, "both", {w.apply(OpType::sin, "sin", {angles}), w.apply(OpType::cos, "cos", {angles})});
  const TensorId cut = w.apply(OpType::mul, "masked", {positions, lengths.kept});
  x = w.dropout("dropout", w.apply(OpType::add, "add", {x, cut}), kDropout);
  for (Dim i = 0; i < kLayers; ++i) {
    w.scope(name + "." + std::to_string(i));
    x = w.apply(OpType::mul, "attention.masked", {self_attention(w, x, lengths.mask), lengths.kept});
    x = w.apply(OpType::mul, "masked", {feed_forward(w, x), lengths.kept});
  }
  return x;
}

/// Two convolutions with norms, then one number per character: [B, S, 1].
TensorId predictor(GraphWriter& w, const std::string& name, TensorId x, TensorId kept) {
  w.scope(name);
  x = w.apply(OpType::mul, "in", {x, kept});
  for (Dim i = 1; i <= 2; ++i) {
    const TensorId y =
        w.apply(OpType::relu, numbered("relu", i), {conv_over_time(w, numbered("conv", i), x, kPredictor, 3)});
    const TensorId steps = w.contiguous(numbered("steps.packed", i), w.transpose(numbered("steps", i), y, {0, 2, 1}));
    x = w.dropout(numbered("dropout", i), w.layer_norm(numbered("norm", i), steps), kDropout);
  }
  return w.apply(OpType::mul, "out", {w.linear("fc", x, 1, true), kept});
}

/// A predicted (in training: known) curve over the characters, embedded and added to them.
TensorId add_curve(GraphWriter& w, const std::string& name, TensorId x, TensorId curve) {
  w.scope(name + ".embedding");
  const TensorId row = w.reshape("row", curve, {w.dim(x, 0), 1, w.dim(x, 1)});
  const TensorId y = conv(w, "conv", row, kWidth, 3, {.bias = true});
  return w.apply(OpType::add, "add", {x, w.transpose("steps", y, {0, 2, 1})});
}

/// Each character repeated over its frames: a product with a matrix of zeros and ones.
TensorId repeat_over_frames(GraphWriter& w, TensorId x, TensorId durations, Dim frames) {
  w.scope("frames");
  const Dim batch = w.dim(x, 0);
  const Dim characters = w.dim(x, 1);
  const TensorId ends = w.reshape("ends", w.apply(OpType::cumsum, "cumsum", {durations}), {batch, 1, characters});
  const TensorId starts =
      w.apply(OpType::sub, "starts", {ends, w.reshape("durations", durations, {batch, 1, characters})});
  const TensorId at = w.fill("positions", {1, frames, 1}, DataType::fp32);
  const TensorId after = w.apply(OpType::compare, "after", {at, starts}, attributes({{"relation", "ge"}}));
  const TensorId before = w.apply(OpType::compare, "before", {at, ends}, attributes({{"relation", "lt"}}));
  const TensorId within = w.apply(OpType::mul, "within", {after, before});
  const TensorId ones = w.apply(OpType::cast, "ones", {within}, attributes({{"to", std::string("fp32")}}));
  return w.apply(OpType::matmul, "repeat", {ones, x});
}

/// Log probability of each frame and character belonging together, from the distance of their codes [Badlani22], and
/// its losses: the sum over all monotonic paths, and closeness to the best one (which the host searches).
TensorId aligner_loss(GraphWriter& w, TensorId text, TensorId mel, TensorId mask) {
  w.scope("aligner");
  const Dim batch = w.dim(text, 0);
  const Dim characters = w.dim(text, 1);
  const Dim frames = w.dim(mel, 2);
  TensorId keys = w.apply(OpType::relu, "key.relu", {conv_over_time(w, "key.conv1", text, 2 * kWidth, 3)});
  keys = conv(w, "key.conv2", keys, kMelChannels, 1, {.bias = true});
  TensorId queries =
      w.apply(OpType::relu, "query.relu1", {conv(w, "query.conv1", mel, 2 * kMelChannels, 3, {.bias = true})});
  queries = w.apply(OpType::relu, "query.relu2", {conv(w, "query.conv2", queries, kMelChannels, 1, {.bias = true})});
  queries = conv(w, "query.conv3", queries, kMelChannels, 1, {.bias = true});
  const TensorId apart = w.apply(OpType::sub, "apart",
                                 {w.reshape("query.view", queries, {batch, kMelChannels, frames, 1}),
                                  w.reshape("key.view", keys, {batch, kMelChannels, 1, characters})});
  TensorId score = w.apply(OpType::reduce_sum, "distance", {w.scalar(OpType::pow_scalar, "square", apart, 2)},
                           attributes({{"axes", Shape{1}}}));
  score = w.scalar(OpType::mul_scalar, "score", score, -0.0005);
  const TensorId prior = w.input("attention.prior", {batch, frames, characters});
  score = w.apply(OpType::add, "with_prior", {w.apply(OpType::log_softmax, "log_softmax", {score}), prior});
  const TensorId keys_mask = w.reshape("mask.keys", mask, {batch, 1, characters});
  const TensorId masked = w.apply(OpType::masked_fill, "masked", {score, keys_mask}, attributes({{"value", -1e9}}));
  const TensorId soft = w.apply(OpType::softmax, "softmax", {masked});
  w.apply(OpType::device_to_host, "to_search", {soft});
  const TensorId hard =
      w.apply(OpType::host_to_device, "found", {w.input("attention.path", {batch, frames, characters})});
  w.scope("aligner.loss");
  const TensorId blank = w.apply(OpType::pad, "blank", {score}, attributes({{"pads", Shape{0, 0, 1, 0, 0, 0}}}));
  const TensorId by_time = w.apply(OpType::log_softmax, "log_softmax", {w.transpose("time_first", blank, {1, 0, 2})});
  const TensorId labels = w.input("attention.labels", {batch, characters}, DataType::int64);
  const TensorId paths = w.apply(OpType::ctc_loss, "paths", {by_time, labels});
  const TensorId chosen = w.apply(OpType::mul, "chosen", {w.apply(OpType::log, "log", {soft}), hard});
  return w.apply(OpType::sub, "total", {paths, w.apply(OpType::reduce_mean, "binary", {chosen})});
}

/// What the network predicts beside the frames, and in training what it should have.
struct Curve {
  std::string name;
  TensorId predicted;
  TensorId known;
};

void loss(GraphWriter& w, TensorId frames, const std::vector<Curve>& curves, TensorId alignment) {
  w.scope("loss");
  TensorId total = w.apply(OpType::mse_loss, "mel", {frames, w.input("mel", w.shape(frames))});
  for (const Curve& curve : curves) {
    const TensorId error = w.apply(OpType::mse_loss, curve.name, {curve.predicted, curve.known});
    total = w.apply(OpType::add, "with_" + curve.name, {total, error});
  }
  add_loss(w, w.apply(OpType::add, "total", {total, alignment}));
}

}  // namespace

TensorId fastpitch(GraphWriter& w, const LengthSizes& sizes, Dim characters) {
  const bool training = sizes.training;
  const TensorId ids = w.input("text", {sizes.batch, characters}, DataType::int64);
  const Lengths said = lengths_of(w, "text", sizes.batch, characters);
  w.scope("encoder");
  const TensorId embedded = w.embedding("embedding", ids, w.parameter("embedding.weight", {kCharacters, kWidth}));
  const TensorId encoded = transformer(w, "encoder", embedded, said);
  const Shape per_character{sizes.batch, characters, 1};
  TensorId alignment = 0;
  if (training) {
    const TensorId mel = w.input("mel.channels", {sizes.batch, kMelChannels, sizes.length});
    alignment = aligner_loss(w, embedded, mel, said.mask);
  }
  const TensorId log_durations = predictor(w, "durations", encoded, said.kept);
  std::vector<Curve> curves;
  if (training) curves.push_back({"durations", log_durations, w.input("durations.log", per_character)});
  TensorId x = encoded;
  for (const std::string curve : {"pitch", "energy"}) {
    const TensorId predicted = predictor(w, curve, x, said.kept);
    const TensorId known = training ? w.input(curve, per_character) : predicted;
    if (training) curves.push_back({curve, predicted, known});
    x = add_curve(w, curve, x, known);
  }
  w.scope("durations.known");
  const Shape flat{sizes.batch, characters};
  const TensorId durations =
      training ? w.input("durations", flat) : w.reshape("view", w.apply(OpType::exp, "exp", {log_durations}), flat);
  x = repeat_over_frames(w, x, durations, sizes.length);
  x = transformer(w, "decoder", x, lengths_of(w, "frames", sizes.batch, sizes.length));
  w.scope("projection");
  const TensorId out = w.linear("linear", x, kMelChannels, true);
  if (training) loss(w, out, curves, alignment);
  return out;
}

void build_fastpitch(const BuildOptions& options, Workload& workload) {
  const LengthSizes sizes = resolve_length(options, kMeanClipFrames, "mel frames", workload, {"text"});
  GraphWriter w(workload.graph, workload.name, sizes.training);
  finish(workload, fastpitch(w, sizes, resolve_dim(options, "text", kMeanClipCharacters)));
}

}  // namespace voltaic::workloads
