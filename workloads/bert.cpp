// SPDX-License-Identifier: MIT
// BERT as the eager framework runs it, with its heads. Without a task of its own, inference has a two-class head on the
// pooler and training the two pre-training heads; question answering has a start and an end score per token in both.
#include <fmt/format.h>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/bert_encoder.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

class Bert {
 public:
  /// `masked`: positions of a sample that the masked-token head reads; 0: all.
  Bert(const BertConfig& config, const TokenSizes& sizes, Dim masked, Workload& workload)
      : c_(config), s_(sizes), masked_(masked), workload_(workload), w_(workload.graph, workload.name, s_.training) {}

  void build() {
    const BertInputs inputs = bert_inputs(w_, s_);
    const BertTables tables = bert_tables(w_, c_);
    table_ = tables.words;
    const TensorId x = BertEncoder(c_, s_, w_, "").run(inputs, tables);
    if (c_.head == BertHead::question_answering) return finish(workload_, span_scores(x));
    const TensorId pooled = pooler(x);
    finish(workload_, s_.training ? pretraining_heads(x, pooled) : classifier(pooled));
    workload_.parameters -= head_parameters_;
    workload_.parameters_active_per_token = workload_.parameters;
  }

 private:
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

  /// The rows that the masked-token head reads, [rows, hidden] or all [batch, seq, hidden].
  TensorId masked_rows(TensorId x) {
    if (masked_ == 0) return x;
    const TensorId places = w_.input("masked_positions", {s_.batch * masked_}, DataType::int64);
    const TensorId rows = w_.reshape("rows", x, {s_.batch * s_.seq, c_.hidden});
    return w_.apply(OpType::gather, "masked_rows", {rows, places});
  }

  TensorId pretraining_heads(TensorId x, TensorId pooled) {
    w_.scope("predictions");
    head_parameters_ = c_.hidden * c_.hidden + 3 * c_.hidden + c_.vocab + 2 * c_.hidden + 2;
    workload_.assumptions.emplace_back("both pre-training heads; `parameters` counts the model without its heads");
    if (masked_ == 0) workload_.assumptions.emplace_back("masked-token head on every token (--dim masked=N: on N)");
    TensorId y = w_.activation("activation", w_.linear("dense", masked_rows(x), c_.hidden, true), c_.activation);
    y = w_.layer_norm("norm", y);
    const TensorId bias = w_.parameter("decoder.bias", {c_.vocab});
    const TensorId logits = w_.apply(OpType::linear, "decoder", {y, table_, bias});
    w_.scope("seq_relationship");
    const TensorId next = w_.linear("dense", pooled, 2, true);
    w_.scope("loss");
    const Dim rows = s_.batch * (masked_ == 0 ? s_.seq : masked_);
    const TensorId flat = w_.reshape("view", logits, {rows, c_.vocab});
    const TensorId labels = w_.input("labels", {rows}, DataType::int64);
    const TensorId masked = w_.apply(OpType::cross_entropy, "masked_tokens", {flat, labels});
    const TensorId next_labels = w_.input("next_sentence_label", {s_.batch}, DataType::int64);
    const TensorId relation = w_.apply(OpType::cross_entropy, "next_sentence", {next, next_labels});
    w_.graph().loss = w_.apply(OpType::add, "sum", {masked, relation});
    return logits;
  }

  /// Start and end scores of every token; in training the mean of two cross entropies over positions.
  TensorId span_scores(TensorId x) {
    w_.scope("qa_outputs");
    const TensorId scores = w_.linear("dense", x, 2, true);
    const auto parts = w_.apply_multiple(OpType::split, "split", {scores}, attributes({{"sizes", Shape{1, 1}}}), 2);
    TensorId ends[2] = {};
    for (const int end : {0, 1}) {
      const std::string name = end == 0 ? "start" : "end";
      const TensorId view = w_.reshape(name + ".view", parts[end], {s_.batch, s_.seq});
      ends[end] = w_.contiguous(name + ".packed", view);
    }
    if (!s_.training) return scores;
    w_.scope("loss");
    TensorId losses[2] = {};
    for (const int end : {0, 1}) {
      const std::string name = end == 0 ? "start" : "end";
      const TensorId labels = w_.input(name + "_positions", {s_.batch}, DataType::int64);
      losses[end] = w_.apply(OpType::cross_entropy, name, {ends[end], labels});
    }
    const TensorId sum = w_.apply(OpType::add, "sum", {losses[0], losses[1]});
    w_.graph().loss = w_.scalar(OpType::div_scalar, "mean", sum, 2.0);
    return scores;
  }

  const BertConfig& c_;
  const TokenSizes& s_;
  Dim masked_;
  Workload& workload_;
  GraphWriter w_;
  TensorId table_ = 0;
  Dim head_parameters_ = 0;
};

}  // namespace

Dim masked_positions(const BuildOptions& options, const TokenSizes& sizes, const Workload& workload) {
  const auto asked = options.dims.find("masked");
  if (asked == options.dims.end()) return 0;
  if (asked->second > sizes.seq) {
    throw ConfigError(workload.name, "",
                      fmt::format("expected --dim masked up to its {} tokens, got {}", sizes.seq, asked->second));
  }
  return asked->second;
}

void build_bert(const BertConfig& config, const BuildOptions& options, Workload& workload) {
  const bool pretraining = config.head == BertHead::pretraining;
  const TokenSizes sizes =
      resolve_tokens(options, {.positions = config.positions, .learned_positions = true, .autoregressive = false},
                     workload, pretraining ? std::vector<std::string>{"masked"} : std::vector<std::string>{});
  const Dim masked = masked_positions(options, sizes, workload);
  if (masked > 0 && !sizes.training) workload.warnings.emplace_back("--dim masked has no effect outside training");
  Bert(config, sizes, masked, workload).build();
}

}  // namespace voltaic::workloads
