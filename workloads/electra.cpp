// SPDX-License-Identifier: MIT
// ELECTRA [Clark20]: a small generator replaces the masked tokens, a discriminator tells for every token whether it was
// replaced. Inference runs the discriminator alone.
#include "workloads/attention_block.hpp"
#include "workloads/bert_encoder.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

constexpr double kDiscriminatorWeight = 50;  // [Clark20] section 3.1

class Electra {
 public:
  Electra(const ElectraConfig& config, const TokenSizes& sizes, Dim masked, Workload& workload)
      : d_(config.discriminator),
        g_(config.generator),
        s_(sizes),
        masked_(masked),
        workload_(workload),
        w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    BertInputs inputs = bert_inputs(w_, s_);
    const BertTables tables = bert_tables(w_, d_);
    const bool generates = s_.training && g_.layers > 0;
    TensorId masked_loss = 0;
    if (generates) {
      const TensorId x = BertEncoder(g_, s_, w_, "generator.").run(inputs, tables);
      const TensorId logits = generator_head(x, tables.words);
      masked_loss = generator_loss(logits);
      inputs.ids = replaced(inputs.ids, logits);
    }
    const TensorId x = BertEncoder(d_, s_, w_, "").run(inputs, tables);
    w_.scope("discriminator_predictions");
    const TensorId y = w_.activation("activation", w_.linear("dense", x, d_.hidden, true), d_.activation);
    const TensorId scores = w_.reshape("scores", w_.linear("prediction", y, 1, true), {s_.batch, s_.seq});
    if (s_.training) discriminator_loss(scores, masked_loss, generates);
    finish(workload_, scores);
  }

 private:
  TensorId generator_head(TensorId x, TensorId table) {
    w_.scope("generator_predictions");
    const Dim width = w_.dim(table, 1);
    places_ = w_.input("masked_positions", {s_.batch * masked_}, DataType::int64);
    const TensorId rows = w_.reshape("rows", x, {s_.batch * s_.seq, g_.hidden});
    TensorId y = w_.linear("dense", w_.apply(OpType::gather, "masked_rows", {rows, places_}), width, true);
    y = w_.layer_norm("norm", w_.activation("activation", y, g_.activation));
    return w_.apply(OpType::linear, "decoder", {y, table, w_.parameter("decoder.bias", {g_.vocab})});
  }

  TensorId generator_loss(TensorId logits) {
    w_.scope("generator_loss");
    const TensorId labels = w_.input("labels", {s_.batch * masked_}, DataType::int64);
    return w_.apply(OpType::cross_entropy, "masked_tokens", {logits, labels});
  }

  /// Draws tokens (the largest of logits plus Gumbel noise) and puts them in their places.
  TensorId replaced(TensorId ids, TensorId logits) {
    w_.scope("replaced");
    const TensorId uniform = w_.fill("uniform", w_.shape(logits), DataType::fp32);
    const TensorId inner = w_.apply(OpType::neg, "exponential", {w_.apply(OpType::log, "log", {uniform})});
    const TensorId noise = w_.apply(OpType::neg, "noise", {w_.apply(OpType::log, "log_log", {inner})});
    const TensorId drawn = w_.apply(OpType::argmax, "drawn", {w_.apply(OpType::add, "noisy", {logits, noise})});
    const TensorId placed =
        w_.apply(OpType::scatter_add, "placed", {drawn, places_}, attributes({{"rows", s_.batch * s_.seq}}));
    const TensorId view = w_.reshape("view", placed, {s_.batch, s_.seq});
    return w_.apply(OpType::add, "ids", {ids, view});
  }

  void discriminator_loss(TensorId scores, TensorId masked_loss, bool generates) {
    w_.scope("loss");
    const TensorId replaced = w_.input("is_replaced", {s_.batch, s_.seq});
    const TensorId loss = w_.apply(OpType::bce_loss, "replaced_tokens", {scores, replaced});
    w_.graph().loss = loss;
    if (!generates) return;
    const TensorId weighted = w_.scalar(OpType::mul_scalar, "weighted", loss, kDiscriminatorWeight);
    w_.graph().loss = w_.apply(OpType::add, "sum", {masked_loss, weighted});
  }

  const BertConfig& d_;
  const BertConfig& g_;
  const TokenSizes& s_;
  Dim masked_;
  Workload& workload_;
  GraphWriter w_;
  TensorId places_ = 0;
};

}  // namespace

void build_electra(const ElectraConfig& config, const BuildOptions& options, Workload& workload) {
  const TokenSizes sizes = resolve_tokens(
      options, {.positions = config.discriminator.positions, .learned_positions = true, .autoregressive = false},
      workload, {"masked"});
  Dim masked = masked_positions(options, sizes, workload);
  if (masked > 0 && !sizes.training) workload.warnings.emplace_back("--dim masked has no effect outside training");
  if (masked == 0) masked = (sizes.seq * 15 + 99) / 100;  // [Clark20]: 15 % of the tokens
  Electra(config, sizes, masked, workload).build();
}

}  // namespace voltaic::workloads
