// SPDX-License-Identifier: MIT
// wav2vec 2.0 as it is tuned to transcribe: the whole network trains, connectionist temporal classification as its
// loss.
#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/bert_encoder.hpp"
#include "workloads/language.hpp"
#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kSecond = 16000;       // samples of audio
constexpr Dim kReceptive = 400;      // samples that one frame sees
constexpr Dim kFramesPerLetter = 4;  // of transcribed speech, about
constexpr Dim kFeatures = 512;
constexpr Dim kPlaceKernel = 128;
constexpr Dim kPlaceGroups = 16;
constexpr std::array<std::array<Dim, 2>, 7> kConvolutions{
    {{10, 5}, {3, 2}, {3, 2}, {3, 2}, {3, 2}, {2, 2}, {2, 2}}};  // kernel, stride

class Wav2Vec2 {
 public:
  Wav2Vec2(const Wav2Vec2Config& config, const TokenSizes& sizes, Workload& workload)
      : c_(config), s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.training) {
    blocks_.layers = c_.layers;
    blocks_.hidden = c_.hidden;
    blocks_.heads = c_.heads;
    blocks_.ffn = c_.ffn;
  }

  void build() {
    TensorId x = w_.input("audio", {s_.batch, 1, s_.prompt});
    x = projected(features(x));
    w_.scope("encoder");
    x = w_.layer_norm("norm", w_.apply(OpType::add, "add_places", {x, places(x)}));
    x = BertEncoder(blocks_, s_, w_, "").blocks(w_.dropout("dropout", x, kDropout));
    w_.scope("lm_head");
    const TensorId logits = w_.linear("dense", w_.dropout("dropout", x, kDropout), c_.letters, true);
    if (s_.training) loss(logits);
    finish(workload_, logits);
  }

 private:
  static constexpr double kDropout = 0.1;

  TensorId features(TensorId x) {
    w_.scope("feature_extractor");
    for (std::size_t i = 0; i < kConvolutions.size(); ++i) {
      const auto [kernel, stride] = kConvolutions.at(i);
      const std::string number = std::to_string(i);
      x = conv(w_, "conv" + number, x, kFeatures, kernel, {.stride = stride, .padding = 0});
      if (i == 0) x = group_norm(w_, "norm" + number, x, kFeatures);
      x = w_.apply(OpType::gelu, "gelu" + number, {x});
    }
    return x;
  }

  /// [batch, features, frames] -> [batch, frames, hidden]; in training masked spans get a learned vector.
  TensorId projected(TensorId x) {
    w_.scope("feature_projection");
    const TensorId rows = w_.transpose("frames", x, {0, 2, 1});
    const TensorId y = w_.linear("projection", w_.layer_norm("norm", rows), c_.hidden, true);
    const TensorId vector = w_.parameter("masked_spec_embed", {c_.hidden});
    if (!s_.training) return y;
    const TensorId mask = w_.input("masked_frames", {s_.batch, w_.dim(y, 1), 1}, DataType::boolean);
    return w_.apply(OpType::where, "masked", {mask, vector, y});
  }

  /// Relative places come from a wide grouped convolution with normalised weights.
  TensorId places(TensorId x) {
    w_.scope("encoder.pos_conv");
    const TensorId v = w_.parameter("weight_v", {c_.hidden, c_.hidden / kPlaceGroups, kPlaceKernel});
    const TensorId g = w_.parameter("weight_g", {1, 1, kPlaceKernel});
    const TensorId squares = w_.apply(OpType::reduce_sum, "norm.sum", {w_.apply(OpType::square, "norm.square", {v})},
                                      attributes({{"axes", Shape{0, 1}}, {"keepdims", 1}}));
    const TensorId scale = w_.apply(OpType::div, "scale", {g, w_.apply(OpType::sqrt, "norm", {squares})});
    const TensorId weight = w_.apply(OpType::mul, "weight", {v, scale});
    const TensorId channels = w_.transpose("channels", x, {0, 2, 1});
    const TensorId y = w_.apply(OpType::conv1d, "conv", {channels, weight, w_.parameter("bias", {c_.hidden})},
                                attributes({{"groups", kPlaceGroups}, {"padding", kPlaceKernel / 2}}));
    const TensorId same = w_.slice("same_length", y, 2, 0, w_.dim(x, 1));
    const TensorId act = w_.apply(OpType::gelu, "gelu", {same});
    w_.scope("encoder");
    return w_.transpose("places", act, {0, 2, 1});
  }

  void loss(TensorId logits) {
    w_.scope("loss");
    const TensorId scores = w_.apply(OpType::log_softmax, "log_softmax", {logits});
    const TensorId by_time = w_.transpose("by_time", scores, {1, 0, 2});
    const Dim letters = std::max<Dim>(1, w_.dim(logits, 1) / kFramesPerLetter);
    const TensorId labels = w_.input("labels", {s_.batch, letters}, DataType::int64);
    w_.graph().loss = w_.apply(OpType::ctc_loss, "ctc", {by_time, labels});
  }

  const Wav2Vec2Config& c_;
  const TokenSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  BertConfig blocks_;
};

}  // namespace

void build_wav2vec2(const Wav2Vec2Config& config, const BuildOptions& options, Workload& workload) {
  const LengthSizes length = resolve_length(options, 10 * kSecond, "samples of audio", workload);
  if (length.length < kReceptive) {
    throw ConfigError(
        workload.name, "",
        "expected --seq of at least the 400 samples that a frame sees, got " + std::to_string(length.length));
  }
  TokenSizes sizes;
  sizes.training = length.training;
  sizes.flash = options.attention == AttentionForm::flash;
  sizes.batch = length.batch;
  sizes.prompt = length.length;
  Wav2Vec2(config, sizes, workload).build();
}

}  // namespace voltaic::workloads
