// SPDX-License-Identifier: MIT
// What a user names, told apart: zoo name, single operation, file or standard input.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arch/units/embedded.hpp"
#include "arch/units/error.hpp"
#include "sim/graph/reader.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"
#include "workloads/import/json_fields.hpp"
#include "workloads/sha256.hpp"
#include "workloads/source.hpp"

namespace voltaic {
std::span<const EmbeddedFile> embedded_models();
}

namespace voltaic::workloads {
namespace {

/// Names that are promised and not there yet.
constexpr std::array<const char*, 2> kNotBuiltYet{"dlrm", "unet3d"};

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const auto& entry : zoo()) names.push_back(entry.name);
  return names;
}

Workload build_zoo(const std::string& name, const BuildOptions& options) {
  const std::string file = name + ".json";
  for (const EmbeddedFile& model : embedded_models()) {
    if (model.name != file) continue;
    Workload workload = import_huggingface(model.text, name, options);
    workload.kind = "zoo";
    return workload;
  }
  Workload workload;
  workload.name = name;
  workload.kind = "zoo";
  if (name == "vgg16") {
    build_vgg16(options, workload);
  } else {
    build_resnet(std::stoi(name.substr(std::string_view("resnet").size())), options, workload);
  }
  return workload;
}

/// Samples of a graph file: the leading dim of its first input.
std::int64_t leading_dim(const graph::OpGraph& graph) {
  for (const auto& tensor : graph.tensors()) {
    if (tensor.role == graph::TensorRole::input && !tensor.shape.empty()) return tensor.shape.front();
  }
  return 1;
}

/// `value` under `name`, unless --dim said otherwise: one of the two would be ignored without a word.
void set_dim(graph::DimValues& dims, const char* name, std::int64_t value) {
  const auto [at, fresh] = dims.emplace(name, value);
  if (!fresh && at->second != value) {
    throw UsageError(fmt::format("--{} {} and --dim {}={}: expected one value", name, value, name, at->second));
  }
}

Workload load_graph(const std::string& text, const std::string& file, const BuildOptions& options) {
  if (options.phase != RunPhase::whole)
    throw UnsupportedError(file + ": a graph file has no phases; leave --phase out");
  graph::DimValues dims(options.dims.begin(), options.dims.end());
  if (options.batch) set_dim(dims, "batch", *options.batch);
  if (options.seq) set_dim(dims, "seq", *options.seq);
  Workload workload;
  workload.kind = "graph file";
  workload.graph = graph::read_graph(text, file, dims, &workload.warnings);
  workload.name = workload.graph.name.empty() ? file : workload.graph.name;
  const bool batch_ignored = std::any_of(workload.warnings.begin(), workload.warnings.end(),
                                         [](const std::string& w) { return w.starts_with("batch ="); });
  workload.batch = options.batch && !batch_ignored ? *options.batch : leading_dim(workload.graph);
  workload.parameters = graph::parameter_count(workload.graph);
  workload.parameters_active_per_token = workload.parameters;
  if (!options.batch || batch_ignored)
    workload.assumptions.push_back(fmt::format("batch {}: the leading dim of the first input", workload.batch));
  if (options.training && workload.graph.loss == UINT32_MAX) {
    workload.assumptions.emplace_back("no loss in the graph: backward starts from the sum of its outputs");
  }
  return workload;
}

Workload load_text(const std::string& text, const std::string& file, const BuildOptions& options) {
  const ContentKind content = detect_kind(text);
  switch (content.kind) {
    case ContentKind::Kind::graph: return load_graph(text, file, options);
    case ContentKind::Kind::huggingface: return import_huggingface(text, file, options);
    case ContentKind::Kind::foreign:
      throw UnsupportedError(
          fmt::format("{}: this is {}, which is not built yet; readable: voltaic.graph/1, Hugging Face config.json",
                      file, content.name));
    case ContentKind::Kind::unknown: break;
  }
  throw ConfigError(file, "",
                    fmt::format("expected a voltaic.graph/1 file or a Hugging Face config.json, got {}",
                                content.name.empty() ? "something else" : content.name));
}

