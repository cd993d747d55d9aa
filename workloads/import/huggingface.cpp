// SPDX-License-Identifier: MIT
// Reads a Hugging Face config.json: one function per family turns its fields into the numbers of families.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "arch/units/error.hpp"
#include "workloads/families.hpp"
#include "workloads/import/json_fields.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kMostLayers = 4096;          // keeps a hostile file from building millions of nodes
constexpr Dim kWidest = Dim{1} << 24U;     // widths; products of two stay far from overflow
constexpr Dim kLongest = Dim{2147483647};  // vocabularies and positions

Dim width(const JsonFields& f, const char* key) {
  return f.integer(key, kWidest);
}
Dim layers(const JsonFields& f, const char* key) {
  return f.integer(key, kMostLayers);
}

/// Heads must share the hidden width out evenly.
Dim heads(const JsonFields& f, const char* key, Dim hidden, const char* hidden_key) {
  const Dim n = f.integer(key, kWidest);
  if (hidden % n != 0) f.refuse(key, fmt::format("expected a divisor of {} {}, got {}", hidden_key, hidden, n));
  return n;
}

Activation activation(const JsonFields& f, const char* key, const char* fallback) {
  static const std::pair<const char*, Activation> kKnown[] = {{"gelu", Activation::gelu},
                                                              {"gelu_new", Activation::gelu_new},
                                                              {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                              {"gelu_fast", Activation::gelu_new},
                                                              {"relu", Activation::relu},
                                                              {"silu", Activation::silu},
                                                              {"swish", Activation::silu},
                                                              {"tanh", Activation::tanh}};
  const std::string name = f.word_or(key, fallback);
  std::string names;
  for (const auto& [known, value] : kKnown) {
    if (name == known) return value;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw UnsupportedError(fmt::format("{}: /{}: activation '{}' is not supported; supported: {}", f.file(), key,
                                     one_line(name, 40), names));
}

BertConfig bert_fields(const JsonFields& f) {
  BertConfig c;
  c.hidden = width(f, "hidden_size");
  c.layers = layers(f, "num_hidden_layers");
  c.heads = heads(f, "num_attention_heads", c.hidden, "hidden_size");
  c.ffn = width(f, "intermediate_size");
  c.vocab = f.integer("vocab_size", kLongest);
  c.positions = f.integer("max_position_embeddings", kLongest);
  c.types = f.integer_or("type_vocab_size", 2, kLongest);
  c.hidden_dropout = f.share_or("hidden_dropout_prob", 0.1);
  c.attention_dropout = f.share_or("attention_probs_dropout_prob", 0.1);
  c.activation = activation(f, "hidden_act", "gelu");
  const std::string positions = f.word_or("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw UnsupportedError(fmt::format("{}: /position_embedding_type: '{}' is not supported; supported: absolute",
                                       f.file(), one_line(positions, 40)));
  }
  return c;
}

void bert(const JsonFields& f, const BuildOptions& options, Workload& out) {
  BertConfig c = bert_fields(f);
  if (f.lists("architectures", "BertForQuestionAnswering")) c.head = BertHead::question_answering;
  build_bert(c, options, out);
}

void electra(const JsonFields& f, const BuildOptions& options, Workload& out) {
  BertConfig c = bert_fields(f);
  c.embedding_width = f.integer_or("embedding_size", 128, kWidest);
  if (f.lists("architectures", "ElectraForQuestionAnswering")) {
    c.head = BertHead::question_answering;
    return build_bert(c, options, out);
  }
  build_electra({.discriminator = c, .generator = {}}, options, out);
}

void gpt2(const JsonFields& f, const BuildOptions& options, Workload& out) {
  Gpt2Config c;
  c.hidden = width(f, "n_embd");
  c.layers = layers(f, "n_layer");
  if (f.has("head_dim")) {
    c.heads = f.integer("n_head", kWidest);
    c.head_dim = f.integer("head_dim", 65536);
  } else {
    c.heads = heads(f, "n_head", c.hidden, "n_embd");
  }
  c.ffn = f.integer_or("n_inner", 4 * c.hidden, 4 * kWidest);
  c.vocab = f.integer("vocab_size", kLongest);
  c.positions = f.integer("n_positions", kLongest);
  c.residual_dropout = f.share_or("resid_pdrop", 0.1);
  c.embedding_dropout = f.share_or("embd_pdrop", 0.1);
  c.attention_dropout = f.share_or("attn_pdrop", 0.1);
  c.activation = activation(f, "activation_function", "gelu_new");
  c.tied_embeddings = f.flag_or("tie_word_embeddings", true);
  build_gpt2(c, options, out);
}

