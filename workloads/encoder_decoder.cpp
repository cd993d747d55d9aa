// SPDX-License-Identifier: MIT
// Encoder-decoder transformers with post-norm blocks: [Vaswani17] as fairseq runs it, BART [Lewis20].
// Simplification: samples come first in memory; the reference has tokens first, with as many copies. Beams are scored,
// their caches not reordered.
#include <algorithm>
#include <array>
#include <cmath>

#include "workloads/attention_block.hpp"
#include "workloads/translation.hpp"

namespace voltaic::workloads {
namespace {

class EncoderDecoder {
 public:
  EncoderDecoder(const EncoderDecoderConfig& config, const PairSizes& sizes, Workload& workload)
      : c_(config),
        s_(sizes),
        workload_(workload),
        w_(workload.graph, workload.name, sizes.tokens.training),
        flash_(sizes.tokens.flash) {}

  void build() {
    table_ = w_.parameter("embed_tokens.weight", {c_.vocab, c_.hidden});
    TensorId encoded = 0;
    if (!s_.tokens.decode()) encoded = encoder();
    const TensorId x = decoder(encoded);
    w_.scope("output");
    TensorId logits = w_.apply(OpType::linear, "dense", {x, table_});
    if (!c_.scaled_embeddings)  // BART adds a bias that it never trains
      logits = w_.apply(OpType::add, "biased", {logits, w_.buffer("final_logits_bias", {1, c_.vocab})});
    if (s_.tokens.training) loss(logits);
    if (s_.tokens.decode()) account_for_encoder();
    finish(workload_, s_.tokens.phase == RunPhase::whole ? logits : choose_tokens(w_, s_, logits));
    report_cache(workload_, s_.tokens, c_.layers, c_.heads, head_dim());
    workload_.context = s_.cached();
    // Each answer caches itself; the encoded source is cached once for all of them.
    if (s_.tokens.phase != RunPhase::whole)
      workload_.kv_cache_tokens = s_.rows() * s_.cached() + s_.tokens.batch * s_.source;
  }

 private:
  Dim head_dim() const { return c_.hidden / c_.heads; }

  TensorId embed(const char* input, Dim rows, Dim tokens) {
    const TensorId ids = w_.input(input, {rows, tokens}, DataType::int64);
    TensorId x = w_.embedding("tokens", ids, table_);
    if (c_.scaled_embeddings) x = w_.scalar(OpType::mul_scalar, "scale", x, std::sqrt(static_cast<double>(c_.hidden)));
    if (c_.positions > 0) {
      const TensorId table = w_.parameter("embed_positions.weight", {c_.positions, c_.hidden});
      const TensorId places = w_.fill("positions", {1, tokens}, DataType::int64);
      x = w_.apply(OpType::add, "add_positions", {x, w_.embedding("position_values", places, table)});
    } else {
      x = w_.apply(OpType::add, "add_positions", {x, sinusoids(ids)});
    }
    if (c_.norm_embeddings) x = w_.layer_norm("norm", x);
    return w_.dropout("dropout", x, c_.dropout);
  }

  /// Places count the tokens that are no padding, then choose rows of a fixed table.
  TensorId sinusoids(TensorId ids) {
    const TensorId table = w_.buffer("sinusoids", {c_.longest + 2, c_.hidden});
    const TensorId real = w_.apply(OpType::compare_scalar, "positions.real", {ids},
                                   attributes({{"relation", std::string("ne")}, {"value", 1.0}}));
    const TensorId ones = w_.apply(OpType::cast, "positions.ones", {real}, attributes({{"to", std::string("int64")}}));
    const TensorId counted = w_.apply(OpType::cumsum, "positions.count", {ones}, attributes({{"axis", 1}}));
    const TensorId places = w_.apply(OpType::mul, "positions", {counted, ones});
    return w_.apply(OpType::gather, "position_values", {table, places});
  }

  TensorId encoder() {
    w_.scope("encoder.embed");
    TensorId x = embed("source_ids", s_.tokens.batch, s_.source);
    if (!flash_) source_mask_ = w_.buffer("source_padding", {s_.tokens.batch, 1, 1, s_.source}, DataType::boolean);
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i);
      w_.scope(layer + ".self_attn");
      x = residual(x, encoder_attention(x));
      w_.scope(layer + ".ffn");
      x = residual(x, feed_forward(x));
    }
    return x;
  }

