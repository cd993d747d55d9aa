// SPDX-License-Identifier: MIT
#include "workloads/bert_encoder.hpp"

#include <cmath>

#include "workloads/attention_block.hpp"

namespace voltaic::workloads {

BertInputs bert_inputs(GraphWriter& w, const TokenSizes& sizes) {
  BertInputs inputs;
  inputs.ids = w.input("input_ids", {sizes.batch, sizes.seq}, DataType::int64);
  inputs.types = w.input("token_type_ids", {sizes.batch, sizes.seq}, DataType::int64);
  inputs.positions = w.input("position_ids", {1, sizes.seq}, DataType::int64);
  return inputs;
}

BertTables bert_tables(GraphWriter& w, const BertConfig& config) {
  const Dim width = config.embedding_width > 0 ? config.embedding_width : config.hidden;
  w.scope("embeddings");
  BertTables tables;
  tables.words = w.parameter("word_embeddings.weight", {config.vocab, width});
  tables.types = w.parameter("token_type_embeddings.weight", {config.types, width});
  tables.positions = w.parameter("position_embeddings.weight", {config.positions, width});
  return tables;
}

TensorId BertEncoder::run(const BertInputs& inputs, const BertTables& tables) {
  w_.scope(prefix_ + "embeddings");
  return blocks(embeddings(inputs, tables));
}

TensorId BertEncoder::blocks(TensorId x) {
  for (Dim i = 0; i < c_.layers; ++i) {
    const std::string layer = prefix_ + "encoder.layer." + std::to_string(i);
    w_.scope(layer + ".attention");
    x = attention(x);
    w_.scope(layer + ".mlp");
    x = feed_forward(x);
  }
  return x;
}

TensorId BertEncoder::embeddings(const BertInputs& inputs, const BertTables& tables) {
  if (!s_.flash) mask_ = attention_mask();
  TensorId x = w_.embedding("word_embeddings", inputs.ids, tables.words);
  x = w_.apply(OpType::add, "add_types", {x, w_.embedding("token_type_embeddings", inputs.types, tables.types)});
  x = w_.apply(OpType::add, "add_positions",
               {x, w_.embedding("position_embeddings", inputs.positions, tables.positions)});
  x = w_.dropout("dropout", w_.layer_norm("norm", x), c_.hidden_dropout);
  return w_.dim(x, -1) == c_.hidden ? x : w_.linear("projection", x, c_.hidden, true);
}

/// (1 - mask) * lowest, broadcast over heads and queries.
TensorId BertEncoder::attention_mask() {
  const TensorId ones = w_.fill("mask.ones", {s_.batch, s_.seq}, DataType::fp32);
  w_.host_calls(8);  // sizes, expanded token types
  const TensorId view = w_.reshape("mask.view", ones, {s_.batch, 1, 1, s_.seq});
  w_.host_calls(1);
  return w_.scalar(OpType::mul_scalar, "mask", w_.scalar(OpType::sub_scalar, "mask.inverted", view, 1.0), -3.4e38);
}

TensorId BertEncoder::attention(TensorId x) {
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

TensorId BertEncoder::unfused(TensorId q, TensorId k, TensorId v) {
  TensorId p = attention_scores(w_, q, k, false, false);
  const Dim head_dim = c_.hidden / c_.heads;
  p = w_.scalar(OpType::div_scalar, "scale", p, std::sqrt(static_cast<double>(head_dim)));
  if (mask_ != 0) p = w_.apply(OpType::add, "masked", {p, mask_});
  p = w_.apply(OpType::softmax, "softmax", {p});
  return attention_context(w_, w_.dropout("dropout", p, c_.attention_dropout), v, false);
}

TensorId BertEncoder::feed_forward(TensorId x) {
  TensorId y = w_.activation("activation", w_.linear("intermediate", x, c_.ffn, true), c_.activation);
  y = w_.dropout("dropout", w_.linear("output", y, c_.hidden, true), c_.hidden_dropout);
  return w_.layer_norm("norm", w_.apply(OpType::add, "add", {y, x}));
}

}  // namespace voltaic::workloads
