// SPDX-License-Identifier: MIT
// Encoder-decoder networks over tokens: transformers with post-norm blocks, and GNMT.
#pragma once

#include "workloads/builder.hpp"
#include "workloads/graph_writer.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

/// A transformer of [Vaswani17] or BART: one embedding table for both sides and the output layer.
struct EncoderDecoderConfig {
  Dim layers = 0;  ///< On each side.
  Dim hidden = 0, heads = 0, ffn = 0, vocab = 0;
  Dim positions = 0;   ///< Rows of a learned table; 0: sinusoids.
  Dim longest = 1024;  ///< Tokens of a sequence.
  Dim usual = 0;       ///< Tokens of a sequence when nobody says.
  double dropout = 0.1, attention_dropout = 0.1, activation_dropout = 0;
  double label_smoothing = 0;  ///< 0: plain cross entropy.
  Activation activation = Activation::relu;
  bool scaled_embeddings = true;  ///< Times the square root of the width.
  bool norm_embeddings = false;
  bool joint_projections = true;  ///< Queries, keys and values of self-attention in one product.
};

/// Sizes of both sides. In phases: prefill encodes and starts each answer, decode adds one token to it.
struct PairSizes {
  TokenSizes tokens;
  Dim source = 1;  ///< Tokens of a sample that the encoder reads.
  Dim target = 1;  ///< Tokens of a sample that pass through the decoder.
  Dim beam = 1;    ///< Answers of a sample that the decoder carries on with.

  Dim rows() const { return tokens.batch * beam; }
  Dim cached() const { return tokens.decode() ? tokens.context : target; }
};
PairSizes resolve_pair(const BuildOptions& options, const TokenLimits& limits, Workload& workload);

void build_encoder_decoder(const EncoderDecoderConfig& config, const BuildOptions& options, Workload& workload);
void build_gnmt(const BuildOptions& options, Workload& workload);

/// Label-smoothed cross entropy as written out in frameworks: log softmax, the labels' terms and the sum over all
/// classes. Sets the loss of the graph. `logits` [rows, classes].
void smoothed_loss(GraphWriter& w, TensorId logits, double smoothing);

/// Closes a step of generation: the best `beam` continuations of each sample out of logits [rows, 1, classes].
TensorId choose_tokens(GraphWriter& w, const PairSizes& sizes, TensorId logits);

}  // namespace voltaic::workloads
