// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "workloads/adaptive_words.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/language.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {
namespace {

constexpr double kEinsumCalls = 8;  // permuted and reshaped operands and result, beyond the views that stand as nodes

class TransformerXl {
 public:
  TransformerXl(const TransformerXlConfig& config, const TokenSizes& sizes, Dim memory, Workload& workload)
      : c_(config), s_(sizes), memory_(memory), workload_(workload), w_(workload.graph, workload.name, s_.training) {}

  void build() {
    AdaptiveWords words(w_, c_.hidden, c_.divisor);
    w_.scope("embeddings");
    const TensorId ids = w_.input("input_ids", {s_.seq, s_.batch}, DataType::int64);
    TensorId x = w_.dropout("dropout", words.embed(ids), c_.dropout);
    visible_ = w_.buffer("visible_keys", {1, 1, s_.seq, keys()}, DataType::boolean);
    lowest_ = w_.buffer("mask_value", {});
    const TensorId places = w_.dropout("positions.dropout", positions(), c_.dropout);
    w_.scope("shared");
    content_bias_ = w_.parameter("r_w_bias", {c_.heads, c_.head_dim});
    place_bias_ = w_.parameter("r_r_bias", {c_.heads, c_.head_dim});
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "layers." + std::to_string(i);
      w_.scope(layer + ".dec_attn");
      const TensorId kept = w_.input("memory." + std::to_string(i), {memory_, s_.batch, c_.hidden});
      const TensorId joined = w_.apply(OpType::concat, "with_memory", {kept, x}, attributes({{"axis", 0}}));
      x = attention(x, joined, places);
      w_.scope(layer + ".pos_ff");
      x = feed_forward(x);
    }
    keep_memory();
    w_.scope("crit");
    x = w_.dropout("dropout", x, c_.dropout);
    const TensorId losses = words.losses(w_.reshape("rows", x, {s_.seq * s_.batch, c_.hidden}));
    if (s_.training) w_.graph().loss = w_.apply(OpType::reduce_mean, "mean", {losses});
    finish(workload_, losses);
  }

 private:
  Dim keys() const { return memory_ + s_.seq; }

  /// Sinusoids of all distances, [keys, 1, hidden].
  TensorId positions() {
    const TensorId distance = w_.fill("positions.distance", {keys(), 1}, DataType::fp32);
    const TensorId frequency = w_.buffer("positions.frequency", {1, c_.hidden / 2});
    const TensorId angle = w_.apply(OpType::mul, "positions.angle", {distance, frequency});
    const TensorId sine = w_.apply(OpType::sin, "positions.sin", {angle});
    const TensorId cosine = w_.apply(OpType::cos, "positions.cos", {angle});
    const TensorId joined = w_.apply(OpType::concat, "positions", {sine, cosine}, attributes({{"axis", 1}}));
    return w_.reshape("positions.view", joined, {keys(), 1, c_.hidden});
  }

  TensorId attention(TensorId x, TensorId joined, TensorId places) {
    const Dim width = c_.heads * c_.head_dim;
    const TensorId qkv = w_.linear("qkv_net", joined, 3 * width, false);
    const TensorId r = w_.linear("r_net", places, width, false);
    const auto parts =
        w_.apply_multiple(OpType::split, "split", {qkv}, attributes({{"sizes", Shape{width, width, width}}}), 3);
    const TensorId q = by_head("q", w_.slice("q.new", parts[0], 0, memory_, keys()));
    // einsum folds samples and heads into one dim, which slices of a joint projection do not allow: it copies them.
    const TensorId k = w_.contiguous("k.packed", w_.transpose("k.heads", by_head("k", parts[1]), {1, 2, 0, 3}));
    const TensorId v = w_.contiguous("v.packed", w_.transpose("v.heads", by_head("v", parts[2]), {1, 2, 0, 3}));
    const TensorId content = w_.apply(OpType::add, "q.content", {q, content_bias_});
    TensorId p = w_.apply(OpType::matmul, "content", {w_.transpose("q.heads", content, {1, 2, 0, 3}), k},
                          attributes({{"transpose_b", 1}}));
    w_.host_calls(kEinsumCalls);
    p = w_.apply(OpType::add, "scores", {p, place_scores(q, r)});
    p = w_.scalar(OpType::mul_scalar, "scale", p, 1 / std::sqrt(static_cast<double>(c_.head_dim)));
    p = w_.apply(OpType::where, "masked", {visible_, p, lowest_});  // in place, hence one kernel
    p = w_.dropout("weights_dropout", w_.apply(OpType::softmax, "softmax", {p}), c_.attention_dropout);
    const TensorId by_sample = w_.apply(OpType::matmul, "context", {p, v});
    w_.host_calls(kEinsumCalls);
    const TensorId context = w_.transpose("context.tokens", by_sample, {2, 0, 1, 3});
    const TensorId rows =
        w_.reshape("context.view", w_.contiguous("context.packed", context), {s_.seq, s_.batch, width});
    const TensorId y = w_.dropout("dropout", w_.linear("o_net", rows, c_.hidden, false), c_.dropout);
    return w_.layer_norm("layer_norm", w_.apply(OpType::add, "add", {x, y}));
  }

