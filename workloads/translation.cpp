// SPDX-License-Identifier: MIT
// Translation and summarisation networks of the zoo, and what their builders share.
#include "workloads/translation.hpp"

#include <fmt/format.h>

#include "arch/units/error.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {

PairSizes resolve_pair(const BuildOptions& options, const TokenLimits& limits, Workload& workload) {
  PairSizes sizes;
  sizes.tokens = resolve_tokens(options, limits, workload, {"beam", "decoder_seq"});
  const bool phases = sizes.tokens.phase != RunPhase::whole;
  sizes.source = sizes.tokens.prompt;
  sizes.target = phases ? 1 : resolve_dim(options, "decoder_seq", sizes.source);
  sizes.beam = resolve_dim(options, "beam", 1);
  if (limits.learned_positions && sizes.target > limits.positions) {
    throw ConfigError(
        workload.name, "",
        fmt::format("expected --dim decoder_seq up to its {} positions, got {}", limits.positions, sizes.target));
  }
  if (!phases && sizes.beam > 1) {
    sizes.beam = 1;
    workload.warnings.emplace_back("--dim beam has no effect outside --phase prefill and decode");
  }
  if (phases && options.dims.contains("decoder_seq"))
    workload.warnings.emplace_back("--dim decoder_seq has no effect in --phase prefill and decode");
  if (sizes.tokens.phase == RunPhase::prefill) sizes.tokens.seq = sizes.tokens.context = 1;
  return sizes;
}

void smoothed_loss(GraphWriter& w, TensorId logits, double smoothing) {
  const Dim rows = w.dim(logits, 0);
  const Dim classes = w.dim(logits, 1);
  const TensorId scores = w.apply(OpType::log_softmax, "log_softmax", {logits});
  const TensorId flat = w.reshape("flat", scores, {rows * classes});
  const TensorId places = w.input("label_places", {rows}, DataType::int64);
  const TensorId label = w.apply(OpType::neg, "label", {w.apply(OpType::gather, "label_scores", {flat, places})});
  const TensorId every = w.apply(OpType::reduce_sum, "class_sum", {scores}, attributes({{"axes", Shape{1}}}));
  const TensorId even = w.apply(OpType::neg, "even", {every});
  const TensorId nll = w.apply(OpType::reduce_sum, "label_sum", {label});
  const TensorId smooth = w.apply(OpType::reduce_sum, "even_sum", {even});
  const TensorId sharp = w.scalar(OpType::mul_scalar, "label_share", nll, 1 - smoothing);
  const TensorId flat_share =
      w.scalar(OpType::mul_scalar, "even_share", smooth, smoothing / static_cast<double>(classes));
  w.graph().loss = w.apply(OpType::add, "sum", {sharp, flat_share});
}

TensorId choose_tokens(GraphWriter& w, const PairSizes& sizes, TensorId logits) {
  w.scope("choose");
  if (sizes.beam == 1) return w.apply(OpType::argmax, "argmax", {logits}, attributes({{"axis", -1}}));
  const Dim vocab = w.dim(logits, -1);
  const TensorId scores = w.apply(OpType::log_softmax, "log_softmax", {logits});
  const TensorId so_far = w.input("beam_scores", {sizes.rows(), 1, 1});
  const TensorId sum = w.apply(OpType::add, "scores", {scores, so_far});
  const TensorId rows = w.reshape("beams", sum, {sizes.tokens.batch, sizes.beam * vocab});
  return w.apply_multiple(OpType::topk, "topk", {rows}, attributes({{"k", sizes.beam}}), 2).front();
}

namespace {

constexpr Dim kSentence = 32;  // tokens of a WMT sentence, about

EncoderDecoderConfig transformer(Dim hidden, Dim ffn, Dim heads) {
  EncoderDecoderConfig c;
  c.layers = 6;
  c.hidden = hidden;
  c.ffn = ffn;
  c.heads = heads;
  c.vocab = 33708;  // joint byte-pair vocabulary of WMT14 English-German
  c.usual = kSentence;
  c.label_smoothing = 0.1;
  return c;
}

EncoderDecoderConfig bart(Dim layers, Dim hidden, Dim heads) {
  EncoderDecoderConfig c;
  c.layers = layers;
  c.hidden = hidden;
  c.ffn = 4 * hidden;
  c.heads = heads;
  c.vocab = 50265;
  c.positions = 1026;  // 1024 and an offset of two
  c.attention_dropout = 0;
  c.activation = Activation::gelu;
  c.scaled_embeddings = false;
  c.norm_embeddings = true;
  c.joint_projections = false;
  return c;
}

void transformer_base(const BuildOptions& options, Workload& workload) {
  build_encoder_decoder(transformer(512, 2048, 8), options, workload);
}
void transformer_big(const BuildOptions& options, Workload& workload) {
  build_encoder_decoder(transformer(1024, 4096, 16), options, workload);
}
void bart_base(const BuildOptions& options, Workload& workload) {
  build_encoder_decoder(bart(6, 768, 12), options, workload);
}
void bart_large(const BuildOptions& options, Workload& workload) {
  build_encoder_decoder(bart(12, 1024, 16), options, workload);
}

constexpr ZooModel kModels[] = {
    {"transformer-base", "transformer", "Transformer base: 6 + 6 layers of width 512, WMT14 English-German",
     transformer_base},
    {"transformer-big", "transformer", "Transformer big: 6 + 6 layers of width 1024, WMT14 English-German",
     transformer_big},
    {"bart-base", "transformer", "BART base: 6 + 6 layers of width 768", bart_base},
    {"bart-large", "transformer", "BART large: 12 + 12 layers of width 1024", bart_large},
    {"gnmt", "gnmt", "GNMT v2: 4 + 4 LSTM layers of width 1024 with attention", build_gnmt},
};

}  // namespace

std::span<const ZooModel> translation_models() {
  return kModels;
}

}  // namespace voltaic::workloads
