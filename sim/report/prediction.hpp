// SPDX-License-Identifier: MIT
// The answer to one request: all that tables, JSON and pages show. Filled by sim/simulator.cpp, computed nowhere else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/op_graph.hpp"
#include "sim/kernel/kernel_cost.hpp"
#include "sim/report/kernel_profile.hpp"
#include "sim/report/memory_use.hpp"
#include "sim/report/sensitivity.hpp"
#include "sim/runtime/device.hpp"

namespace voltaic::report {

/// Shares of the total by what bounds it: the seven kernel bounds, then launch and communication. Sum to 1.
inline constexpr std::size_t kStepBounds = kernel::kBounds + 2;

struct KernelRow {
  kernel::Launch launch;
  kernel::KernelCost cost;
};

/// One distinct lowered node (repeats share it) and the instances that use it.
struct NodeRow {
  std::uint32_t node = 0;      ///< Index in the graph.
  std::uint32_t distinct = 0;  ///< Index into Prediction::distinct.
  double repeats = 1;          ///< Steps it stands for (--generate: all decode steps).
};
struct DistinctNode {
  std::vector<KernelRow> kernels;
  Seconds gpu_time;   ///< Sum of its kernels.
  Joules energy;      ///< Sum of its kernels.
  Seconds host_time;  ///< Dispatch, per instance.
  std::string unmodelled_reason;
  double unmodelled_bytes = 0;
};

/// A layer of the report: the nodes of one layer name and phase, in program order.
struct LayerRow {
  std::string id;
  std::string op;  ///< The operation, or "block" when several.
  graph::Phase phase = graph::Phase::forward;
  std::vector<std::uint32_t> nodes;
  Seconds time;     ///< Kernel time of its nodes.
  Joules energy;    ///< Of its kernels.
  double flop = 0;  ///< Of matrix products: 2 * mac.
  double mac = 0;
  double other_flop = 0;  ///< Outside products.
  double repeats = 1;     ///< Steps it stands for: its sums are over all of them, its nodes those of one in the middle.
};

struct Interval {
  Seconds low, high;
  double confidence = 0.9;
  std::string evidence;  ///< "measured", "interpolated" or "extrapolated"
};

struct Optional {
  std::optional<double> value;
  std::string reason;  ///< Why it is not known.
};

struct Unmodelled {
  std::string op;
  std::int64_t count = 0;
  std::string reason;
  double bytes = 0;
};

/// The same step under another power limit.
struct CapPoint {
  Watts cap;
  Seconds time;
  Joules energy;
};

/// The point of least energy, of several the one with the highest cap; null where there is none.
const CapPoint* least_energy(const std::vector<CapPoint>& points);

/// A whole completion: a prefill, which gives the first token, and a decode step for each further one.
struct Generation {
  std::int64_t prompt_tokens = 0, generated_tokens = 0;  ///< Per sample.
  Seconds time_to_first_token;
  Seconds mean, first, last;  ///< Time of a decode step: over all of them, with the shortest and the longest context.
  double decode_tokens_per_s = 0;  ///< All samples; 0 where the prefill is all.
  double output_tokens_per_s = 0;  ///< Generated tokens of all samples over the whole time.
};

struct Prediction {
  // request as resolved: name and value, in a fixed order
  std::vector<std::pair<std::string, std::string>> request;
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
  std::string workload;
  std::string gpu;
  std::string calibration_id;
  std::string input_path, input_sha256;

  Seconds total, forward, backward, optimizer;
  Seconds input_limit;  ///< What the input side needs for a step; 0: nothing was said about it.
  Seconds input_wait;   ///< Of forward: the GPU and the host wait until the samples are there.
  double share_kernels = 0, share_communication_exposed = 0, share_host_exposed = 0, share_idle = 0;
  Interval interval;
  double samples_per_s = 0;
  std::optional<double> tokens_per_s;
  double global_batch = 0;
  double flop = 0, mac = 0;  ///< flop = 2 * mac: products alone, as utilisation is counted.
  double other_flop = 0;     ///< Outside products.
  double model_flop_utilization = 0;
  FlopsPerSecond peak;
  std::string peak_name;
  MemoryUse memory;
  std::int64_t memory_total() const { return memory.total(); }
  bool fits() const { return memory.fits(); }
  Optional energy_j, average_power_w, cost_usd, co2_g;
  std::array<double, kStepBounds> bound{};
  std::vector<LayerRow> layers;
  std::vector<NodeRow> nodes;
  std::vector<DistinctNode> distinct;
  std::vector<Unmodelled> unmodelled;
  std::vector<Sensitivity> sensitivities;       ///< explain only
  std::vector<KernelProfile> profiles;          ///< explain on the cycle engine: what takes longest first
  std::array<double, cycle::kStalls> stalls{};  ///< of all profiles: shares of warps' cycles, sum to 1
  std::vector<CapPoint> power_caps;             ///< explain only: from the lowest limit to the board's own
  std::optional<Generation> generation;         ///< --generate only
  graph::OpGraph graph;
  runtime::Timeline timeline;  ///< With --generate: the prefill and one decode step.
};

}  // namespace voltaic::report
