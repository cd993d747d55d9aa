// SPDX-License-Identifier: MIT
// GPT-2 and the GPT-3 shapes as the eager framework runs them: Conv1D layers, `where` for the causal mask, tanh GELU
// written out in eight pointwise kernels.
#include <cmath>

#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

class Gpt2 {
 public:
  Gpt2(const Gpt2Config& config, const TokenSizes& sizes, Workload& workload)
      : c_(config), s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    TensorId x = embeddings();
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "h." + std::to_string(i);
      w_.scope(layer + ".attn");
      x = attention(i, x);
      w_.scope(layer + ".mlp");
      x = feed_forward(x);
    }
    w_.scope("lm_head");
    x = tokens_for_logits(w_, s_, w_.layer_norm("ln_f", x));
    w_.host_calls(1);
    const TensorId logits =
        c_.tied_embeddings ? w_.apply(OpType::linear, "dense", {x, table_}) : w_.linear("dense", x, c_.vocab, false);
    if (s_.training) causal_loss(w_, logits);
    finish(workload_, logits);
    report_cache(workload_, s_, c_.layers, c_.heads, head_dim());
  }

 private:
  std::int64_t head_dim() const { return c_.head_dim > 0 ? c_.head_dim : c_.hidden / c_.heads; }

  TensorId embeddings() {
    w_.scope("embeddings");
    const TensorId ids = w_.input("input_ids", {s_.batch, s_.seq}, DataType::int64);
    if (!s_.flash) {
      mask_ = w_.buffer("causal_mask", {1, 1, s_.seq, s_.context}, DataType::boolean);
      lowest_ = w_.buffer("mask_value", {});
    }
    table_ = w_.parameter("wte.weight", {c_.vocab, c_.hidden});
    const TensorId position_table = w_.parameter("wpe.weight", {c_.positions, c_.hidden});
    const TensorId positions = w_.fill("positions", {1, s_.seq}, DataType::int64);
    w_.host_calls(4);
    const TensorId tokens = w_.embedding("wte", ids, table_);
    const TensorId x = w_.apply(OpType::add, "add", {tokens, w_.embedding("wpe", positions, position_table)});
    return w_.dropout("dropout", x, c_.embedding_dropout);
  }

  TensorId conv1d(std::string_view name, TensorId x, Dim out) {
    const TensorId y = w_.linear(name, x, out, true, true);
    w_.host_calls(4);  // sizes and the two views around addmm
    return y;
  }

  TensorId attention(Dim layer, TensorId x) {
    const Dim width = c_.heads * head_dim();
    const TensorId qkv = conv1d("c_attn", w_.layer_norm("ln_1", x), 3 * width);
    const auto parts =
        w_.apply_multiple(OpType::split, "split", {qkv}, attributes({{"sizes", Shape{width, width, width}}}), 3);
    w_.host_calls(6);
    const TensorId q = split_heads(w_, "query", parts[0], c_.heads);
    const TensorId new_k = split_heads(w_, "key", parts[1], c_.heads);
    const TensorId new_v = split_heads(w_, "value", parts[2], c_.heads);
    const auto [k, v] = through_cache(w_, s_, layer, new_k, new_v);
    TensorId y = s_.flash ? flash_attention(w_, q, k, v, !s_.decode()) : unfused(q, k, v);
    y = merge_heads(w_, "merge", y, s_.flash);
    w_.host_calls(1);
    y = w_.dropout("resid_dropout", conv1d("c_proj", y, c_.hidden), c_.residual_dropout);
    return w_.apply(OpType::add, "add", {y, x});
  }

  TensorId unfused(TensorId q, TensorId k, TensorId v) {
    const bool cached = reads_cache(s_);
    TensorId p = attention_scores(w_, q, k, false, cached);
    w_.host_calls(2);
    p = w_.scalar(OpType::div_scalar, "scale", p, std::sqrt(static_cast<double>(head_dim())));
    w_.host_calls(6);  // sizes, slice of the mask, the mask value, no-op casts
    p = w_.apply(OpType::where, "masked", {mask_, p, lowest_});
    p = w_.apply(OpType::softmax, "softmax", {p});
    w_.host_calls(1);
    return attention_context(w_, w_.dropout("dropout", p, c_.attention_dropout), v, cached);
  }

  TensorId feed_forward(TensorId x) {
    TensorId y = conv1d("c_fc", w_.layer_norm("ln_2", x), c_.ffn);
    y = conv1d("c_proj", w_.activation("act", y, c_.activation), c_.hidden);
    return w_.apply(OpType::add, "add", {w_.dropout("dropout", y, c_.residual_dropout), x});
  }

  const Gpt2Config& c_;
  const TokenSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  TensorId mask_ = 0;
  TensorId lowest_ = 0;
  TensorId table_ = 0;
};

}  // namespace

void build_gpt2(const Gpt2Config& config, const BuildOptions& options, Workload& workload) {
  const TokenSizes sizes = resolve_tokens(
      options, {.positions = config.positions, .learned_positions = true, .autoregressive = true}, workload);
  Gpt2(config, sizes, workload).build();
}

}  // namespace voltaic::workloads
