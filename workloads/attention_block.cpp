// SPDX-License-Identifier: MIT
#include "workloads/attention_block.hpp"

#include "arch/units/error.hpp"

namespace voltaic::workloads {

TensorId split_heads(GraphWriter& w, std::string_view name, TensorId x, Dim heads) {
  const std::string prefix(name);
  const Dim width = w.dim(x, -1);
  const TensorId split = w.reshape(prefix + ".view", x, {w.dim(x, 0), w.dim(x, 1), heads, width / heads});
  return w.transpose(prefix + ".heads", split, {0, 2, 1, 3});
}

TensorId merge_heads(GraphWriter& w, std::string_view name, TensorId x, bool packed) {
  const std::string prefix(name);
  const Dim batch = w.dim(x, 0);
  const Dim heads = w.dim(x, 1);
  const Dim seq = w.dim(x, 2);
  const Dim width = w.dim(x, 3);
  TensorId y = w.transpose(prefix + ".tokens", x, {0, 2, 1, 3});
  if (!packed) y = w.contiguous(prefix + ".contiguous", y);
  return w.reshape(prefix + ".view", y, {batch, seq, heads * width});
}

TensorId matmul_operand(GraphWriter& w, std::string_view name, TensorId x, bool packed) {
  const bool folds = packed || w.dim(x, 0) <= 1 || w.dim(x, 2) <= 1;
  return folds ? x : w.contiguous(name, x);
}

TensorId attention_scores(GraphWriter& w, TensorId q, TensorId k, bool q_packed, bool k_packed) {
  q = matmul_operand(w, "query.packed", q, q_packed);
  const bool folds = k_packed || w.dim(k, 0) <= 1 || w.dim(k, 2) <= 1;
  if (folds) {
    const TensorId scores = w.apply(OpType::matmul, "scores", {q, k}, attributes({{"transpose_b", 1}}));
    w.host_calls(1);
    return scores;
  }
  const TensorId k_t = w.contiguous("key.packed", w.transpose("key.transposed", k, {0, 1, 3, 2}));
  return w.apply(OpType::matmul, "scores", {q, k_t});
}

TensorId attention_context(GraphWriter& w, TensorId p, TensorId v, bool v_packed) {
  return w.apply(OpType::matmul, "context", {p, matmul_operand(w, "value.packed", v, v_packed)});
}

TensorId flash_attention(GraphWriter& w, TensorId q, TensorId k, TensorId v, bool causal, Dim window) {
  graph::Attributes attrs;
  if (causal) attrs.set("causal", std::int64_t{1});
  if (window > 0) attrs.set("window", window);
  return w.apply(OpType::attention, "attention", {q, k, v}, std::move(attrs));
}

std::pair<TensorId, TensorId> through_cache(GraphWriter& w, const TokenSizes& sizes, Dim layer, TensorId k,
                                            TensorId v, Dim window) {
  if (sizes.phase == RunPhase::whole) return {k, v};
  const std::string number = std::to_string(layer);
  const bool drops = window > 0 && sizes.seq > window;
  const auto kept = [&](const char* name, TensorId t) {
    return drops ? w.slice(name, t, 2, sizes.seq - window, sizes.seq) : t;
  };
  const TensorId written_k = w.apply(OpType::copy, "cache_key", {kept("kept_key", k)});
  const TensorId written_v = w.apply(OpType::copy, "cache_value", {kept("kept_value", v)});
  if (!sizes.decode()) {
    for (const auto& [id, kind] : {std::pair{written_k, "key"}, std::pair{written_v, "value"}}) {
      w.graph().tensor(id).role = graph::TensorRole::buffer;
      w.graph().tensor(id).name = "kv_cache." + number + "." + kind;
    }
    return {k, v};
  }
  Shape shape = w.shape(k);
  shape[2] = sizes.context;
  const TensorId cached_k = w.buffer("kv_cache." + number + ".key", shape);
  return {cached_k, w.buffer("kv_cache." + number + ".value", shape)};
}

void report_cache(Workload& workload, const TokenSizes& sizes, Dim layers, Dim kv_heads, Dim head_dim) {
  workload.kv_cache_elements_per_token =
      2.0 * static_cast<double>(layers) * static_cast<double>(kv_heads) * static_cast<double>(head_dim);
  workload.context = sizes.context;
  workload.kv_cache_tokens = sizes.phase == RunPhase::whole ? 0 : sizes.batch * sizes.context;
}

TensorId tokens_for_logits(GraphWriter& w, const TokenSizes& sizes, TensorId hidden) {
  if (!sizes.last_token_only() || sizes.seq == 1) return hidden;
  return w.slice("last_token", hidden, 1, sizes.seq - 1, sizes.seq);
}

void causal_loss(GraphWriter& w, TensorId logits) {
  const Dim batch = w.dim(logits, 0);
  const Dim seq = w.dim(logits, 1);
  const Dim vocab = w.dim(logits, 2);
  w.scope("loss");
  const Dim kept = seq > 1 ? seq - 1 : seq;  // one token has no successor: it stands for itself
  TensorId shifted = logits;
  if (kept != seq) shifted = w.contiguous("shifted_logits", w.slice("shift", logits, 1, 0, kept));
  const TensorId flat = w.reshape("view", shifted, {batch * kept, vocab});
  const TensorId labels = w.input("labels", {batch * kept}, DataType::int64);
  w.graph().loss = w.apply(OpType::cross_entropy, "cross_entropy", {flat, labels});
}

void finish(Workload& workload, TensorId output) {
  workload.graph.name = workload.name;
  workload.graph.outputs.push_back(output);
  if (workload.graph.loss != UINT32_MAX) workload.graph.outputs.push_back(workload.graph.loss);
  constexpr std::int64_t kMost = std::int64_t{1} << 62U;
  std::int64_t total = 0;
  for (const auto& tensor : workload.graph.tensors()) {
    if (tensor.role != graph::TensorRole::parameter) continue;
    const std::int64_t n = tensor.elements();
    if (n > kMost - total) throw ConfigError(workload.name, "", "expected at most 2^62 parameters, got more");
    total += n;
  }
  workload.parameters = total;
  workload.parameters_active_per_token = total;
}

}  // namespace voltaic::workloads
