// SPDX-License-Identifier: MIT
// Everything a user can ask for in one prediction, and the path from there to the answer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulator.hpp"
#include "workloads/builder.hpp"

namespace voltaic {

/// One request. Fields left out take the defaults of the documentation; `given` tells which were typed.
struct Request {
  std::string workload;
  std::string gpu = "a100-sxm4-80gb";
  std::vector<arch::Override> overrides;
  std::string calibration;  ///< File of fitted values laid over those that ship; empty: none.
  bool training = false;
  workloads::RunPhase phase = workloads::RunPhase::whole;
  std::optional<std::int64_t> batch, seq, context, image_height, image_width;
  std::optional<std::int64_t> generate;  ///< Tokens of a whole completion; empty: one step.
  std::map<std::string, std::int64_t> dims;
  bool sparsity = false;  ///< 2:4 sparse weights.
  Layout layout = Layout::automatic;
  graph::Recompute recompute = graph::Recompute::none;
  std::int64_t accumulation = 1;  ///< Micro-steps of batch / accumulation samples.
  bool per_tensor_optimizer = false;
  InputCopy input_copy = InputCopy::none;
  double input_rate = 0;                      ///< Samples per second; 0: no limit.
  std::optional<graph::Precision> precision;  ///< Default fp16; in training mixed-fp16.
  kernel::Framework framework = kernel::Framework::eager;
  graph::Optimizer optimizer = graph::Optimizer::adam;
  cost::EngineKind engine = cost::EngineKind::analytic;
  cycle::SampleOptions sampling;                      ///< Of the cycle engine.
  arch::OperatingPoint operating;                     ///< Power cap, locked clock, operand contents.
  std::optional<workloads::AttentionForm> attention;  ///< Default: flash where operands have 16 bits, else unfused.
  double busy_s = 0;              ///< Measured tables: the GPU rests after this long (cost::busy_for); 0: lasting load.
  bool include_optimizer = true;  ///< Measured tables may leave the optimizer out,
  bool include_loss = true;       ///< and the loss.
  double host_scale = 1;          ///< Host and launch costs times this.
  std::set<std::string> given;

  graph::Precision resolved_precision() const;
  workloads::AttentionForm resolved_attention() const;
  workloads::BuildOptions build_options() const;
};

/// One option of the command line: its place in requests, sweeps and help.
struct RequestOption {
  std::string_view name;  ///< Without dashes.
  std::string_view metavar;
  std::string_view help;
  bool repeatable;  ///< Values add up (--set, --dim) instead of replacing each other.
  bool ranges;      ///< Numbers: START:STOP:STEP is a range of values.
  void (*set)(Request&,
              std::string_view value);  ///< Throws UsageError or, for what is not built yet, UnsupportedError.
  std::string (*get)(const Request&);   ///< The resolved value, defaults filled in.
};
const std::vector<RequestOption>& request_options();
/// Throws UsageError with the nearest name when there is no such option.
const RequestOption& request_option(std::string_view name);
/// Sets one option and notes that it was given.
void set_option(Request& request, std::string_view name, std::string_view value);

/// Answers requests; keeps simulators and graphs, so that a sweep builds each once. Safe to share between threads.
class Runner {
 public:
  report::Prediction predict(const Request& request);
  /// The device memory of that answer, without its time. Keeps no graph, so that a search may ask for many sizes.
  report::MemoryUse memory(const Request& request);
  std::shared_ptr<const workloads::Workload> workload(const Request& request);
  std::shared_ptr<const Simulator> simulator(const Request& request);
  /// What the simulator is asked for, sizes taken from the workload.
  SimulationOptions options(const Request& request);

 private:
  report::Prediction predict_step(const Request& request);
  report::Prediction predict_generation(const Request& request);
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const workloads::Workload>> workloads_;
  std::map<std::string, std::shared_ptr<const Simulator>> simulators_;
};

}  // namespace voltaic
