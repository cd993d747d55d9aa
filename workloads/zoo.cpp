// SPDX-License-Identifier: MIT
#include "workloads/zoo.hpp"

#include <array>

#include "arch/units/embedded.hpp"

namespace voltaic {
std::span<const EmbeddedFile> embedded_models();
}

namespace voltaic::workloads {
namespace {

/// Networks that a configuration in models/NAME.json describes, with one line about each.
constexpr std::array<std::array<const char*, 3>, 52> kConfigurations{{
    {"vit-b16", "vit", "ViT-B/16, 1000 classes, 224x224"},
    {"vit-b32", "vit", "ViT-B/32, 1000 classes, 224x224"},
    {"vit-l16", "vit", "ViT-L/16, 1000 classes, 224x224"},
    {"vit-h14", "vit", "ViT-H/14, 1000 classes, 224x224"},
    {"bert-base", "bert", "BERT base, uncased: 12 layers of width 768"},
    {"bert-base-squad", "bert", "BERT base with the head of question answering"},
    {"bert-large", "bert", "BERT large, uncased: 24 layers of width 1024"},
    {"bert-large-squad", "bert", "BERT large with the head of question answering"},
    {"electra-base-squad", "electra", "ELECTRA base discriminator with the head of question answering"},
    {"electra-large-squad", "electra", "ELECTRA large discriminator with the head of question answering"},
    {"gpt2", "gpt2", "GPT-2, 124 M parameters"},
    {"gpt2-medium", "gpt2", "GPT-2 medium, 355 M parameters"},
    {"gpt2-large", "gpt2", "GPT-2 large, 774 M parameters"},
    {"gpt2-xl", "gpt2", "GPT-2 XL, 1558 M parameters"},
    {"gpt3-xl", "gpt2", "GPT-3 XL shape: 24 layers of width 3072, heads of 128"},
    {"gpt3-2.7b", "gpt2", "GPT-3 2.7B shape: 32 layers of width 2560"},
    {"gpt3-175b", "gpt2", "GPT-3 175B shape: 96 layers of width 12288"},
    {"opt-125m", "opt", "OPT 125M: 12 layers of width 768"},
    {"opt-1.3b", "opt", "OPT 1.3B: 24 layers of width 2048"},
    {"opt-2.7b", "opt", "OPT 2.7B: 32 layers of width 2560"},
    {"opt-6.7b", "opt", "OPT 6.7B: 32 layers of width 4096"},
    {"opt-13b", "opt", "OPT 13B: 40 layers of width 5120"},
    {"opt-30b", "opt", "OPT 30B: 48 layers of width 7168"},
    {"llama-7b", "llama", "LLaMA 7B"},
    {"llama-2-7b", "llama", "Llama 2 7B"},
    {"llama-2-13b", "llama", "Llama 2 13B"},
    {"llama-2-70b", "llama", "Llama 2 70B: grouped-query attention, 8 key-value heads"},
    {"llama-3-8b", "llama", "Llama 3 8B: grouped-query attention, 8 key-value heads"},
    {"llama-3-70b", "llama", "Llama 3 70B: grouped-query attention, 8 key-value heads"},
    {"llama-3.1-8b", "llama", "Llama 3.1 8B: grouped-query attention, 8 key-value heads"},
    {"llama-3.1-70b", "llama", "Llama 3.1 70B: grouped-query attention, 8 key-value heads"},
    {"llama-3.1-405b", "llama", "Llama 3.1 405B: grouped-query attention, 8 key-value heads"},
    {"llama-3.2-1b", "llama", "Llama 3.2 1B: tied embeddings"},
    {"llama-3.2-3b", "llama", "Llama 3.2 3B: tied embeddings"},
    {"mistral-7b", "mistral", "Mistral 7B v0.1: sliding window of 4096"},
    {"qwen2-7b", "qwen2", "Qwen2 7B"},
    {"qwen2.5-0.5b", "qwen2", "Qwen2.5 0.5B: tied embeddings"},
    {"qwen2.5-1.5b", "qwen2", "Qwen2.5 1.5B: tied embeddings"},
    {"qwen2.5-3b", "qwen2", "Qwen2.5 3B: tied embeddings"},
    {"qwen2.5-7b", "qwen2", "Qwen2.5 7B"},
    {"qwen2.5-14b", "qwen2", "Qwen2.5 14B"},
    {"qwen2.5-32b", "qwen2", "Qwen2.5 32B"},
    {"qwen2.5-72b", "qwen2", "Qwen2.5 72B"},
    {"qwen3-8b", "qwen3", "Qwen3 8B: norms on queries and keys"},
    {"mixtral-8x7b", "mixtral", "Mixtral 8x7B: 8 experts, 2 per token"},
    {"mixtral-8x22b", "mixtral", "Mixtral 8x22B: 8 experts, 2 per token"},
    {"t5-small", "t5", "T5 small: 6 + 6 layers of width 512"},
    {"t5-base", "t5", "T5 base: 12 + 12 layers of width 768"},
    {"t5-large", "t5", "T5 large: 24 + 24 layers of width 1024"},
    {"t5-3b", "t5", "T5 3B: 24 + 24 layers, 32 heads of 128"},
    {"t5-11b", "t5", "T5 11B: 24 + 24 layers, 128 heads of 128"},
    {"switch-xl", "switch_transformers", "Switch Transformer shape: 24 + 24 layers, 4 experts, capacity 64"},
}};

std::array<std::span<const ZooModel>, 10> built_models() {
  return {classification_models(), detection_models(),   segmentation_models(), vision_transformer_models(),
          language_models(),       translation_models(), speech_models(),       recommendation_models(),
          generative_models(),     graph_models()};
}

std::optional<Workload> build_configuration(const std::string& name, const BuildOptions& options) {
  const std::string file = name + ".json";
  for (const EmbeddedFile& model : embedded_models()) {
    if (model.name != file) continue;
    Workload workload = import_huggingface(model.text, name, options);
    workload.kind = "zoo";
    return workload;
  }
  return std::nullopt;
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = [] {
    std::vector<ZooEntry> all;
    for (const auto& models : built_models()) {
      for (const ZooModel& m : models) all.push_back({m.name, m.family, m.description});
    }
    for (const auto& [name, family, description] : kConfigurations) all.push_back({name, family, description});
    return all;
  }();
  return entries;
}

std::optional<Workload> build_zoo(const std::string& name, const BuildOptions& options) {
  for (const auto& models : built_models()) {
    for (const ZooModel& model : models) {
      if (name != model.name) continue;
      Workload workload;
      workload.name = name;
      workload.kind = "zoo";
      model.build(options, workload);
      return workload;
    }
  }
  return build_configuration(name, options);
}

}  // namespace voltaic::workloads
