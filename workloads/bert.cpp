// SPDX-License-Identifier: MIT
// BERT as the eager framework runs it: separate q, k, v layers, post-norm blocks.
// Inference has a two-class head on the pooler, training the two pre-training heads.
#include <cmath>

#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

class Bert {
 public:
  Bert(const BertConfig& config, const TokenSizes& sizes, Workload& workload)
      : c_(config), s_(sizes), workload_(workload), w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    TensorId x = embeddings();
    const std::string prefix = "encoder.layer.";
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = prefix + std::to_string(i);
      w_.scope(layer + ".attention");
      x = attention(x);
      w_.scope(layer + ".mlp");
      x = feed_forward(x);
    }
    const TensorId pooled = pooler(x);
    finish(workload_, s_.training ? pretraining_heads(x, pooled) : classifier(pooled));
    workload_.parameters -= head_parameters_;
    workload_.parameters_active_per_token = workload_.parameters;
  }

 private:
  std::int64_t head_dim() const { return c_.hidden / c_.heads; }

  TensorId embeddings() {
    w_.scope("embeddings");
    const TensorId ids = w_.input("input_ids", {s_.batch, s_.seq}, DataType::int64);
    const TensorId types = w_.input("token_type_ids", {s_.batch, s_.seq}, DataType::int64);
    const TensorId positions = w_.input("position_ids", {1, s_.seq}, DataType::int64);
    if (!s_.flash) mask_ = attention_mask();
    table_ = w_.parameter("word_embeddings.weight", {c_.vocab, c_.hidden});
    const TensorId type_table = w_.parameter("token_type_embeddings.weight", {c_.types, c_.hidden});
    const TensorId position_table = w_.parameter("position_embeddings.weight", {c_.positions, c_.hidden});
    TensorId x = w_.embedding("word_embeddings", ids, table_);
    x = w_.apply(OpType::add, "add_types", {x, w_.embedding("token_type_embeddings", types, type_table)});
    x = w_.apply(OpType::add, "add_positions", {x, w_.embedding("position_embeddings", positions, position_table)});
    return w_.dropout("dropout", w_.layer_norm("norm", x), c_.hidden_dropout);
  }

  /// (1 - mask) * lowest, broadcast over heads and queries.
  TensorId attention_mask() {
    const TensorId ones = w_.fill("mask.ones", {s_.batch, s_.seq}, DataType::fp32);
    w_.host_calls(8);  // sizes, expanded token types
    const TensorId view = w_.reshape("mask.view", ones, {s_.batch, 1, 1, s_.seq});
    w_.host_calls(1);
    return w_.scalar(OpType::mul_scalar, "mask", w_.scalar(OpType::sub_scalar, "mask.inverted", view, 1.0), -3.4e38);
  }

  TensorId attention(TensorId x) {
    const TensorId q_rows = w_.linear("query", x, c_.hidden, true);
    const TensorId k_rows = w_.linear("key", x, c_.hidden, true);
    w_.host_calls(1);
    const TensorId k = split_heads(w_, "key", k_rows, c_.heads);
    const TensorId v_rows = w_.linear("value", x, c_.hidden, true);
    w_.host_calls(1);
    const TensorId v = split_heads(w_, "value", v_rows, c_.heads);
    const TensorId q = split_heads(w_, "query", q_rows, c_.heads);
    w_.host_calls(1);
    TensorId y = s_.flash ? flash_attention(w_, q, k, v, false) : unfused(q, k, v);
    y = merge_heads(w_, "merge", y, s_.flash);
    w_.host_calls(1);
    y = w_.dropout("output.dropout", w_.linear("output.dense", y, c_.hidden, true), c_.hidden_dropout);
    return w_.layer_norm("output.norm", w_.apply(OpType::add, "output.add", {y, x}));
  }

  TensorId unfused(TensorId q, TensorId k, TensorId v) {
    TensorId p = attention_scores(w_, q, k, false, false);
    p = w_.scalar(OpType::div_scalar, "scale", p, std::sqrt(static_cast<double>(head_dim())));
    p = w_.apply(OpType::softmax, "softmax", {w_.apply(OpType::add, "masked", {p, mask_})});
    return attention_context(w_, w_.dropout("dropout", p, c_.attention_dropout), v, false);
  }

  TensorId feed_forward(TensorId x) {
    TensorId y = w_.activation("activation", w_.linear("intermediate", x, c_.ffn, true), c_.activation);
    y = w_.dropout("dropout", w_.linear("output", y, c_.hidden, true), c_.hidden_dropout);
    return w_.layer_norm("norm", w_.apply(OpType::add, "add", {y, x}));
  }

  TensorId pooler(TensorId x) {
    w_.scope("pooler");
    const TensorId first = w_.reshape("first", w_.slice("slice", x, 1, 0, 1), {s_.batch, c_.hidden});
    return w_.apply(OpType::tanh, "activation", {w_.linear("dense", first, c_.hidden, true)});
  }

  TensorId classifier(TensorId pooled) {
    w_.scope("classifier");
    head_parameters_ = 2 * c_.hidden + 2;
    workload_.assumptions.emplace_back("two-class head on the pooler; `parameters` counts the model without its head");
    return w_.linear("dense", w_.dropout("dropout", pooled, c_.hidden_dropout), 2, true);
  }

  TensorId pretraining_heads(TensorId x, TensorId pooled) {
    w_.scope("predictions");
    head_parameters_ = c_.hidden * c_.hidden + 3 * c_.hidden + c_.vocab + 2 * c_.hidden + 2;
    workload_.assumptions.emplace_back("both pre-training heads; `parameters` counts the model without its heads");
    TensorId y = w_.activation("activation", w_.linear("dense", x, c_.hidden, true), c_.activation);
    y = w_.layer_norm("norm", y);
    const TensorId bias = w_.parameter("decoder.bias", {c_.vocab});
    const TensorId logits = w_.apply(OpType::linear, "decoder", {y, table_, bias});
    w_.scope("seq_relationship");
    const TensorId next = w_.linear("dense", pooled, 2, true);
    w_.scope("loss");
    const TensorId flat = w_.reshape("view", logits, {s_.batch * s_.seq, c_.vocab});
    const TensorId labels = w_.input("labels", {s_.batch * s_.seq}, DataType::int64);
    const TensorId masked = w_.apply(OpType::cross_entropy, "masked_tokens", {flat, labels});
    const TensorId next_labels = w_.input("next_sentence_label", {s_.batch}, DataType::int64);
    const TensorId relation = w_.apply(OpType::cross_entropy, "next_sentence", {next, next_labels});
    w_.graph().loss = w_.apply(OpType::add, "sum", {masked, relation});
    return logits;
  }

  const BertConfig& c_;
  const TokenSizes& s_;
  Workload& workload_;
  GraphWriter w_;
  TensorId mask_ = 0;
  TensorId table_ = 0;
  Dim head_parameters_ = 0;
};

}  // namespace

void build_bert(const BertConfig& config, const BuildOptions& options, Workload& workload) {
  const TokenSizes sizes = resolve_tokens(
      options, {.positions = config.positions, .learned_positions = true, .autoregressive = false}, workload);
  Bert(config, sizes, workload).build();
}

}  // namespace voltaic::workloads
