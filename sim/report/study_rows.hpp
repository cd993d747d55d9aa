// SPDX-License-Identifier: MIT
// Answers over several predictions, as tables and JSON show them. Filled by sim/study, computed nowhere else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/report/prediction.hpp"

namespace voltaic::report {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// One side of a comparison.
struct CompareRow {
  std::string label;  ///< What differs: "a100-sxm4-80gb", "fp16".
  Settings request;   ///< Every option as resolved.
  Seconds time;
  Interval interval;
  double samples_per_s = 0;
  double speedup = 1;  ///< First row's time over this one's.
  std::int64_t memory_bytes = 0;
  bool fits = true;
  Optional energy_j, average_power_w;
  std::string reason;  ///< Why not more: one sentence.
};

/// Layers of one kind (matrix products, softmax, ...) on every side.
struct LayerClass {
  std::string name;
  std::vector<Seconds> time;       ///< One per row.
  std::vector<std::string> bound;  ///< What holds it on each side: "fma", "dram".
  std::vector<double> speedup;     ///< First over each.
  std::string reason;
};

/// Equal operations of the workload, side by side.
struct ComparedLayer {
  std::string name;  ///< With '*' for numbers that differ.
  std::string op;
  graph::Phase phase = graph::Phase::forward;
  double count = 0;
  std::string shape;          ///< "m = 4096, n = 1024, k = 1024" of products, else empty.
  std::vector<Seconds> time;  ///< All of them together, one per row; 0 where a row lacks them.
  std::vector<std::string> bound;
  std::vector<double> speedup;
  std::string reason;
};

struct Comparison {
  std::vector<CompareRow> rows;
  std::vector<LayerClass> layer_classes;
  std::vector<ComparedLayer> layers;  ///< Where rows differ in precision or sparsity; longest first.
};

struct SweepPoint {
  Settings set;       ///< The swept options of this point, in the order given.
  std::string error;  ///< Not empty: this point has no answer (does not exist on the GPU, ...).
  Seconds time;
  double samples_per_s = 0;
  std::optional<double> tokens_per_s;
  std::int64_t memory_bytes = 0;
  bool fits = true;
  Optional energy_j, average_power_w;
  Optional cost_usd;
};

/// What `show workload` shows of one layer.
struct WorkloadLayer {
  std::string id;
  std::string op;
  std::string output_shape;  ///< "[8, 512, 1024]"
  std::int64_t parameters = 0;
  double mac = 0;
  double flop = 0;
};
struct WorkloadView {
  std::string name, kind, input_path, input_sha256;
  std::int64_t parameters = 0;
  std::int64_t parameters_active_per_token = 0;
  double mac = 0, flop = 0;
  double kv_cache_bytes_per_token = 0;
  std::vector<WorkloadLayer> layers;
};
/// Layers, parameters and work of `graph` (forward, before any pass); the caller fills name, kind and the other facts.
WorkloadView view_workload(const graph::OpGraph& graph);

}  // namespace voltaic::report
