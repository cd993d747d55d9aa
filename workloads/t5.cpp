// SPDX-License-Identifier: MIT
// T5 and Switch Transformers: encoder and decoder with relative position biases; every n-th Switch layer is a mixture
// of experts with one expert per token and a fixed capacity. Simplification: the position buckets count as one
// embedding lookup; the experts of a layer run as one grouped product. Attention stays unfused whatever is asked: the
// position bias has no flash kernel.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

/// Queries and keys of one use of attention.
struct Span {
  Dim queries = 1;
  Dim keys = 1;
};

class T5 {
 public:
  T5(const T5Config& config, const TokenSizes& sizes, Dim decoder_tokens, Workload& workload)
      : c_(config),
        s_(sizes),
        decoder_tokens_(decoder_tokens),
        workload_(workload),
        w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    table_ = w_.parameter("shared.weight", {c_.vocab, c_.hidden});
    TensorId encoded = 0;
    if (!s_.decode()) encoded = encoder();
    TensorId x = decoder(encoded);
    w_.scope("lm_head");
    x = tokens_for_logits(w_, s_, x);
    if (c_.tied_embeddings)
      x = w_.scalar(OpType::mul_scalar, "scale", x, 1 / std::sqrt(static_cast<double>(c_.hidden)));
    const TensorId logits =
        c_.tied_embeddings ? w_.apply(OpType::linear, "dense", {x, table_}) : w_.linear("dense", x, c_.vocab, false);
    if (s_.training) loss(logits);
    if (s_.decode()) account_for_encoder();
    finish(workload_, logits);
    report_cache(workload_, s_, c_.decoder_layers, c_.heads, c_.head_dim);
    // A sample's cache also holds the keys and values of the encoded prompt.
    if (s_.phase != RunPhase::whole) workload_.kv_cache_tokens = s_.batch * (cached_tokens() + s_.prompt);
    workload_.parameters_active_per_token -= idle_parameters();
  }

 private:
  Dim inner() const { return c_.heads * c_.head_dim; }
  Dim cached_tokens() const { return s_.decode() ? s_.context : decoder_tokens_; }

  TensorId embed(const char* input, Dim tokens) {
    const TensorId ids = w_.input(input, {s_.batch, tokens}, DataType::int64);
    return w_.dropout("dropout", w_.embedding("tokens", ids, table_), c_.dropout);
  }

  TensorId encoder() {
    w_.scope("encoder.embed");
    const Span span{s_.prompt, s_.prompt};
    TensorId x = embed("input_ids", s_.prompt);
    const TensorId bias = position_bias(span);
    for (Dim i = 0; i < c_.encoder_layers; ++i) {
      w_.scope("encoder.block." + std::to_string(i) + ".attention");
      x = self_attention(i, x, bias, false);
      w_.scope("encoder.block." + std::to_string(i) + ".mlp");
      x = feed_forward(x, sparse(i, c_.encoder_step));
    }
    w_.scope("encoder");
    return w_.dropout("dropout", w_.rms_norm("final_norm", x), c_.dropout);
  }

  TensorId decoder(TensorId encoded) {
    w_.scope("decoder.embed");
    const Span span{decoder_tokens_, cached_tokens()};
    TensorId x = embed("decoder_input_ids", decoder_tokens_);
    const TensorId bias = position_bias(span);
    const TensorId cross_bias = cross_mask();
    for (Dim i = 0; i < c_.decoder_layers; ++i) {
      const std::string block = "decoder.block." + std::to_string(i);
      w_.scope(block + ".attention");
      x = self_attention(i, x, bias, true);
      w_.scope(block + ".cross_attention");
      x = cross_attention(i, x, encoded, cross_bias);
      w_.scope(block + ".mlp");
      x = feed_forward(x, sparse(i, c_.decoder_step));
    }
    w_.scope("decoder");
    return w_.dropout("dropout", w_.rms_norm("final_norm", x), c_.dropout);
  }

  /// Bias per head from the bucket of the distance, plus the mask: [b, h, q, k], shared by all layers of a stack.
  TensorId position_bias(const Span& span) {
    const TensorId buckets = w_.fill("position.buckets", {span.queries, span.keys}, DataType::int64);
    w_.host_calls(12);
    const TensorId table = w_.parameter("relative_attention_bias.weight", {c_.buckets, c_.heads});
    const TensorId values = w_.transpose("position.heads", w_.embedding("position.values", buckets, table), {2, 0, 1});
    const TensorId four = w_.reshape("position.view", values, {1, c_.heads, span.queries, span.keys});
    const TensorId mask = w_.fill("position.mask", {s_.batch, 1, 1, span.keys}, DataType::fp32);
    return w_.apply(OpType::add, "position.bias", {four, mask});
  }

  /// Cross attention has a zero bias under the mask of the encoder.
  TensorId cross_mask() {
    const TensorId zeros = w_.fill("cross.zeros", {1, c_.heads, decoder_tokens_, s_.prompt}, DataType::fp32);
    const TensorId mask = w_.fill("cross.mask", {s_.batch, 1, 1, s_.prompt}, DataType::fp32);
    return w_.apply(OpType::add, "cross.bias", {zeros, mask});
  }

  TensorId attend(TensorId q, TensorId k, TensorId v, TensorId bias, bool packed) {
    TensorId p = w_.apply(OpType::add, "biased", {attention_scores(w_, q, k, false, packed), bias});
    p = w_.dropout("weights_dropout", w_.apply(OpType::softmax, "softmax", {p}), c_.dropout);
    return merge_heads(w_, "merge", attention_context(w_, p, v, packed), false);
  }

  TensorId residual(TensorId x, TensorId y) {
    return w_.apply(OpType::add, "add", {x, w_.dropout("dropout", y, c_.dropout)});
  }

  TensorId self_attention(Dim layer, TensorId x, TensorId bias, bool decoding) {
    const TensorId normed = w_.rms_norm("norm", x);
    const TensorId q = split_heads(w_, "q", w_.linear("q", normed, inner(), false), c_.heads);
    TensorId k = split_heads(w_, "k", w_.linear("k", normed, inner(), false), c_.heads);
    TensorId v = split_heads(w_, "v", w_.linear("v", normed, inner(), false), c_.heads);
    if (decoding) std::tie(k, v) = through_cache(w_, s_, layer, k, v);
    const TensorId y = attend(q, k, v, bias, decoding && s_.decode());
    return residual(x, w_.linear("o", y, c_.hidden, false));
  }

  TensorId cross_attention(Dim layer, TensorId x, TensorId encoded, TensorId bias) {
    const TensorId q = split_heads(w_, "q", w_.linear("q", w_.rms_norm("norm", x), inner(), false), c_.heads);
    if (s_.decode()) {
      const Shape shape{s_.batch, c_.heads, s_.prompt, c_.head_dim};
      const std::string number = std::to_string(layer);
      const TensorId k = w_.buffer("kv_cache." + number + ".cross_key", shape);
      const TensorId v = w_.buffer("kv_cache." + number + ".cross_value", shape);
      return residual(x, w_.linear("o", attend(q, k, v, bias, true), c_.hidden, false));
    }
    const TensorId k = split_heads(w_, "k", w_.linear("k", encoded, inner(), false), c_.heads);
    const TensorId v = split_heads(w_, "v", w_.linear("v", encoded, inner(), false), c_.heads);
    return residual(x, w_.linear("o", attend(q, k, v, bias, false), c_.hidden, false));
  }

  /// Switch places its experts in the second layer of each group.
  bool sparse(Dim layer, Dim step) const { return c_.experts > 0 && step > 0 && (step == 1 || layer % step == 1); }

  TensorId feed_forward(TensorId x, bool with_experts) {
    const TensorId normed = w_.rms_norm("norm", x);
    return residual(x, with_experts ? experts(normed) : dense(normed));
  }

  TensorId dense(TensorId x) {
    TensorId y = w_.activation("act", w_.linear(c_.gated ? "wi_0" : "wi", x, c_.ffn, false), c_.activation);
    if (c_.gated) y = w_.apply(OpType::mul, "gated", {y, w_.linear("wi_1", x, c_.ffn, false)});
    return w_.linear("wo", w_.dropout("inner_dropout", y, c_.dropout), c_.hidden, false);
  }

  TensorId experts(TensorId x) {
    const Dim tokens = w_.dim(x, 0) * w_.dim(x, 1);
    const Dim capacity = s_.batch * std::min(c_.capacity, w_.dim(x, 1));
    const TensorId rows = w_.reshape("rows", x, {tokens, c_.hidden});
    const TensorId routing = w_.apply(OpType::softmax, "routing", {w_.linear("router", rows, c_.experts, false)});
    const auto top = w_.apply_multiple(OpType::topk, "top1", {routing}, attributes({{"k", 1}}), 2);
    const TensorId sent = w_.apply(OpType::moe_dispatch, "dispatch", {rows, top[1]},
                                   attributes({{"capacity", capacity}, {"experts", c_.experts}}));
    const TensorId wi = w_.parameter("wi.weight", {c_.experts, c_.ffn, c_.hidden});
    const TensorId wo = w_.parameter("wo.weight", {c_.experts, c_.hidden, c_.ffn});
    TensorId y = w_.activation("act", w_.apply(OpType::grouped_linear, "wi", {sent, wi}), c_.activation);
    y = w_.apply(OpType::grouped_linear, "wo", {w_.dropout("inner_dropout", y, c_.dropout), wo});
    y = w_.apply(OpType::moe_combine, "combine", {y, top[1], top[0]});
    return w_.reshape("view", y, w_.shape(x));
  }

  void loss(TensorId logits) {
    w_.scope("loss");
    const Dim tokens = s_.batch * decoder_tokens_;
    const TensorId labels = w_.input("labels", {tokens}, DataType::int64);
    w_.graph().loss =
        w_.apply(OpType::cross_entropy, "cross_entropy", {w_.reshape("view", logits, {tokens, c_.vocab}), labels});
  }

  /// Decode does not run the encoder, nor the cross-attention keys; their weights lie in memory all the same.
  void account_for_encoder() {
    w_.scope("encoder.idle");
    w_.parameter("relative_attention_bias", {c_.buckets, c_.heads});
    w_.parameter("final_norm", {c_.hidden});
    w_.parameter("cross_attention", {c_.decoder_layers, 2, inner(), c_.hidden});
    w_.parameter("attention", {c_.encoder_layers, 4, inner(), c_.hidden});
    w_.parameter("norms", {c_.encoder_layers, 2, c_.hidden});
    const Dim mixtures = sparse_layers(c_.encoder_layers, c_.encoder_step);
    const Dim matrices = c_.gated ? 3 : 2;
    w_.parameter("mlp", {c_.encoder_layers - mixtures, matrices, c_.ffn, c_.hidden});
    if (mixtures == 0) return;
    w_.parameter("experts", {mixtures, matrices, c_.experts, c_.ffn, c_.hidden});
    w_.parameter("routers", {mixtures, c_.experts, c_.hidden});
  }

  Dim sparse_layers(Dim layers, Dim step) const {
    Dim count = 0;
    for (Dim i = 0; i < layers; ++i) count += sparse(i, step) ? 1 : 0;
    return count;
  }

  Dim idle_parameters() const {
    const Dim mixtures =
        sparse_layers(c_.encoder_layers, c_.encoder_step) + sparse_layers(c_.decoder_layers, c_.decoder_step);
    return mixtures == 0 ? 0 : mixtures * (c_.experts - 1) * 2 * c_.ffn * c_.hidden;
  }

  const T5Config& c_;
  const TokenSizes& s_;
  Dim decoder_tokens_;
  Workload& workload_;
  GraphWriter w_;
  TensorId table_ = 0;
};

}  // namespace

void build_t5(const T5Config& config, const BuildOptions& options, Workload& workload) {
  TokenSizes sizes = resolve_tokens(options, {.positions = 0, .learned_positions = false, .autoregressive = true},
                                    workload, {"decoder_seq"});
  const auto asked = options.dims.find("decoder_seq");
  Dim decoder_tokens = asked != options.dims.end() ? asked->second : sizes.prompt;
  if (sizes.phase != RunPhase::whole) decoder_tokens = 1;  // prefill encodes the prompt and starts the answer
  if (sizes.phase == RunPhase::prefill) sizes.seq = sizes.context = 1;
  if (sizes.flash)
    workload.assumptions.emplace_back("attention runs unfused: the relative position bias has no flash kernel");
  T5(config, sizes, decoder_tokens, workload).build();
}

}  // namespace voltaic::workloads
