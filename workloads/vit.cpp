// SPDX-License-Identifier: MIT
// Vision transformer with a class token, pre-norm blocks and a linear classifier.
#include <cmath>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"

namespace voltaic::workloads {
namespace {

class Vit {
 public:
  Vit(const VitConfig& config, const ImageSizes& sizes, bool flash, Workload& workload)
      : c_(config), s_(sizes), flash_(flash), workload_(workload), w_(workload.graph, workload.name, sizes.training) {}

  void build() {
    TensorId x = embeddings();
    for (Dim i = 0; i < c_.layers; ++i) {
      const std::string layer = "encoder.layer." + std::to_string(i);
      w_.scope(layer + ".attention");
      x = attention(x);
      w_.scope(layer + ".mlp");
      x = feed_forward(x);
    }
    w_.scope("head");
    x = w_.layer_norm("norm", x);
    x = w_.reshape("class_token", w_.slice("slice", x, 1, 0, 1), {s_.batch, c_.hidden});
    const TensorId logits = w_.linear("classifier", x, c_.labels, true);
    if (s_.training) {
      w_.scope("loss");
      const TensorId labels = w_.input("labels", {s_.batch}, DataType::int64);
      w_.graph().loss = w_.apply(OpType::cross_entropy, "cross_entropy", {logits, labels});
    }
    finish(workload_, logits);
  }

 private:
  std::int64_t head_dim() const { return c_.hidden / c_.heads; }

  TensorId embeddings() {
    w_.scope("embeddings");
    const Dim edge = c_.image / c_.patch;
    const TensorId image = w_.input("pixel_values", {s_.batch, c_.channels, s_.height, s_.width});
    const TensorId weight = w_.parameter("projection.weight", {c_.hidden, c_.channels, c_.patch, c_.patch});
    const TensorId bias = w_.parameter("projection.bias", {c_.hidden});
    const TensorId class_token = w_.parameter("cls_token", {1, 1, c_.hidden});
    const TensorId positions = w_.parameter("position_embeddings", {1, edge * edge + 1, c_.hidden});
    TensorId x = w_.apply(OpType::conv2d, "projection", {image, weight, bias}, attributes({{"stride", c_.patch}}));
    x = w_.transpose("tokens", w_.reshape("flatten", x, {s_.batch, c_.hidden, edge * edge}), {0, 2, 1});
    const TensorId first =
        w_.apply(OpType::expand, "cls_expand", {class_token}, attributes({{"shape", Shape{s_.batch, 1, c_.hidden}}}));
    x = w_.apply(OpType::concat, "concat", {first, x}, attributes({{"axis", 1}}));
    return w_.dropout("dropout", w_.apply(OpType::add, "add", {x, positions}), c_.hidden_dropout);
  }

  TensorId attention(TensorId x) {
    const TensorId normed = w_.layer_norm("norm", x);
    const TensorId q_rows = w_.linear("query", normed, c_.hidden, c_.qkv_bias);
    const TensorId k = split_heads(w_, "key", w_.linear("key", normed, c_.hidden, c_.qkv_bias), c_.heads);
    const TensorId v = split_heads(w_, "value", w_.linear("value", normed, c_.hidden, c_.qkv_bias), c_.heads);
    const TensorId q = split_heads(w_, "query", q_rows, c_.heads);
    TensorId y = flash_ ? flash_attention(w_, q, k, v, false) : unfused(q, k, v);
    y = merge_heads(w_, "merge", y, flash_);
    y = w_.dropout("output.dropout", w_.linear("output", y, c_.hidden, true), c_.hidden_dropout);
    return w_.apply(OpType::add, "add", {y, x});
  }

  TensorId unfused(TensorId q, TensorId k, TensorId v) {
    TensorId p = attention_scores(w_, q, k, false, false);
    p = w_.scalar(OpType::div_scalar, "scale", p, std::sqrt(static_cast<double>(head_dim())));
    p = w_.apply(OpType::softmax, "softmax", {p});
    return attention_context(w_, w_.dropout("dropout", p, c_.attention_dropout), v, false);
  }

  TensorId feed_forward(TensorId x) {
    TensorId y = w_.linear("intermediate", w_.layer_norm("norm", x), c_.ffn, true);
    y = w_.linear("output", w_.activation("activation", y, c_.activation), c_.hidden, true);
    return w_.apply(OpType::add, "add", {w_.dropout("dropout", y, c_.hidden_dropout), x});
  }

  const VitConfig& c_;
  const ImageSizes& s_;
  bool flash_;
  Workload& workload_;
  GraphWriter w_;
};

}  // namespace

void build_vit(const VitConfig& config, const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, config.image, workload);
  if (sizes.height != config.image || sizes.width != config.image) {
    throw ConfigError(workload.name, "",
                      "expected the " + std::to_string(config.image) + "x" + std::to_string(config.image) +
                          " image of its position table, got " + std::to_string(sizes.height) + "x" +
                          std::to_string(sizes.width));
  }
  Vit(config, sizes, options.attention == AttentionForm::flash, workload).build();
}

}  // namespace voltaic::workloads
