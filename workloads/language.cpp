// SPDX-License-Identifier: MIT
// Language models of the zoo beyond what model configurations describe.
#include "workloads/language.hpp"

#include "workloads/families.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

BertConfig electra_network(Dim layers, Dim hidden, Dim heads, Dim embedding_width) {
  BertConfig c;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.ffn = 4 * hidden;
  c.vocab = 30522;
  c.positions = 512;
  c.embedding_width = embedding_width;
  return c;
}

void electra_base(const BuildOptions& options, Workload& workload) {
  build_electra({.discriminator = electra_network(12, 768, 12, 768), .generator = electra_network(12, 256, 4, 768)},
                options, workload);
}

void electra_large(const BuildOptions& options, Workload& workload) {
  build_electra({.discriminator = electra_network(24, 1024, 16, 1024), .generator = electra_network(24, 256, 4, 1024)},
                options, workload);
}

void transformer_xl_base(const BuildOptions& options, Workload& workload) {
  TransformerXlConfig c;
  c.layers = 16;
  c.hidden = 512;
  c.heads = 8;
  c.head_dim = 64;
  c.ffn = 2048;
  c.target = c.memory = 192;
  build_transformer_xl(c, options, workload);
}

void transformer_xl_large(const BuildOptions& options, Workload& workload) {
  TransformerXlConfig c;
  c.layers = 18;
  c.hidden = 1024;
  c.heads = 16;
  c.head_dim = 64;
  c.ffn = 4096;
  c.target = c.memory = 384;
  c.divisor = 4;
  c.dropout = 0.2;
  c.attention_dropout = 0.2;
  build_transformer_xl(c, options, workload);
}

void wav2vec2_base(const BuildOptions& options, Workload& workload) {
  build_wav2vec2({.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072}, options, workload);
}

void tft(const BuildOptions& options, Workload& workload) {
  build_fusion_transformer({.series = 369}, options, workload);
}

constexpr ZooModel kModels[] = {
    {"electra-base", "electra", "ELECTRA base: pre-training of generator and discriminator", electra_base},
    {"electra-large", "electra", "ELECTRA large: pre-training of generator and discriminator", electra_large},
    {"transformer-xl-base", "transformer_xl", "Transformer-XL: 16 layers of width 512, WikiText-103",
     transformer_xl_base},
    {"transformer-xl-large", "transformer_xl", "Transformer-XL large: 18 layers of width 1024, WikiText-103",
     transformer_xl_large},
    {"wav2vec2-base", "wav2vec2", "wav2vec 2.0 base with a head of 32 letters, 16 kHz audio", wav2vec2_base},
    {"tft", "tft", "Temporal fusion transformer of width 128: 168 hours of 369 meters, 24 ahead", tft},
};

}  // namespace

std::span<const ZooModel> language_models() {
  return kModels;
}

}  // namespace voltaic::workloads