void opt(const JsonFields& f, const BuildOptions& options, Workload& out) {
  OptConfig c;
  c.hidden = width(f, "hidden_size");
  c.layers = layers(f, "num_hidden_layers");
  c.heads = heads(f, "num_attention_heads", c.hidden, "hidden_size");
  c.ffn = width(f, "ffn_dim");
  c.vocab = f.integer("vocab_size", kLongest);
  c.positions = f.integer("max_position_embeddings", kLongest);
  c.embedding_width = f.integer_or("word_embed_proj_dim", c.hidden, kWidest);
  c.dropout = f.share_or("dropout", 0.1);
  c.attention_dropout = f.share_or("attention_dropout", 0);
  c.activation = activation(f, "activation_function", "relu");
  c.norm_before = f.flag_or("do_layer_norm_before", true);
  c.bias = f.flag_or("enable_bias", true);
  c.tied_embeddings = f.flag_or("tie_word_embeddings", true);
  build_opt(c, options, out);
}

/// The fields that all llama-like families share.
LlamaConfig llama_fields(const JsonFields& f) {
  LlamaConfig c;
  c.hidden = width(f, "hidden_size");
  c.layers = layers(f, "num_hidden_layers");
  const bool own_head_dim = f.has("head_dim");
  c.heads = own_head_dim ? f.integer("num_attention_heads", kWidest)
                         : heads(f, "num_attention_heads", c.hidden, "hidden_size");
  c.head_dim = own_head_dim ? f.integer("head_dim", 65536) : c.hidden / c.heads;
  c.kv_heads = f.integer_or("num_key_value_heads", c.heads, kWidest);
  if (c.heads % c.kv_heads != 0) {
    f.refuse("num_key_value_heads",
             fmt::format("expected a divisor of num_attention_heads {}, got {}", c.heads, c.kv_heads));
  }
  c.ffn = width(f, "intermediate_size");
  c.vocab = f.integer("vocab_size", kLongest);
  c.positions = f.integer_or("max_position_embeddings", 0, kLongest);
  c.attention_dropout = f.share_or("attention_dropout", 0);
  c.activation = activation(f, "hidden_act", "silu");
  c.tied_embeddings = f.flag_or("tie_word_embeddings", false);
  return c;
}

void llama(const JsonFields& f, const BuildOptions& options, Workload& out) {
  LlamaConfig c = llama_fields(f);
  c.qkv_bias = c.output_bias = f.flag_or("attention_bias", false);
  c.mlp_bias = f.flag_or("mlp_bias", false);
  build_llama(c, options, out);
}

void mistral(const JsonFields& f, const BuildOptions& options, Workload& out) {
  LlamaConfig c = llama_fields(f);
  c.window = f.integer_or("sliding_window", 0, kLongest);
  build_llama(c, options, out);
}

void qwen(const JsonFields& f, const BuildOptions& options, Workload& out, bool third) {
  LlamaConfig c = llama_fields(f);
  c.qkv_bias = third ? f.flag_or("attention_bias", false) : true;
  c.output_bias = third && c.qkv_bias;
  c.qk_norm = third;
  if (third && !f.has("head_dim")) c.head_dim = 128;  // the family's default is not hidden_size / heads
  if (f.flag_or("use_sliding_window", false)) {
    c.window = f.integer_or("sliding_window", 0, kLongest);
    out.warnings.emplace_back("use_sliding_window: the window is applied to every layer");
  }
  build_llama(c, options, out);
}

void qwen2(const JsonFields& f, const BuildOptions& options, Workload& out) {
  qwen(f, options, out, false);
}
void qwen3(const JsonFields& f, const BuildOptions& options, Workload& out) {
  qwen(f, options, out, true);
}

void mixtral(const JsonFields& f, const BuildOptions& options, Workload& out) {
  LlamaConfig c = llama_fields(f);
  c.window = f.integer_or("sliding_window", 0, kLongest);
  c.experts = f.integer("num_local_experts", 4096);
  c.top_k = f.integer("num_experts_per_tok", 4096);
  if (c.top_k > c.experts)
    f.refuse("num_experts_per_tok", fmt::format("expected at most num_local_experts {}, got {}", c.experts, c.top_k));
  build_llama(c, options, out);
}

T5Config t5_fields(const JsonFields& f) {
  T5Config c;
  c.hidden = width(f, "d_model");
  c.head_dim = f.integer("d_kv", 65536);
  c.ffn = width(f, "d_ff");
  c.encoder_layers = layers(f, "num_layers");
  c.decoder_layers = f.integer_or("num_decoder_layers", c.encoder_layers, kMostLayers);
  c.heads = f.integer("num_heads", kWidest);
  c.vocab = f.integer("vocab_size", kLongest);
  c.positions = f.integer_or("n_positions", 512, kLongest);
  c.buckets = f.integer_or("relative_attention_num_buckets", 32, 65536);
  c.dropout = f.share_or("dropout_rate", 0.1);
  c.tied_embeddings = f.flag_or("tie_word_embeddings", true);
  return c;
}