  TensorId decoder(TensorId encoded) {
    w_.scope("decoder.embed");
    TensorId x = embed("target_ids", s_.rows(), s_.target);
    // The mask is added in place, which keeps the type of the scores: booleans widen nothing.
    if (!flash_ && s_.target > 1) causal_mask_ = w_.buffer("causal_mask", {s_.target, s_.target}, DataType::boolean);
    if (!flash_ && s_.tokens.decode())
      source_mask_ = w_.buffer("source_padding", {s_.tokens.batch, 1, 1, s_.source}, DataType::boolean);
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "decoder.layers." + std::to_string(i);
      w_.scope(layer + ".self_attn");
      x = residual(x, decoder_attention(i, x));
      w_.scope(layer + ".encoder_attn");
      x = residual(x, cross_attention(i, x, encoded));
      w_.scope(layer + ".ffn");
      x = residual(x, feed_forward(x));
    }
    return x;
  }

  TensorId residual(TensorId x, TensorId y) {
    return w_.layer_norm("norm", w_.apply(OpType::add, "add", {x, w_.dropout("dropout", y, c_.dropout)}));
  }

  TensorId feed_forward(TensorId x) {
    const TensorId y = w_.activation("activation", w_.linear("fc1", x, c_.ffn, true), c_.activation);
    return w_.linear("fc2", w_.dropout("activation_dropout", y, c_.activation_dropout), c_.hidden, true);
  }

  /// [b, s, hidden] of a projection as packed heads [b, heads, s, head_dim].
  TensorId packed_heads(const std::string& name, TensorId x) {
    return w_.contiguous(name + ".packed", split_heads(w_, name, x, c_.heads));
  }
  TensorId scaled(TensorId q) {
    return w_.scalar(OpType::mul_scalar, "q.scaled", q, 1 / std::sqrt(static_cast<double>(head_dim())));
  }

  /// Projections of one tensor, in one product or one each.
  template <std::size_t kCount>
  std::array<TensorId, kCount> projected(const std::array<const char*, kCount>& names, TensorId x) {
    std::array<TensorId, kCount> out{};
    if (c_.joint_projections) {
      const TensorId all = w_.linear(kCount == 3 ? "qkv_proj" : "kv_proj", x, kCount * c_.hidden, true);
      const auto parts =
          w_.apply_multiple(OpType::split, "split", {all}, attributes({{"sizes", Shape(kCount, c_.hidden)}}), kCount);
      std::copy(parts.begin(), parts.end(), out.begin());
      return out;
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      out.at(i) = w_.linear(std::string(names.at(i)) + "_proj", x, c_.hidden, true);
    }
    return out;
  }

  TensorId encoder_attention(TensorId x) {
    const auto [q, k, v] = projected<3>({"q", "k", "v"}, x);
    const TensorId heads = packed_heads("q", flash_ ? q : scaled(q));
    return attend(heads, packed_heads("k", k), packed_heads("v", v), false, source_mask_);
  }

  TensorId decoder_attention(Dim layer, TensorId x) {
    const auto [q, new_k, new_v] = projected<3>({"q", "k", "v"}, x);
    const TensorId heads = packed_heads("q", flash_ ? q : scaled(q));
    const auto [k, v] = through_cache(w_, s_.tokens, layer, packed_heads("k", new_k), packed_heads("v", new_v));
    return attend(heads, k, v, !s_.tokens.decode(), 0);
  }

  /// Answers of one sample are the rows of one product with its source.
  TensorId cross_attention(Dim layer, TensorId x, TensorId encoded) {
    const TensorId q = w_.linear("q_proj", x, c_.hidden, true);
    TensorId heads = packed_heads("q", flash_ ? q : scaled(q));
    TensorId k = 0;
    TensorId v = 0;
    if (s_.tokens.decode()) {
      const Shape shape{s_.tokens.batch, c_.heads, s_.source, head_dim()};
      const std::string number = "kv_cache." + std::to_string(layer);
      k = w_.buffer(number + ".cross_key", shape);
      v = w_.buffer(number + ".cross_value", shape);
    } else {
      const auto rows = projected<2>({"k", "v"}, encoded);
      k = packed_heads("k", rows[0]);
      v = packed_heads("v", rows[1]);
    }
    if (s_.beam > 1)
      heads = w_.reshape("q.beams", beams_inside(heads), {s_.tokens.batch, c_.heads, s_.beam, head_dim()});
    TensorId y = attend_heads(heads, k, v, false, source_mask_);
    if (s_.beam > 1) {
      y = w_.contiguous("beams.packed", w_.transpose("beams", y, {0, 2, 1, 3}));
      y = w_.reshape("beams.view", y, {s_.rows(), 1, c_.hidden});
    } else {
      y = merge_heads(w_, "merge", y, flash_);
    }
    return w_.linear("out_proj", y, c_.hidden, true);
  }

  /// [batch * beam, heads, 1, d] -> [batch, heads, beam, d].
  TensorId beams_inside(TensorId heads) {
    const TensorId five = w_.reshape("q.grid", heads, {s_.tokens.batch, s_.beam, c_.heads, head_dim()});
    return w_.contiguous("q.regrouped", w_.transpose("q.by_head", five, {0, 2, 1, 3}));
  }

  TensorId attend(TensorId q, TensorId k, TensorId v, bool causal, TensorId padding) {
    const TensorId y = merge_heads(w_, "merge", attend_heads(q, k, v, causal, padding), flash_);
    return w_.linear("out_proj", y, c_.hidden, true);
  }

  TensorId attend_heads(TensorId q, TensorId k, TensorId v, bool causal, TensorId padding) {
    if (flash_) return flash_attention(w_, q, k, v, causal);
    TensorId p = attention_scores(w_, q, k, true, true);
    if (causal && causal_mask_ != 0) p = w_.apply(OpType::add, "masked", {p, causal_mask_});
    if (padding != 0) p = w_.apply(OpType::masked_fill, "padding", {p, padding}, attributes({{"value", -3.4e38}}));
    p = w_.dropout("weights_dropout", w_.apply(OpType::softmax, "softmax", {p}), c_.attention_dropout);
    return attention_context(w_, p, v, true);
  }

  void loss(TensorId logits) {
    w_.scope("loss");
    const Dim tokens = s_.rows() * s_.target;
    const TensorId rows = w_.reshape("view", logits, {tokens, c_.vocab});
    if (c_.label_smoothing > 0) return smoothed_loss(w_, rows, c_.label_smoothing);
    const TensorId labels = w_.input("labels", {tokens}, DataType::int64);
    w_.graph().loss = w_.apply(OpType::cross_entropy, "cross_entropy", {rows, labels});
  }

  /// Decode does not run the encoder, nor the projections of its output; their weights lie in memory all the same.
  void account_for_encoder() {
    w_.scope("encoder.idle");
    const Dim square = c_.hidden * c_.hidden;
    if (c_.positions > 0) w_.parameter("embed_positions", {c_.positions, c_.hidden});
    if (c_.norm_embeddings) w_.parameter("embed_norm", {2, c_.hidden});
    w_.parameter("attention", {c_.layers, 4, square + c_.hidden});
    w_.parameter("ffn", {c_.layers, 2 * c_.ffn * c_.hidden + c_.ffn + c_.hidden});
    w_.parameter("norms", {c_.layers, 4, c_.hidden});
    w_.parameter("cross_attention", {c_.layers, 2, square + c_.hidden});
  }

  const EncoderDecoderConfig& c_;
  const PairSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  bool flash_;
  TensorId table_ = 0;
  TensorId source_mask_ = 0;
  TensorId causal_mask_ = 0;
};

}  // namespace

void build_encoder_decoder(const EncoderDecoderConfig& config, const BuildOptions& options, Workload& workload) {
  const PairSizes sizes = resolve_pair(options,
                                       {.positions = config.longest,
                                        .learned_positions = config.positions > 0,
                                        .autoregressive = true,
                                        .usual = config.usual},
                                       workload);
  EncoderDecoder(config, sizes, workload).build();
}

}  // namespace voltaic::workloads
