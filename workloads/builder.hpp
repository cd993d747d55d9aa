// SPDX-License-Identifier: MIT
// From what a user names to a layer graph: zoo names, single operations, graph files and model configurations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::workloads {

enum class RunPhase : std::uint8_t { whole, prefill, decode };
enum class AttentionForm : std::uint8_t { unfused, flash };

/// The sizes and modes that shape a graph. Nullopt: the model's own default, reported in Workload::assumptions.
struct BuildOptions {
  bool training = false;
  RunPhase phase = RunPhase::whole;
  std::optional<std::int64_t> batch;    ///< Samples per step.
  std::optional<std::int64_t> seq;      ///< Tokens per sample (prompt in prefill).
  std::optional<std::int64_t> context;  ///< Tokens in the KV cache as attention reads it, the newest included (decode).
  std::optional<std::int64_t> image_height;
  std::optional<std::int64_t> image_width;
  std::map<std::string, std::int64_t> dims;  ///< --dim name=N
  AttentionForm attention = AttentionForm::unfused;
};

/// A graph of the forward pass (with its loss in training), all floating tensors fp32 before the precision pass.
struct Workload {
  graph::OpGraph graph;
  std::string name;
  std::string kind;                    ///< "zoo", "operation", "graph file", "huggingface config"
  std::string source_path;             ///< Files only.
  std::string source_sha256;           ///< Files only, lower-case hex.
  std::int64_t batch = 1;              ///< Samples per step as resolved.
  std::int64_t tokens_per_sample = 0;  ///< 0 for networks without tokens.
  std::int64_t context = 0;            ///< Keys that attention of a decoder sees in this pass; 0: not autoregressive.
  std::int64_t parameters = 0;
  std::int64_t parameters_active_per_token = 0;  ///< Smaller than parameters for mixtures of experts.
  double kv_cache_elements_per_token = 0;        ///< Per sample; times bytes per element of the precision.
  std::int64_t kv_cache_tokens = 0;              ///< Tokens cached in the whole batch at this phase.
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
};

/// Zoo names in a fixed order with one line about each.
struct ZooEntry {
  std::string name;
  std::string family;
  std::string description;
};
const std::vector<ZooEntry>& zoo();

/// `what` is a zoo name, "op:NAME,key=value,...", the text of a configuration (from its opening brace on), a path to a
/// voltaic.graph/1 or Hugging Face config.json file (kind found from content), or "-" for standard input. Throws
/// ConfigError, UnsupportedError or UsageError (see README.md for which when).
Workload load_workload(const std::string& what, const BuildOptions& options);

/// Importer of a Hugging Face config.json given as text.
Workload import_huggingface(std::string_view text, const std::string& file, const BuildOptions& options);
/// "op:matmul,m=4096,n=4096,k=4096".
Workload build_operation(std::string_view text, const BuildOptions& options);

}  // namespace voltaic::workloads