void t5(const JsonFields& f, const BuildOptions& options, Workload& out) {
  T5Config c = t5_fields(f);
  const std::string projection = f.word_or("feed_forward_proj", "relu");
  c.gated = projection == "gated-gelu" || projection == "gated-silu";
  if (projection == "relu") {
    c.activation = Activation::relu;
  } else if (projection == "gelu" || projection == "gated-gelu") {
    c.activation = Activation::gelu_new;
  } else if (projection == "gated-silu" || projection == "silu") {
    c.activation = Activation::silu;
  } else {
    throw UnsupportedError(fmt::format(
        "{}: /feed_forward_proj: '{}' is not supported; supported: relu, gelu, silu, gated-gelu, gated-silu", f.file(),
        one_line(projection, 40)));
  }
  build_t5(c, options, out);
}

void switch_transformers(const JsonFields& f, const BuildOptions& options, Workload& out) {
  T5Config c = t5_fields(f);
  c.activation = activation(f, "dense_act_fn", "relu");
  c.experts = f.integer("num_experts", 4096);
  c.capacity = f.integer_or("expert_capacity", 64, kLongest);
  const auto step = [&](const char* key, Dim all) {
    const Dim sparse = f.integer_or(key, all / 2, kMostLayers, 0);
    return sparse == 0 ? 0 : std::max<Dim>(1, all / sparse);
  };
  c.encoder_step = step("num_sparse_encoder_layers", c.encoder_layers);
  c.decoder_step = step("num_sparse_decoder_layers", c.decoder_layers);
  build_t5(c, options, out);
}

void vit(const JsonFields& f, const BuildOptions& options, Workload& out) {
  VitConfig c;
  c.hidden = width(f, "hidden_size");
  c.layers = layers(f, "num_hidden_layers");
  c.heads = heads(f, "num_attention_heads", c.hidden, "hidden_size");
  c.ffn = width(f, "intermediate_size");
  c.image = f.edge_or("image_size", 224, 65536);
  c.patch = f.edge_or("patch_size", 16, 65536);
  if (c.patch > c.image)
    f.refuse("patch_size", fmt::format("expected at most image_size {}, got {}", c.image, c.patch));
  c.channels = f.integer_or("num_channels", 3, 65536);
  c.hidden_dropout = f.share_or("hidden_dropout_prob", 0);
  c.attention_dropout = f.share_or("attention_probs_dropout_prob", 0);
  c.qkv_bias = f.flag_or("qkv_bias", true);
  c.activation = activation(f, "hidden_act", "gelu");
  const Dim named = f.size_of("id2label");
  c.labels = f.integer_or("num_labels", named > 0 ? named : 2, kLongest);
  if (!f.has("num_labels") && named <= 0) out.assumptions.emplace_back("two labels: the configuration names none");
  build_vit(c, options, out);
}

using FamilyReader = void (*)(const JsonFields&, const BuildOptions&, Workload&);
constexpr std::array<std::pair<const char*, FamilyReader>, 12> kFamilies{{{"bert", bert},
                                                                          {"electra", electra},
                                                                          {"gpt2", gpt2},
                                                                          {"opt", opt},
                                                                          {"llama", llama},
                                                                          {"mistral", mistral},
                                                                          {"mixtral", mixtral},
                                                                          {"qwen2", qwen2},
                                                                          {"qwen3", qwen3},
                                                                          {"switch_transformers", switch_transformers},
                                                                          {"t5", t5},
                                                                          {"vit", vit}}};

}  // namespace

Workload import_huggingface(std::string_view text, const std::string& file, const BuildOptions& options) {
  const JsonFields fields(text, file);
  const std::string type = fields.word("model_type");
  Workload workload;
  workload.name = file;
  workload.kind = "huggingface config";
  std::string supported;
  for (const auto& [name, read] : kFamilies) {
    if (type == name) {
      if (fields.has("quantization_config"))
        workload.warnings.emplace_back("quantization_config is ignored; --precision decides");
      read(fields, options, workload);
      return workload;
    }
    supported += (supported.empty() ? "" : ", ") + std::string(name);
  }
  throw UnsupportedError(
      fmt::format("{}: /model_type: '{}' is not supported; supported: {}", file, one_line(type, 60), supported));
}

}  // namespace voltaic::workloads
