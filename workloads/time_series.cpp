// SPDX-License-Identifier: MIT
// Temporal fusion transformer [Lim21] on series of hourly readings: variable selection, an LSTM over past and future,
// attention whose heads share their values. Gated linear units stand as a sigmoid and a product.
#include <array>
#include <cmath>
#include <optional>

#include "workloads/attention_block.hpp"
#include "workloads/language.hpp"
#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {
namespace {

class FusionTransformer {
 public:
  FusionTransformer(const FusionTransformerConfig& config, Dim batch, bool training, Workload& workload)
      : c_(config), batch_(batch), workload_(workload), w_(workload.graph, workload.name, training) {}

  void build() {
    const Dim steps = c_.past + c_.future;
    const TensorId who = static_embedding();
    const TensorId known = continuous("known", steps, c_.known);
    const TensorId target = continuous("target", c_.past, 1);
    w_.scope("static_encoder");
    const TensorId chosen = select("vsn", who, std::nullopt);
    const TensorId for_selection = gated("selection", chosen, c_.hidden);
    const TensorId for_enrichment = gated("enrichment", chosen, c_.hidden);
    const TensorId state = gated("state_h", chosen, c_.hidden);
    const TensorId cell = gated("state_c", chosen, c_.hidden);
    w_.scope("history");
    const TensorId past = concat(w_, "inputs", {w_.slice("known", known, 1, 0, c_.past), target}, 2);
    const TensorId past_features = select("vsn", past, for_selection);
    const TensorId past_states = lstm(past_features, {state, cell});
    w_.scope("future");
    const TensorId future_features = select("vsn", w_.slice("known", known, 1, c_.past, steps), for_selection);
    const TensorId future_states = lstm(future_features, {});
    w_.scope("fusion");
    const TensorId embedded = concat(w_, "features", {past_features, future_features}, 1);
    const TensorId states = concat(w_, "states", {past_states, future_states}, 1);
    const TensorId temporal = joined("input_gate", states, embedded);
    const TensorId enriched = gated("enrichment_grn", temporal, c_.hidden, for_enrichment);
    TensorId x = w_.slice("attended.future", attention(enriched), 1, c_.past, steps);
    x = joined("attention_gate", x, w_.slice("enriched.future", enriched, 1, c_.past, steps));
    x = gated("positionwise_grn", x, c_.hidden);
    x = joined("decoder_gate", x, w_.slice("temporal.future", temporal, 1, c_.past, steps));
    w_.scope("quantiles");
    const TensorId quantiles = w_.linear("dense", x, kQuantiles, true);
    if (w_.training()) loss(quantiles);
    finish(workload_, quantiles);
  }

 private:
  static constexpr Dim kQuantiles = 3;
  static constexpr double kDropout = 0.1;

  /// [batch, 1 variable, hidden].
  TensorId static_embedding() {
    w_.scope("embedding");
    const TensorId ids = w_.input("series_ids", {batch_}, DataType::int64);
    const TensorId row = w_.embedding("series", ids, w_.parameter("series.weight", {c_.series, c_.hidden}));
    return w_.reshape("series.view", row, {batch_, 1, c_.hidden});
  }

  /// Each variable is a learned vector times its value: [batch, steps, variables, hidden].
  TensorId continuous(const std::string& name, Dim steps, Dim variables) {
    const TensorId values = w_.input(name, {batch_, steps, variables, 1});
    const TensorId scaled =
        w_.apply(OpType::mul, name + ".scaled", {values, w_.parameter(name + ".vectors", {variables, c_.hidden})});
    return w_.apply(OpType::add, name + ".embedded", {scaled, w_.parameter(name + ".bias", {variables, c_.hidden})});
  }

  TensorId gated_unit(const std::string& name, TensorId x, Dim out) {
    const auto halves = w_.apply_multiple(OpType::split, name + ".halves", {w_.linear(name, x, 2 * out, true)},
                                          attributes({{"sizes", Shape{out, out}}}), 2);
    return w_.apply(OpType::mul, name + ".gated", {halves[0], w_.apply(OpType::sigmoid, name + ".gate", {halves[1]})});
  }

  /// Gated residual network, with a context per sample where there is one.
  TensorId gated(const std::string& name, TensorId x, Dim out, std::optional<TensorId> context = std::nullopt) {
    TensorId y = w_.linear(name + ".lin_a", x, c_.hidden, true);
    if (context) {
      TensorId c = w_.linear(name + ".lin_c", *context, c_.hidden, false);
      if (w_.shape(y).size() == 3) c = w_.reshape(name + ".context", c, {batch_, 1, c_.hidden});
      y = w_.apply(OpType::add, name + ".with_context", {y, c});
    }
    y = w_.linear(name + ".lin_i", w_.apply(OpType::elu, name + ".elu", {y}), c_.hidden, true);
    y = gated_unit(name + ".glu", w_.dropout(name + ".dropout", y, kDropout), out);
    const TensorId skip = w_.dim(x, -1) == out ? x : w_.linear(name + ".out_proj", x, out, true);
    y = w_.apply(OpType::add, name + ".residual", {y, skip});
    return out == 1 ? y : w_.layer_norm(name + ".norm", y);
  }

