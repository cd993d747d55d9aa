// SPDX-License-Identifier: MIT
// OPT as the eager framework runs it: batched products over packed [b * h, s, d] copies, additive mask, clamped scores.
#include <cmath>

#include "workloads/attention_block.hpp"
#include "workloads/causal_mask.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kPositionOffset = 2;  // rows 0 and 1 of the position table are reserved

class Opt {
 public:
  Opt(const OptConfig& config, const TokenSizes& sizes, Workload& workload)
      : c_(config), s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    TensorId x = embeddings();
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "decoder.layers." + std::to_string(i);
      w_.scope(layer + ".self_attn");
      x = attention(i, x);
      w_.scope(layer + ".mlp");
      x = feed_forward(x);
    }
    w_.scope("lm_head");
    if (c_.norm_before) x = w_.layer_norm("final_layer_norm", x);
    if (c_.embedding_width != c_.hidden) x = w_.linear("project_out", x, c_.embedding_width, false);
    x = tokens_for_logits(w_, s_, x);
    const TensorId logits =
        c_.tied_embeddings ? w_.apply(OpType::linear, "dense", {x, table_}) : w_.linear("dense", x, c_.vocab, false);
    w_.host_calls(1);
    if (s_.training) causal_loss(w_, logits);
    finish(workload_, logits);
    report_cache(workload_, s_, c_.layers, c_.heads, head_dim());
  }

 private:
  Dim head_dim() const { return c_.hidden / c_.heads; }

  TensorId embeddings() {
    w_.scope("embeddings");
    const TensorId ids = w_.input("input_ids", {s_.batch, s_.seq}, DataType::int64);
    table_ = w_.parameter("embed_tokens.weight", {c_.vocab, c_.embedding_width});
    const TensorId position_table = w_.parameter("embed_positions.weight", {c_.positions + kPositionOffset, c_.hidden});
    TensorId x = w_.embedding("embed_tokens", ids, table_);
    if (!s_.flash) {
      mask_ = additive_causal_mask(w_, s_);
      lowest_ = w_.buffer("mask_value", {});
    }
    if (c_.embedding_width != c_.hidden) x = w_.linear("project_in", x, c_.hidden, false);
    return w_.apply(OpType::add, "add", {x, w_.embedding("embed_positions", positions(), position_table)});
  }

  /// Positions from the padding mask: a running sum of ones.
  TensorId positions() {
    const TensorId mask = w_.fill("positions.mask", {s_.batch, s_.seq}, DataType::int64);
    const TensorId sum = w_.apply(OpType::cumsum, "positions.cumsum", {mask});
    const TensorId kept = w_.apply(OpType::mul, "positions.kept", {sum, mask});
    const TensorId zero_based = w_.scalar(OpType::sub_scalar, "positions.zero_based", kept, 1.0);
    w_.host_calls(2);
    return w_.scalar(OpType::add_scalar, "positions", zero_based, kPositionOffset);
  }

  /// [b, s, h * d] -> packed [b, h, s, d].
  TensorId packed_heads(const std::string& name, TensorId x) {
    const TensorId heads = split_heads(w_, name, x, c_.heads);
    return s_.flash ? heads : w_.contiguous(name + ".contiguous", heads);
  }

  TensorId attention(Dim layer, TensorId x) {
    const TensorId normed = c_.norm_before ? w_.layer_norm("layer_norm", x) : x;
    w_.host_calls(1);
    const TensorId q_rows = w_.scalar(OpType::mul_scalar, "scale", w_.linear("q_proj", normed, c_.hidden, c_.bias),
                                      1 / std::sqrt(static_cast<double>(head_dim())));
    const TensorId new_k = packed_heads("k_proj", w_.linear("k_proj", normed, c_.hidden, c_.bias));
    const TensorId new_v = packed_heads("v_proj", w_.linear("v_proj", normed, c_.hidden, c_.bias));
    const TensorId q = packed_heads("q_proj", q_rows);
    const auto [k, v] = through_cache(w_, s_, layer, new_k, new_v);
    TensorId y = s_.flash ? flash_attention(w_, q, k, v, !s_.decode()) : unfused(q, k, v);
    y = merge_heads(w_, "merge", y, s_.flash);
    y = w_.dropout("dropout", w_.linear("out_proj", y, c_.hidden, c_.bias), c_.dropout);
    y = w_.apply(OpType::add, "add", {y, x});
    return c_.norm_before ? y : w_.layer_norm("layer_norm", y);
  }

  TensorId unfused(TensorId q, TensorId k, TensorId v) {
    const Dim groups = s_.batch * c_.heads;
    const Shape four_dims{s_.batch, c_.heads, s_.seq, s_.context};
    const TensorId q3 = w_.reshape("q_proj.fold", q, {groups, s_.seq, head_dim()});
    const TensorId k3 = w_.reshape("k_proj.fold", k, {groups, s_.context, head_dim()});
    const TensorId v3 = w_.reshape("v_proj.fold", v, {groups, s_.context, head_dim()});
    TensorId p = w_.apply(OpType::matmul, "scores", {q3, k3}, attributes({{"transpose_b", 1}}));
    w_.host_calls(4);
    p = w_.apply(OpType::add, "masked", {w_.reshape("scores.view", p, four_dims), mask_});
    w_.host_calls(1);
    p = w_.apply(OpType::maximum, "clamped", {p, lowest_});  // with a tensor of no dims: five kernels of gradient
    p = w_.apply(OpType::softmax, "softmax", {w_.reshape("clamped.fold", p, {groups, s_.seq, s_.context})});
    p = w_.dropout("attention_dropout", p, c_.attention_dropout);
    const TensorId y = w_.apply(OpType::matmul, "context", {p, v3});
    w_.host_calls(1);
    return w_.reshape("context.view", y, {s_.batch, c_.heads, s_.seq, head_dim()});
  }

  TensorId feed_forward(TensorId x) {
    w_.host_calls(2);
    const TensorId rows = w_.reshape("rows", x, {s_.batch * s_.seq, c_.hidden});
    TensorId y = c_.norm_before ? w_.layer_norm("layer_norm", rows) : rows;
    y = w_.activation("activation", w_.linear("fc1", y, c_.ffn, c_.bias), c_.activation);
    y = w_.dropout("dropout", w_.linear("fc2", y, c_.hidden, c_.bias), c_.dropout);
    y = w_.reshape("view", w_.apply(OpType::add, "add", {rows, y}), {s_.batch, s_.seq, c_.hidden});
    return c_.norm_before ? y : w_.layer_norm("layer_norm", y);
  }

  const OptConfig& c_;
  const TokenSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  TensorId mask_ = 0;
  TensorId lowest_ = 0;
  TensorId table_ = 0;
};

}  // namespace

void build_opt(const OptConfig& config, const BuildOptions& options, Workload& workload) {
  const TokenSizes sizes = resolve_tokens(
      options, {.positions = config.positions, .learned_positions = true, .autoregressive = true}, workload);
  Opt(config, sizes, workload).build();
}

}  // namespace voltaic::workloads
