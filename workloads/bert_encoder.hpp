// SPDX-License-Identifier: MIT
// The encoder that BERT and its relatives share: embeddings and post-norm blocks, without a head.
#pragma once

#include <string>
#include <utility>

#include "workloads/families.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

struct BertInputs {
  TensorId ids = 0, types = 0, positions = 0;
};
/// Tables that several networks may share.
struct BertTables {
  TensorId words = 0, types = 0, positions = 0;
};

/// --dim masked: positions of a sample that a head over masked tokens reads; 0 where nobody said.
Dim masked_positions(const BuildOptions& options, const TokenSizes& sizes, const Workload& workload);

BertInputs bert_inputs(GraphWriter& w, const TokenSizes& sizes);
BertTables bert_tables(GraphWriter& w, const BertConfig& config);

class BertEncoder {
 public:
  /// `prefix` stands in front of the names of all layers: "generator.".
  BertEncoder(const BertConfig& config, const TokenSizes& sizes, GraphWriter& writer, std::string prefix)
      : c_(config), s_(sizes), w_(writer), prefix_(std::move(prefix)) {}

  /// The hidden states of the last layer, [batch, seq, hidden].
  TensorId run(const BertInputs& inputs, const BertTables& tables);
  /// The blocks alone, over x [batch, seq, hidden] without a mask.
  TensorId blocks(TensorId x);

 private:
  TensorId embeddings(const BertInputs& inputs, const BertTables& tables);
  TensorId attention_mask();
  TensorId attention(TensorId x);
  TensorId unfused(TensorId q, TensorId k, TensorId v);
  TensorId feed_forward(TensorId x);

  const BertConfig& c_;
  const TokenSizes& s_;
  GraphWriter& w_;
  std::string prefix_;
  TensorId mask_ = 0;  ///< 0: every token sees every other.
};

}  // namespace voltaic::workloads
