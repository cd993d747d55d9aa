// SPDX-License-Identifier: MIT
#include "workloads/adaptive_words.hpp"

#include <cmath>

namespace voltaic::workloads {

namespace {

constexpr std::array<double, 3> kTailShares{0.03, 0.04, 0.01};  // of the words of running text; assumed

graph::Attributes relation(const char* name, Dim value) {
  return attributes({{"relation", std::string(name)}, {"value", static_cast<double>(value)}});
}

}  // namespace

std::array<Dim, 4> cluster_tokens(Dim tokens) {
  std::array<Dim, 4> counts{tokens, 0, 0, 0};
  for (std::size_t i = 0; i < kTailShares.size(); ++i) {
    counts.at(i + 1) = std::lround(kTailShares.at(i) * static_cast<double>(tokens));
    counts[0] -= counts.at(i + 1);
  }
  return counts;
}

AdaptiveWords::AdaptiveWords(GraphWriter& writer, Dim hidden, Dim divisor)
    : w_(writer), hidden_(hidden), divisor_(divisor) {
  w_.scope("words");
  if (divisor_ == 1) {
    tables_.fill(w_.parameter("weight", {kWordClusters.back(), hidden_}));
    biases_.fill(w_.parameter("bias", {kWordClusters.back()}));
  } else {
    for (std::size_t i = 0; i < kClusters; ++i) {
      const std::string number = "." + std::to_string(i);
      tables_.at(i) = w_.parameter("weight" + number, {words(i), width(i)});
      projections_.at(i) = w_.parameter("projection" + number, {hidden_, width(i)});
      biases_.at(i) = w_.parameter("bias" + number, {words(i)});
    }
    head_projection_ = w_.parameter("head_projection", {width(0), hidden_});
  }
  const auto tails = static_cast<Dim>(kClusters - 1);
  cluster_weight_ = w_.parameter("cluster_weight", {tails, width(0)});
  cluster_bias_ = w_.parameter("cluster_bias", {tails});
}

Dim AdaptiveWords::width(std::size_t cluster) const {
  Dim width = hidden_;
  for (std::size_t i = 0; i < cluster; ++i) width /= divisor_;
  return width;
}

TensorId AdaptiveWords::members(const std::string& name, TensorId ids, std::size_t cluster, Dim count) {
  const TensorId from =
      w_.apply(OpType::compare_scalar, name + ".from", {ids}, relation("ge", kWordClusters.at(cluster)));
  const TensorId below =
      w_.apply(OpType::compare_scalar, name + ".below", {ids}, relation("lt", kWordClusters.at(cluster + 1)));
  const TensorId inside = w_.apply(OpType::mul, name + ".inside", {from, below});
  const TensorId flags = w_.apply(OpType::cast, name + ".flags", {inside}, attributes({{"to", std::string("int64")}}));
  const TensorId counted = w_.apply(OpType::cumsum, name + ".count", {flags}, attributes({{"axis", 0}}));
  return w_.slice(name, counted, 0, 0, count);
}

TensorId AdaptiveWords::embed(TensorId ids) {
  const Shape shape{w_.dim(ids, 0), w_.dim(ids, 1), hidden_};
  TensorId x = 0;
  if (divisor_ == 1) {
    x = w_.embedding("words", ids, tables_[0]);
  } else {
    const TensorId flat = w_.reshape("flat", ids, {shape[0] * shape[1]});
    const auto counts = cluster_tokens(shape[0] * shape[1]);
    bool first = true;
    for (std::size_t i = 0; i < kClusters; ++i) {
      if (counts.at(i) == 0) continue;
      const TensorId part = embed_cluster(flat, i, counts.at(i));
      x = first ? part : w_.apply(OpType::add, "joined" + std::to_string(i), {x, part});
      first = false;
    }
    x = w_.reshape("view", x, shape);
  }
  return w_.scalar(OpType::mul_scalar, "scale", x, std::sqrt(static_cast<double>(hidden_)));
}

TensorId AdaptiveWords::embed_cluster(TensorId flat, std::size_t cluster, Dim count) {
  const std::string name = "cluster" + std::to_string(cluster);
  const TensorId places = members(name + ".places", flat, cluster, count);
  const TensorId ids = w_.apply(OpType::gather, name + ".ids", {flat, places});
  const TensorId own =
      w_.scalar(OpType::sub_scalar, name + ".own_ids", ids, static_cast<double>(kWordClusters.at(cluster)));
  const TensorId narrow = w_.embedding(name + ".words", own, tables_.at(cluster));
  const TensorId wide = w_.apply(OpType::linear, name + ".projected", {narrow, projections_.at(cluster)});
  return w_.apply(OpType::scatter_add, name, {wide, places}, attributes({{"rows", w_.dim(flat, 0)}}));
}

/// Logits of a cluster's words; the first cluster's stand beside those of the other clusters.
TensorId AdaptiveWords::logits(const std::string& name, TensorId rows, std::size_t cluster) {
  TensorId weight = tables_.at(cluster);
  TensorId bias = biases_.at(cluster);
  if (divisor_ == 1) {
    const Dim first = kWordClusters.at(cluster);
    const Dim last = kWordClusters.at(cluster + 1);
    weight = w_.slice(name + ".weight", weight, 0, first, last);
    bias = w_.slice(name + ".bias", bias, 0, first, last);
  } else if (cluster == 0) {
    rows = w_.apply(OpType::linear, name + ".projected", {rows, head_projection_});
  } else {
    rows = w_.apply(OpType::linear, name + ".projected", {rows, projections_.at(cluster)},
                    attributes({{"transposed_weight", 1}}));
  }
  if (cluster == 0) {
    weight = w_.apply(OpType::concat, name + ".weights", {weight, cluster_weight_}, attributes({{"axis", 0}}));
    bias = w_.apply(OpType::concat, name + ".biases", {bias, cluster_bias_}, attributes({{"axis", 0}}));
  }
  return w_.apply(OpType::linear, name, {rows, weight, bias});
}

/// The label's element of each row of [rows, classes].
TensorId AdaptiveWords::picked(const std::string& name, TensorId scores) {
  const Dim rows = w_.dim(scores, 0);
  const TensorId flat = w_.reshape(name + ".flat", scores, {rows * w_.dim(scores, 1)});
  const TensorId places = w_.input(name + ".label_places", {rows}, DataType::int64);
  return w_.apply(OpType::gather, name, {flat, places});
}

TensorId AdaptiveWords::losses(TensorId rows) {
  const Dim all = w_.dim(rows, 0);
  const TensorId labels = w_.input("labels", {all}, DataType::int64);
  const TensorId head = w_.apply(OpType::log_softmax, "head.log_softmax", {logits("head", rows, 0)});
  const auto counts = cluster_tokens(all);
  TensorId sum = w_.fill("losses", {all}, DataType::fp32);
  for (std::size_t i = 0; i < kClusters; ++i) {
    if (counts.at(i) == 0) continue;
    const TensorId part = cluster_losses(rows, labels, head, i, counts.at(i));
    sum = w_.apply(OpType::add, "losses" + std::to_string(i), {sum, part});
  }
  return sum;
}

TensorId AdaptiveWords::cluster_losses(TensorId rows, TensorId labels, TensorId head, std::size_t cluster, Dim count) {
  const std::string name = "cluster" + std::to_string(cluster);
  const TensorId places = members(name + ".places", labels, cluster, count);
  const TensorId head_rows = w_.apply(OpType::gather, name + ".head", {head, places});
  TensorId likelihood = 0;
  if (cluster == 0) {
    likelihood = picked(name + ".likelihood", head_rows);
  } else {
    const Dim column = w_.dim(head, 1) - static_cast<Dim>(cluster);
    const TensorId of_cluster =
        w_.reshape(name + ".head_view", w_.slice(name + ".head_column", head_rows, 1, column, column + 1), {count});
    const TensorId own = logits(name, w_.apply(OpType::gather, name + ".rows", {rows, places}), cluster);
    const TensorId scores = w_.apply(OpType::log_softmax, name + ".log_softmax", {own});
    likelihood = w_.apply(OpType::add, name + ".likelihood", {of_cluster, picked(name + ".within", scores)});
  }
  const TensorId loss = w_.apply(OpType::neg, name + ".loss", {likelihood});
  return w_.apply(OpType::scatter_add, name + ".placed", {loss, places}, attributes({{"rows", w_.dim(rows, 0)}}));
}

}  // namespace voltaic::workloads