Workload load_file(const std::string& what, const BuildOptions& options) {
  const std::string text = read_source(what);
  const std::string shown = what == "-" ? "standard input" : one_line(what, 300);
  Workload workload = load_text(text, shown, options);
  workload.source_path = what;
  workload.source_sha256 = sha256(text);
  return workload;
}

bool looks_like_path(const std::string& what) {
  if (what.find('/') != std::string::npos) return true;
  const std::string suffix = std::filesystem::path(what).extension().string();
  constexpr std::array<const char*, 8> kSuffixes{".json", ".onnx", ".gz", ".txt", ".pb", ".et", ".bin", ".safetensors"};
  return std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end();
}

bool exists(const std::string& what) {
  std::error_code error;
  return std::filesystem::exists(what, error);
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries{
      {"resnet18", "convolution", "ResNet-18, 1000 classes, 224x224"},
      {"resnet50", "convolution", "ResNet-50, 1000 classes, 224x224"},
      {"resnet101", "convolution", "ResNet-101, 1000 classes, 224x224"},
      {"resnet152", "convolution", "ResNet-152, 1000 classes, 224x224"},
      {"vgg16", "convolution", "VGG-16, 1000 classes, 224x224"},
      {"vit-b16", "vit", "ViT-B/16, 1000 classes, 224x224"},
      {"bert-base", "bert", "BERT base, uncased: 12 layers of width 768"},
      {"bert-large", "bert", "BERT large, uncased: 24 layers of width 1024"},
      {"gpt2", "gpt2", "GPT-2, 124 M parameters"},
      {"gpt2-large", "gpt2", "GPT-2 large, 774 M parameters"},
      {"gpt3-xl", "gpt2", "GPT-3 XL shape: 24 layers of width 3072, heads of 128"},
      {"gpt3-2.7b", "gpt2", "GPT-3 2.7B shape: 32 layers of width 2560"},
      {"gpt3-175b", "gpt2", "GPT-3 175B shape: 96 layers of width 12288"},
      {"opt-1.3b", "opt", "OPT 1.3B: 24 layers of width 2048"},
      {"llama-2-7b", "llama", "Llama 2 7B"},
      {"llama-3.1-8b", "llama", "Llama 3.1 8B: grouped-query attention, 8 key-value heads"},
      {"mistral-7b", "mistral", "Mistral 7B v0.1: sliding window of 4096"},
      {"qwen2-7b", "qwen2", "Qwen2 7B"},
      {"mixtral-8x7b", "mixtral", "Mixtral 8x7B: 8 experts, 2 per token"},
      {"t5-large", "t5", "T5 large: 24 + 24 layers of width 1024"},
      {"switch-xl", "switch_transformers", "Switch Transformer shape: 24 + 24 layers, 4 experts, capacity 64"},
  };
  return entries;
}

Workload load_workload(const std::string& what, const BuildOptions& options) {
  if (what.empty()) throw UsageError("workload: expected a zoo name, op:..., a file or -, got nothing");
  if (what.starts_with("op:")) return build_operation(what, options);
  if (what.starts_with("{")) return load_text(what, "configuration", options);
  const std::vector<std::string> names = zoo_names();
  if (std::find(names.begin(), names.end(), what) != names.end()) return build_zoo(what, options);
  if (what == "-" || exists(what)) return load_file(what, options);
  if (std::find(kNotBuiltYet.begin(), kNotBuiltYet.end(), what) != kNotBuiltYet.end()) {
    throw UnsupportedError(fmt::format("{}: not built yet; there are: {}", what, fmt::join(names, ", ")));
  }
  if (looks_like_path(what)) return load_file(what, options);
  const std::string near = nearest(what, names);
  throw UsageError(fmt::format("workload '{}': no such model or file{}; see `voltaic list workloads`",
                               one_line(what, 80), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

}  // namespace voltaic::workloads
