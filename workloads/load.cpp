// SPDX-License-Identifier: MIT
// What a user names, told apart: zoo name, single operation, file or standard input.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arch/units/error.hpp"
#include "sim/graph/reader.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"
#include "workloads/import/json_fields.hpp"
#include "workloads/sha256.hpp"
#include "workloads/source.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const auto& entry : zoo()) names.push_back(entry.name);
  return names;
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

Workload load_workload(const std::string& what, const BuildOptions& options) {
  if (what.empty()) throw UsageError("workload: expected a zoo name, op:..., a file or -, got nothing");
  if (what.starts_with("op:")) return build_operation(what, options);
  if (what.starts_with("{")) return load_text(what, "configuration", options);
  if (auto known = build_zoo(what, options)) return *std::move(known);
  if (what == "-" || exists(what)) return load_file(what, options);
  if (looks_like_path(what)) return load_file(what, options);
  const std::string near = nearest(what, zoo_names());
  throw UsageError(fmt::format("workload '{}': no such model or file{}; see `voltaic list workloads`",
                               one_line(what, 80), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

}  // namespace voltaic::workloads
