// SPDX-License-Identifier: MIT
// Embeddings and softmax over a large vocabulary in clusters by frequency [Grave17], with one set of weights for both.
#pragma once

#include <array>
#include <string>

#include "workloads/graph_writer.hpp"
#include "workloads/language.hpp"

namespace voltaic::workloads {

class AdaptiveWords {
 public:
  static constexpr std::size_t kClusters = kWordClusters.size() - 1;

  /// `divisor` 1: one table of full width. Else tables that are `divisor` times narrower from cluster to cluster, with
  /// a projection each; all but the first are shared with the softmax.
  AdaptiveWords(GraphWriter& writer, Dim hidden, Dim divisor);

  /// ids [tokens, batch] -> [tokens, batch, hidden], scaled by the square root of the width.
  TensorId embed(TensorId ids);
  /// Negative log likelihood of each row of hidden states [rows, hidden].
  TensorId losses(TensorId rows);

 private:
  Dim width(std::size_t cluster) const;
  static Dim words(std::size_t cluster) { return kWordClusters.at(cluster + 1) - kWordClusters.at(cluster); }
  /// Places of the ids that belong to a cluster, [count].
  TensorId members(const std::string& name, TensorId ids, std::size_t cluster, Dim count);
  TensorId embed_cluster(TensorId flat, std::size_t cluster, Dim count);
  TensorId logits(const std::string& name, TensorId rows, std::size_t cluster);
  /// Log likelihood of the members of one cluster, put in their places.
  TensorId cluster_losses(TensorId rows, TensorId labels, TensorId head, std::size_t cluster, Dim count);
  TensorId picked(const std::string& name, TensorId scores);

  GraphWriter& w_;
  Dim hidden_;
  Dim divisor_;
  std::array<TensorId, kClusters> tables_{};       ///< Divisor 1: all the same.
  std::array<TensorId, kClusters> projections_{};  ///< [hidden, width] of the embeddings; not used where divisor is 1.
  std::array<TensorId, kClusters> biases_{};       ///< Of the softmax; divisor 1: all the same.
  TensorId head_projection_ = 0;                   ///< [width, hidden], the softmax's own.
  TensorId cluster_weight_ = 0;                    ///< The head's logits of the clusters.
  TensorId cluster_bias_ = 0;
};

}  // namespace voltaic::workloads