  /// [tokens, batch, width] -> view [tokens, batch, heads, head_dim].
  TensorId by_head(const std::string& name, TensorId x) {
    return w_.reshape(name + ".view", x, {w_.dim(x, 0), s_.batch, c_.heads, c_.head_dim});
  }

  /// Scores by distance: queries of all samples against one set of keys, then each row shifted by its place.
  TensorId place_scores(TensorId q, TensorId r) {
    const TensorId biased = w_.apply(OpType::add, "q.place", {q, place_bias_});
    const TensorId grouped = w_.contiguous("q.grouped", w_.transpose("q.by_head", biased, {2, 1, 0, 3}));
    const TensorId rows = w_.reshape("q.rows", grouped, {c_.heads, s_.batch * s_.seq, c_.head_dim});
    const TensorId keys_view = w_.reshape("r.view", r, {keys(), c_.heads, c_.head_dim});
    const TensorId by_place = w_.apply(OpType::matmul, "place", {rows, w_.transpose("r.heads", keys_view, {1, 0, 2})},
                                       attributes({{"transpose_b", 1}}));
    w_.host_calls(kEinsumCalls);
    const TensorId four = w_.reshape("place.view", by_place, {c_.heads, s_.batch, s_.seq, keys()});
    return shifted(w_.transpose("place.heads", four, {1, 0, 2, 3}));
  }

  /// A column of zeros in front, read with another stride: row i moves i places.
  TensorId shifted(TensorId x) {
    // Zeros of the scores' own type, whatever that will be: booleans widen nothing.
    const TensorId zeros = w_.fill("shift.zeros", {s_.batch, c_.heads, s_.seq, 1}, DataType::boolean);
    const TensorId padded = w_.apply(OpType::concat, "shift", {zeros, x}, attributes({{"axis", 3}}));
    const TensorId turned = w_.reshape("shift.view", padded, {s_.batch, c_.heads, keys() + 1, s_.seq});
    const TensorId cut = w_.slice("shift.cut", turned, 2, 1, keys() + 1);
    return w_.reshape("shift.back", cut, {s_.batch, c_.heads, s_.seq, keys()});
  }

  TensorId feed_forward(TensorId x) {
    TensorId y = w_.apply(OpType::relu, "relu", {w_.linear("fc1", x, c_.ffn, true)});
    y = w_.linear("fc2", w_.dropout("inner_dropout", y, c_.dropout), c_.hidden, true);
    y = w_.dropout("dropout", y, c_.dropout);
    hidden_.push_back(x);
    return w_.layer_norm("layer_norm", w_.apply(OpType::add, "add", {x, y}));
  }

  /// The next segment's memory: the newest states of old memory and this segment, one copy per layer.
  void keep_memory() {
    w_.scope("memory");
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      const std::string number = std::to_string(i);
      const TensorId kept = w_.buffer("kept." + number, {memory_, s_.batch, c_.hidden});
      w_.apply(OpType::concat, "keep." + number, {kept, hidden_[i]}, attributes({{"axis", 0}}));
    }
  }

  const TransformerXlConfig& c_;
  const TokenSizes& s_;
  Dim memory_;
  Workload& workload_;
  GraphWriter w_;
  std::vector<TensorId> hidden_;
  TensorId visible_ = 0;
  TensorId lowest_ = 0;
  TensorId content_bias_ = 0;
  TensorId place_bias_ = 0;
};

}  // namespace

void build_transformer_xl(const TransformerXlConfig& config, const BuildOptions& options, Workload& workload) {
  const TokenSizes sizes = resolve_tokens(
      options, {.positions = 0, .learned_positions = false, .autoregressive = false, .usual = config.target}, workload,
      {"memory"});
  const Dim memory = resolve_dim(options, "memory", config.memory);
  if (!options.dims.contains("memory"))
    workload.assumptions.push_back("memory of " + std::to_string(memory) + " tokens (--dim memory=N)");
  workload.assumptions.emplace_back("92, 3, 4 and 1 of 100 words fall into the clusters of the adaptive softmax");
  if (sizes.flash) workload.assumptions.emplace_back("attention runs unfused: relative positions have no flash kernel");
  TransformerXl(config, sizes, memory, workload).build();
}

}  // namespace voltaic::workloads
