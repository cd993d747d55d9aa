// SPDX-License-Identifier: MIT
// Language models that code builds.
#pragma once

#include <array>

#include "workloads/builder.hpp"
#include "workloads/graph_writer.hpp"

namespace voltaic::workloads {

/// Transformer-XL [Dai19] over words: relative positions, a memory of earlier segments, an adaptive softmax.
struct TransformerXlConfig {
  Dim layers = 0, hidden = 0, heads = 0, head_dim = 0, ffn = 0;
  Dim target = 0;   ///< Tokens of a segment, unless --seq says otherwise.
  Dim memory = 0;   ///< Hidden states kept from before, unless --dim memory says otherwise.
  Dim divisor = 1;  ///< Each cluster of rarer words has embeddings so many times narrower.
  double dropout = 0.1, attention_dropout = 0;
};
void build_transformer_xl(const TransformerXlConfig& config, const BuildOptions& options, Workload& workload);

/// wav2vec 2.0 [Baevski20]: seven convolutions over raw audio, a transformer, one score per letter and frame.
struct Wav2Vec2Config {
  Dim layers = 0, hidden = 0, heads = 0, ffn = 0;
  Dim letters = 32;
};
void build_wav2vec2(const Wav2Vec2Config& config, const BuildOptions& options, Workload& workload);

/// Temporal fusion transformer over hourly series.
struct FusionTransformerConfig {
  Dim hidden = 128, heads = 4;
  Dim past = 168, future = 24;  ///< Hours read and hours foretold.
  Dim series = 0;               ///< Entities, each with an embedding of its own.
  Dim known = 3;                ///< Variables known for all hours.
};
void build_fusion_transformer(const FusionTransformerConfig& config, const BuildOptions& options, Workload& workload);

/// The vocabulary of WikiText-103 in clusters by frequency: [first, last) word of each.
inline constexpr std::array<Dim, 5> kWordClusters{0, 19997, 39997, 199997, 267735};

/// Tokens of a batch that fall into each cluster; at least one.
std::array<Dim, 4> cluster_tokens(Dim tokens);

}  // namespace voltaic::workloads
