// SPDX-License-Identifier: MIT
// GNMT [Wu16] in its second version: four LSTM layers on each side, the first of the encoder in both directions, the
// first of the decoder with additive attention [Bahdanau15] that every later one reads, residual connections.
// Tokens come first in memory. All answers of a sample share its length: no packing of shorter ones.
#include <fmt/format.h>

#include <array>

#include "workloads/attention_block.hpp"
#include "workloads/translation.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kHidden = 1024;
constexpr Dim kLayers = 4;     // on each side
constexpr Dim kVocab = 32320;  // 32,317 byte pairs, padded to eights
constexpr double kDropout = 0.2;
constexpr double kSmoothing = 0.1;
constexpr Dim kSentence = 32;  // tokens of a WMT sentence, about

class Gnmt {
 public:
  Gnmt(const PairSizes& sizes, Workload& workload)
      : s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.tokens.training) {}

  void build() {
    table_ = w_.parameter("embedding.weight", {kVocab, kHidden});
    const TensorId encoded = s_.tokens.decode() ? account_for_encoder() : beams(encoder());
    const TensorId x = decoder(encoded);
    w_.scope("classifier");
    const TensorId logits = w_.linear("dense", x, kVocab, true);
    if (s_.tokens.training) {
      w_.scope("loss");
      smoothed_loss(w_, w_.reshape("view", logits, {s_.target * s_.rows(), kVocab}), kSmoothing);
    }
    finish(workload_, s_.tokens.phase == RunPhase::whole ? logits : choose_tokens(w_, s_, by_answer(logits)));
    workload_.context = s_.cached();
    workload_.kv_cache_elements_per_token = kHidden;  // the encoded source alone; states are as small as one token
    if (s_.tokens.phase != RunPhase::whole) workload_.kv_cache_tokens = s_.rows() * s_.source;
  }

 private:
  /// [1, answers, classes] -> [answers, 1, classes].
  TensorId by_answer(TensorId logits) { return w_.reshape("answers", logits, {s_.rows(), 1, kVocab}); }

  TensorId embed(const char* input, Dim tokens, Dim rows) {
    return w_.embedding("embedding", w_.input(input, {tokens, rows}, DataType::int64), table_);
  }

  /// One layer, in one or both directions, over x [tokens, samples, in].
  TensorId lstm(const std::string& name, TensorId x, bool both = false) {
    std::vector<TensorId> inputs{x};
    const Dim in = w_.dim(x, -1);
    for (const char* direction : {"", "_reverse"}) {
      if (*direction != '\0' && !both) break;
      inputs.push_back(w_.parameter(fmt::format("{}.weight_ih{}", name, direction), {4 * kHidden, in}));
      inputs.push_back(w_.parameter(fmt::format("{}.weight_hh{}", name, direction), {4 * kHidden, kHidden}));
      inputs.push_back(w_.parameter(fmt::format("{}.bias_ih{}", name, direction), {4 * kHidden}));
      inputs.push_back(w_.parameter(fmt::format("{}.bias_hh{}", name, direction), {4 * kHidden}));
    }
    graph::Attributes attrs = attributes({{"hidden", kHidden}});
    if (both) attrs.set("bidirectional", std::int64_t{1});
    return w_.apply_all(OpType::lstm, name, std::move(inputs), std::move(attrs));
  }

  TensorId encoder() {
    w_.scope("encoder");
    TensorId x = w_.dropout("dropout0", embed("source_ids", s_.source, s_.tokens.batch), kDropout);
    x = lstm("rnn0", x, true);
    x = lstm("rnn1", w_.dropout("dropout1", x, kDropout));
    for (Dim i = 2; i < kLayers; ++i) {
      const std::string number = std::to_string(i);
      const TensorId y = lstm("rnn" + number, w_.dropout("dropout" + number, x, kDropout));
      x = w_.apply(OpType::add, "residual" + number, {y, x});
    }
    return x;
  }

  /// The encoded source once for each answer.
  TensorId beams(TensorId encoded) {
    if (s_.beam == 1) return encoded;
    const TensorId four = w_.reshape("beams.grid", encoded, {s_.source, s_.tokens.batch, 1, kHidden});
    const TensorId wide = w_.apply(OpType::expand, "beams.expand", {four},
                                   attributes({{"shape", Shape{s_.source, s_.tokens.batch, s_.beam, kHidden}}}));
    return w_.reshape("beams.view", w_.contiguous("beams", wide), {s_.source, s_.rows(), kHidden});
  }

  TensorId decoder(TensorId encoded) {
    w_.scope("decoder");
    TensorId x = w_.dropout("dropout0", embed("target_ids", s_.target, s_.rows()), kDropout);
    x = lstm("rnn0", x);
    w_.scope("decoder.attention");
    const TensorId context = attention(x, encoded);
    w_.scope("decoder");
    for (Dim i = 1; i < kLayers; ++i) {
      const std::string number = std::to_string(i);
      const TensorId joined = w_.apply(OpType::concat, "concat" + number, {x, context}, attributes({{"axis", 2}}));
      const TensorId y = lstm("rnn" + number, w_.dropout("dropout" + number, joined, kDropout));
      x = i == 1 ? y : w_.apply(OpType::add, "residual" + number, {y, x});
    }
    return x;
  }

  /// v . tanh(W q + U k + b), v normalised; the keys are projected anew in every step, as the reference does.
  TensorId attention(TensorId queries, TensorId encoded) {
    const Dim rows = s_.rows();
    const TensorId q_in = w_.transpose("queries", queries, {1, 0, 2});
    const TensorId keys = w_.transpose("keys", encoded, {1, 0, 2});
    const TensorId q = w_.reshape("q.view", w_.linear("linear_q", q_in, kHidden, false), {rows, s_.target, 1, kHidden});
    const TensorId k = w_.reshape("k.view", w_.linear("linear_k", keys, kHidden, false), {rows, 1, s_.source, kHidden});
    const TensorId sum = w_.apply(OpType::add, "sum", {q, k});
    const TensorId biased = w_.apply(OpType::add, "biased", {sum, w_.parameter("normalize_bias", {kHidden})});
    const TensorId vector = normalised_vector();
    const TensorId scores = w_.apply(OpType::linear, "scores", {w_.apply(OpType::tanh, "tanh", {biased}), vector});
    const TensorId view = w_.reshape("scores.view", scores, {rows, s_.target, s_.source});
    const TensorId padding = w_.buffer("source_padding", {rows, 1, s_.source}, DataType::boolean);
    const TensorId masked = w_.apply(OpType::masked_fill, "masked", {view, padding}, attributes({{"value", -65504.0}}));
    const TensorId shares = w_.apply(OpType::softmax, "softmax", {masked});
    const TensorId context = w_.apply(OpType::matmul, "context", {shares, keys});
    return w_.transpose("context.tokens", context, {1, 0, 2});
  }

  TensorId normalised_vector() {
    const TensorId v = w_.parameter("linear_att", {1, kHidden});
    const TensorId square = w_.apply(OpType::reduce_sum, "norm.sum", {w_.apply(OpType::square, "norm.square", {v})});
    const TensorId unit = w_.apply(OpType::div, "unit", {v, w_.apply(OpType::sqrt, "norm", {square})});
    return w_.apply(OpType::mul, "vector", {unit, w_.parameter("normalize_scalar", {1})});
  }

  /// Decode reads what the encoder wrote, and keeps the weights that it does not use.
  TensorId account_for_encoder() {
    w_.scope("encoder.idle");
    constexpr Dim kGates = 4 * kHidden;
    w_.parameter("rnn0", {2, kGates, 2 * kHidden + 2});
    w_.parameter("rnn1", {kGates, 3 * kHidden + 2});
    w_.parameter("rnn2", {kLayers - 2, kGates, 2 * kHidden + 2});
    return w_.buffer("kv_cache.encoded_source", {s_.source, s_.rows(), kHidden});
  }

  const PairSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  TensorId table_ = 0;
};

}  // namespace

void build_gnmt(const BuildOptions& options, Workload& workload) {
  const PairSizes sizes = resolve_pair(
      options, {.positions = 0, .learned_positions = false, .autoregressive = true, .usual = kSentence}, workload);
  if (sizes.tokens.flash) workload.assumptions.emplace_back("additive attention has no flash kernel: it runs unfused");
  Gnmt(sizes, workload).build();
}

}  // namespace voltaic::workloads
