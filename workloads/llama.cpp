// SPDX-License-Identifier: MIT
// Llama and its relatives (mistral, qwen2, qwen3, mixtral): RMS norms, rotary positions, grouped-query attention, gated
// feed-forward blocks, dense or as a mixture of experts.
// Simplification: an RMS norm and a rotary embedding are one kernel each, the experts of a layer one grouped product;
// the eager framework spends several launches on each.
#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/causal_mask.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

class Llama {
 public:
  Llama(const LlamaConfig& config, const TokenSizes& sizes, Workload& workload)
      : c_(config), s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    TensorId x = embeddings();
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "layers." + std::to_string(i);
      w_.scope(layer + ".self_attn");
      x = attention(i, x);
      w_.scope(layer + ".mlp");
      const TensorId normed = w_.rms_norm("norm", x);
      x = w_.apply(OpType::add, "add", {x, c_.experts > 0 ? experts(normed) : dense(normed)});
    }
    w_.scope("lm_head");
    x = tokens_for_logits(w_, s_, w_.rms_norm("norm", x));
    const TensorId logits =
        c_.tied_embeddings ? w_.apply(OpType::linear, "dense", {x, table_}) : w_.linear("dense", x, c_.vocab, false);
    if (s_.training) causal_loss(w_, logits);
    finish(workload_, logits);
    report_cache(workload_, s_, c_.layers, c_.kv_heads, c_.head_dim);
    const Dim idle = c_.experts > 0 ? c_.experts - c_.top_k : 0;
    workload_.parameters_active_per_token -= c_.layers * idle * 3 * c_.hidden * c_.ffn;
  }

 private:
  TensorId embeddings() {
    w_.scope("embeddings");
    const TensorId ids = w_.input("input_ids", {s_.batch, s_.seq}, DataType::int64);
    cos_ = w_.buffer("rotary.cos", {s_.seq, c_.head_dim});
    sin_ = w_.buffer("rotary.sin", {s_.seq, c_.head_dim});
    table_ = w_.parameter("embed_tokens.weight", {c_.vocab, c_.hidden});
    const TensorId x = w_.embedding("embed_tokens", ids, table_);
    if (!s_.flash && !s_.decode()) mask_ = additive_causal_mask(w_, s_);
    return x;
  }

  TensorId rotated(const std::string& name, TensorId heads) {
    if (c_.qk_norm) heads = w_.rms_norm(name + "_norm", heads);
    return w_.apply(OpType::rope, name + "_rope", {heads, cos_, sin_});
  }

  TensorId attention(Dim layer, TensorId x) {
    const TensorId normed = w_.rms_norm("norm", x);
    w_.host_calls(1);
    const TensorId q_rows = w_.linear("q_proj", normed, c_.heads * c_.head_dim, c_.qkv_bias);
    const TensorId k_rows = w_.linear("k_proj", normed, c_.kv_heads * c_.head_dim, c_.qkv_bias);
    const TensorId v_rows = w_.linear("v_proj", normed, c_.kv_heads * c_.head_dim, c_.qkv_bias);
    const TensorId q = rotated("q", split_heads(w_, "q", q_rows, c_.heads));
    const TensorId new_k = rotated("k", split_heads(w_, "k", k_rows, c_.kv_heads));
    const TensorId new_v = split_heads(w_, "v", v_rows, c_.kv_heads);
    const auto [k, v] = through_cache(w_, s_, layer, new_k, new_v, c_.window);
    TensorId y = 0;
    if (s_.flash) {
      y = flash_attention(w_, q, k, v, !s_.decode(), s_.decode() ? 0 : c_.window);
    } else {
      y = s_.decode() ? unfused_decode(q, k, v) : unfused(q, k, v);
    }
    y = merge_heads(w_, "merge", y, s_.flash || s_.decode());
    return w_.apply(OpType::add, "add", {x, w_.linear("o_proj", y, c_.hidden, c_.output_bias)});
  }

  TensorId unfused(TensorId q, TensorId k, TensorId v) {
    const bool grouped = c_.kv_heads != c_.heads;
    if (grouped) {
      k = repeated("k", k);
      v = repeated("v", v);
    }
    TensorId p = attention_scores(w_, q, k, false, grouped);
    p = w_.scalar(OpType::div_scalar, "scale", p, std::sqrt(static_cast<double>(c_.head_dim)));
    p = w_.apply(OpType::softmax, "softmax", {w_.apply(OpType::add, "masked", {p, mask_})});
    w_.host_calls(1);
    return attention_context(w_, w_.dropout("dropout", p, c_.attention_dropout), v, grouped);
  }

  /// Copies each key-value head for every query head it serves.
  TensorId repeated(const std::string& name, TensorId x) {
    const Dim copies = c_.heads / c_.kv_heads;
    const TensorId five = w_.reshape(name + ".group", x, {s_.batch, c_.kv_heads, 1, s_.seq, c_.head_dim});
    const TensorId wide = w_.apply(OpType::expand, name + ".expand", {five},
                                   attributes({{"shape", Shape{s_.batch, c_.kv_heads, copies, s_.seq, c_.head_dim}}}));
    const TensorId packed = w_.contiguous(name + ".repeated", wide);
    return w_.reshape(name + ".heads_view", packed, {s_.batch, c_.heads, s_.seq, c_.head_dim});
  }

  /// One query per sample: the query heads that share keys are the rows of one product, so the cache is read once.
  TensorId unfused_decode(TensorId q, TensorId k, TensorId v) {
    const TensorId grouped = w_.reshape("q.group", q, {s_.batch, c_.kv_heads, c_.heads / c_.kv_heads, c_.head_dim});
    TensorId p = w_.apply(OpType::matmul, "scores", {grouped, k}, attributes({{"transpose_b", 1}}));
    p = w_.scalar(OpType::div_scalar, "scale", p, std::sqrt(static_cast<double>(c_.head_dim)));
    p = w_.apply(OpType::softmax, "softmax", {p});
    const TensorId y = w_.apply(OpType::matmul, "context", {p, v});
    return w_.reshape("context.view", y, {s_.batch, c_.heads, 1, c_.head_dim});
  }

  TensorId dense(TensorId x) {
    const TensorId gate = w_.activation("act", w_.linear("gate_proj", x, c_.ffn, c_.mlp_bias), c_.activation);
    const TensorId up = w_.linear("up_proj", x, c_.ffn, c_.mlp_bias);
    return w_.linear("down_proj", w_.apply(OpType::mul, "gated", {gate, up}), c_.hidden, c_.mlp_bias);
  }

  /// Experts that a batch of tokens reaches when routing is even: E (1 - (1 - k/E)^T).
  Dim reached_experts(Dim tokens) const {
    const double all = static_cast<double>(c_.experts);
    const double missed = std::pow(1 - static_cast<double>(c_.top_k) / all, static_cast<double>(tokens));
    return std::clamp(static_cast<Dim>(std::lround(all * (1 - missed))), c_.top_k, c_.experts);
  }

  TensorId expert_weight(std::string_view name, Dim reached, Dim out, Dim in) {
    const std::string id(name);
    const TensorId all = w_.parameter(id + ".weight", {c_.experts, out, in});
    return reached == c_.experts ? all : w_.slice(id + ".reached", all, 0, 0, reached);
  }

  TensorId experts(TensorId x) {
    const Dim tokens = s_.batch * s_.seq;
    if (static_cast<double>(tokens) * static_cast<double>(c_.top_k) > 0x1p62) {
      throw ConfigError(workload_.name, "", "expected at most 2^62 routed tokens, got more");
    }
    const Dim reached = reached_experts(tokens);
    const Dim capacity = (tokens * c_.top_k - 1) / reached + 1;
    const TensorId rows = w_.reshape("rows", x, {tokens, c_.hidden});
    const TensorId routing = w_.apply(OpType::softmax, "routing", {w_.linear("gate", rows, c_.experts, false)});
    const auto top = w_.apply_multiple(OpType::topk, "topk", {routing}, attributes({{"k", c_.top_k}}), 2);
    const TensorId sum =
        w_.apply(OpType::reduce_sum, "weight_sum", {top[0]}, attributes({{"axes", Shape{1}}, {"keepdims", 1}}));
    const TensorId weights = w_.apply(OpType::div, "weights", {top[0], sum});
    const graph::Attributes routed =
        attributes({{"rows", tokens * c_.top_k}, {"top_k", c_.top_k}, {"total_experts", c_.experts}});
    graph::Attributes dispatch = routed;
    dispatch.set("capacity", capacity);
    dispatch.set("experts", reached);
    const TensorId sent = w_.apply(OpType::moe_dispatch, "dispatch", {rows, top[1]}, dispatch);
    graph::Attributes half = routed;
    half.set("side_by_side", std::int64_t{2});
    const TensorId gate =
        w_.apply(OpType::grouped_linear, "w1", {sent, expert_weight("w1", reached, c_.ffn, c_.hidden)}, half);
    const TensorId up =
        w_.apply(OpType::grouped_linear, "w3", {sent, expert_weight("w3", reached, c_.ffn, c_.hidden)}, half);
    const TensorId gated = w_.apply(OpType::mul, "gated", {w_.activation("act", gate, c_.activation), up});
    const TensorId down =
        w_.apply(OpType::grouped_linear, "w2", {gated, expert_weight("w2", reached, c_.hidden, c_.ffn)}, routed);
    const TensorId y = w_.apply(OpType::moe_combine, "combine", {down, top[1], weights}, routed);
    return w_.reshape("view", y, {s_.batch, s_.seq, c_.hidden});
  }

  const LlamaConfig& c_;
  const TokenSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  TensorId mask_ = 0;
  TensorId cos_ = 0;
  TensorId sin_ = 0;
  TensorId table_ = 0;
};

}  // namespace

void build_llama(const LlamaConfig& config, const BuildOptions& options, Workload& workload) {
  TokenSizes sizes = resolve_tokens(
      options, {.positions = config.positions, .learned_positions = false, .autoregressive = true}, workload);
  if (sizes.decode() && config.window > 0 && sizes.context > config.window) {
    sizes.context = config.window;
    workload.assumptions.push_back("the cache holds the sliding window of " + std::to_string(config.window) +
                                   " tokens");
  }
  Llama(config, sizes, workload).build();
  if (config.window > 0) workload.kv_cache_tokens = std::min(workload.kv_cache_tokens, sizes.batch * config.window);
}

}  // namespace voltaic::workloads