  /// The variables' weighted sum: [batch, (steps), variables, hidden] -> [batch, (steps), hidden].
  TensorId select(const std::string& name, TensorId x, std::optional<TensorId> context) {
    Shape flat = w_.shape(x);
    const Dim variables = flat[flat.size() - 2];
    flat.resize(flat.size() - 2);
    const Shape rows = flat;
    flat.push_back(variables * c_.hidden);
    const TensorId all = w_.reshape(name + ".flat", x, flat);
    const TensorId shares =
        w_.apply(OpType::softmax, name + ".shares", {gated(name + ".joint", all, variables, context)});
    const auto axis = static_cast<Dim>(rows.size());
    Shape one = rows;
    one.push_back(c_.hidden);
    Shape column = one;
    column.push_back(1);
    std::vector<TensorId> parts;
    for (Dim i = 0; i < variables; ++i) {
      const std::string part = name + ".variable" + std::to_string(i);
      const TensorId own = w_.reshape(part, w_.slice(part + ".slice", x, axis, i, i + 1), one);
      parts.push_back(w_.reshape(part + ".column", gated(part + ".grn", own, c_.hidden), column));
    }
    const TensorId stacked = concat(w_, name + ".stack", parts, axis + 1);
    Shape weights = rows;
    weights.push_back(variables);
    weights.push_back(1);
    const TensorId sum =
        w_.apply(OpType::matmul, name + ".sum", {stacked, w_.reshape(name + ".weights", shares, weights)});
    return w_.reshape(name, sum, one);
  }

  /// Time comes first inside the library: one copy in front. The first states are copied to its layout.
  TensorId lstm(TensorId x, const std::vector<TensorId>& states) {
    for (std::size_t i = 0; i < states.size(); ++i) w_.apply(OpType::copy, "state" + std::to_string(i), {states[i]});
    const TensorId by_time = w_.contiguous("by_time.packed", w_.transpose("by_time", x, {1, 0, 2}));
    const Dim gates = 4 * c_.hidden;
    const TensorId y = w_.apply(OpType::lstm, "lstm",
                                {by_time, w_.parameter("lstm.weight_ih", {gates, c_.hidden}),
                                 w_.parameter("lstm.weight_hh", {gates, c_.hidden}),
                                 w_.parameter("lstm.bias_ih", {gates}), w_.parameter("lstm.bias_hh", {gates})},
                                attributes({{"hidden", c_.hidden}}));
    return w_.transpose("by_sample", y, {1, 0, 2});
  }

  TensorId joined(const std::string& name, TensorId x, TensorId skip) {
    return w_.layer_norm(name + ".norm", w_.apply(OpType::add, name + ".add", {gated_unit(name, x, c_.hidden), skip}));
  }

  TensorId attention(TensorId x) {
    const Dim head = c_.hidden / c_.heads;
    const Dim steps = c_.past + c_.future;
    const TensorId qkv = w_.linear("attention.qkv", x, (2 * c_.heads + 1) * head, false);
    const auto parts = w_.apply_multiple(OpType::split, "attention.split", {qkv},
                                         attributes({{"sizes", Shape{c_.hidden, c_.hidden, head}}}), 3);
    const TensorId q = split_heads(w_, "attention.q", parts[0], c_.heads);
    const TensorId k = split_heads(w_, "attention.k", parts[1], c_.heads);
    TensorId p = attention_scores(w_, q, k, false, false);
    p = w_.scalar(OpType::mul_scalar, "attention.scale", p, 1 / std::sqrt(static_cast<double>(head)));
    p = w_.apply(OpType::add, "attention.masked", {p, w_.buffer("causal_mask", {steps, steps})});
    p = w_.dropout("attention.weights_dropout", w_.apply(OpType::softmax, "attention.softmax", {p}), 0);
    const TensorId v = w_.reshape("attention.v", parts[2], {batch_, 1, steps, head});
    const TensorId y =
        w_.apply(OpType::reduce_mean, "attention.mean", {w_.apply(OpType::matmul, "attention.context", {p, v})},
                 attributes({{"axes", Shape{1}}}));
    return w_.dropout("attention.dropout", w_.linear("attention.out_proj", y, c_.hidden, false), kDropout);
  }

  void loss(TensorId quantiles) {
    w_.scope("loss");
    const TensorId target = w_.input("future_target", {batch_, c_.future, 1});
    const TensorId shares = w_.buffer("loss.quantiles", {kQuantiles});
    const TensorId over = w_.apply(OpType::sub, "over", {quantiles, target});
    const TensorId high = w_.apply(OpType::mul, "high.weighted", {w_.apply(OpType::relu, "high", {over}), shares});
    const TensorId under = w_.apply(OpType::relu, "low", {w_.apply(OpType::neg, "under", {over})});
    const TensorId sum = w_.apply(OpType::add, "sum", {high, w_.apply(OpType::mul, "low.weighted", {under, shares})});
    w_.graph().loss = w_.apply(OpType::reduce_mean, "mean", {sum});
  }

  const FusionTransformerConfig& c_;
  Dim batch_;
  Workload& workload_;
  GraphWriter w_;
};

}  // namespace

void build_fusion_transformer(const FusionTransformerConfig& config, const BuildOptions& options, Workload& workload) {
  const Dim batch = resolve_samples(options, workload);
  if (options.attention == AttentionForm::flash)
    workload.assumptions.emplace_back("attention runs unfused: heads that share their values have no flash kernel");
  FusionTransformer(config, batch, options.training, workload).build();
}

}  // namespace voltaic::workloads
