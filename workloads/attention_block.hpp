// SPDX-License-Identifier: MIT
// The pieces of multi-head attention that eager transformers share.
#pragma once

#include <string>
#include <utility>

#include "workloads/graph_writer.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

/// [b, s, h * d] -> view [b, h, s, d].
TensorId split_heads(GraphWriter& w, std::string_view name, TensorId x, Dim heads);

/// [b, h, s, d] -> [b, s, h * d]. `packed`: x lies in memory as [b, s, h, d] already (flash attention leaves it so).
TensorId merge_heads(GraphWriter& w, std::string_view name, TensorId x, bool packed);

/// torch.matmul folds the batch and head dims into one; where strides forbid that (a permuted view and more than one
/// sample) it copies the operand first. `packed`: x is contiguous.
TensorId matmul_operand(GraphWriter& w, std::string_view name, TensorId x, bool packed);

/// q k^T of [b, h, s, d] operands with those copies.
TensorId attention_scores(GraphWriter& w, TensorId q, TensorId k, bool q_packed, bool k_packed);
/// p v of [b, h, s, t] and [b, h, t, d].
TensorId attention_context(GraphWriter& w, TensorId p, TensorId v, bool v_packed);

/// One fused attention kernel over [b, h, s, d] operands.
TensorId flash_attention(GraphWriter& w, TensorId q, TensorId k, TensorId v, bool causal, Dim window = 0);

/// Keys and values by way of the cache: written in prefill, written and read back whole in decode; as they are
/// otherwise. The cache read in decode holds `sizes.context` tokens, the newest among them; with a sliding window,
/// prefill writes the tokens of the window alone.
std::pair<TensorId, TensorId> through_cache(GraphWriter& w, const TokenSizes& sizes, Dim layer, TensorId k, TensorId v,
                                            Dim window = 0);
inline bool reads_cache(const TokenSizes& sizes) {
  return sizes.decode();
}

/// Fills the cache figures of the workload: elements per token over all layers, and tokens held.
void report_cache(Workload& workload, const TokenSizes& sizes, Dim layers, Dim kv_heads, Dim head_dim);

/// The last token of each sample in prefill and decode, all tokens otherwise.
TensorId tokens_for_logits(GraphWriter& w, const TokenSizes& sizes, TensorId hidden);

/// Cross entropy of each token against the next: shift, copy, flatten. Sets the loss of the graph.
void causal_loss(GraphWriter& w, TensorId logits);

/// Parameters of a finished graph, with its outputs; refuses more than 2^62.
void finish(Workload& workload, TensorId output);

}  // namespace voltaic::workloads
