// SPDX-License-Identifier: MIT
// Model families: the numbers that define a network, and the builder of its graph.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/builder.hpp"
#include "workloads/graph_writer.hpp"

namespace voltaic::workloads {

enum class BertHead : std::uint8_t { pretraining, question_answering };

struct BertConfig {
  Dim layers = 0, hidden = 0, heads = 0, ffn = 0, vocab = 0, positions = 0, types = 2;
  Dim embedding_width = 0;  ///< 0: hidden. Else a dense layer follows the embeddings.
  BertHead head = BertHead::pretraining;
  double hidden_dropout = 0.1, attention_dropout = 0.1;
  Activation activation = Activation::gelu;
};

/// A discriminator that tells replaced tokens from real ones. In training a generator of the same width of embeddings,
/// whose tables it shares, replaces the masked tokens; no layers: there is none.
struct ElectraConfig {
  BertConfig discriminator;
  BertConfig generator;
};

struct Gpt2Config {
  Dim layers = 0, hidden = 0, heads = 0, ffn = 0, vocab = 0, positions = 0;
  Dim head_dim = 0;  ///< 0: hidden / heads. Else the part of a layer that one GPU of a tensor-parallel group holds.
  double residual_dropout = 0.1, embedding_dropout = 0.1, attention_dropout = 0.1;
  Activation activation = Activation::gelu_new;
  bool tied_embeddings = true;
};

struct OptConfig {
  Dim layers = 0, hidden = 0, heads = 0, ffn = 0, vocab = 0, positions = 0, embedding_width = 0;
  double dropout = 0.1, attention_dropout = 0;
  Activation activation = Activation::relu;
  bool norm_before = true, bias = true, tied_embeddings = true;
};

/// llama, mistral, qwen2, qwen3 and, with experts, mixtral.
struct LlamaConfig {
  Dim layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 0;
  Dim window = 0;              ///< Sliding window in tokens; 0: none.
  Dim experts = 0, top_k = 0;  ///< 0: one dense feed-forward block.
  double attention_dropout = 0;
  Activation activation = Activation::silu;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, qk_norm = false, tied_embeddings = false;
};

/// t5, and with experts switch_transformers.
struct T5Config {
  Dim encoder_layers = 0, decoder_layers = 0, hidden = 0, heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 512;
  Dim buckets = 32;
  double dropout = 0.1;
  Activation activation = Activation::relu;
  bool gated = false, tied_embeddings = true;
  Dim experts = 0, capacity = 0;           ///< Capacity: tokens per expert and sample.
  Dim encoder_step = 0, decoder_step = 0;  ///< Every n-th layer is sparse; 0: none.
};

struct VitConfig {
  Dim layers = 0, hidden = 0, heads = 0, ffn = 0, image = 224, patch = 16, channels = 3, labels = 0;
  double hidden_dropout = 0, attention_dropout = 0;
  Activation activation = Activation::gelu;
  bool qkv_bias = true;
};

/// Each fills workload.graph and its figures; workload.name is set by the caller.
void build_bert(const BertConfig& config, const BuildOptions& options, Workload& workload);
void build_electra(const ElectraConfig& config, const BuildOptions& options, Workload& workload);
void build_gpt2(const Gpt2Config& config, const BuildOptions& options, Workload& workload);
void build_opt(const OptConfig& config, const BuildOptions& options, Workload& workload);
void build_llama(const LlamaConfig& config, const BuildOptions& options, Workload& workload);
void build_t5(const T5Config& config, const BuildOptions& options, Workload& workload);
void build_vit(const VitConfig& config, const BuildOptions& options, Workload& workload);

}  // namespace voltaic::workloads
