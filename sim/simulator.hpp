// SPDX-License-Identifier: MIT
// The face of the simulator: a request in, a prediction out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arch/loader.hpp"
#include "sim/engines.hpp"
#include "sim/graph/passes.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/report/prediction.hpp"

namespace voltaic {

/// How tensors of convolutions lie in memory; `automatic`: channels last where they multiply in 16 bits or less.
enum class Layout : std::uint8_t { automatic, channels_first, channels_last };
/// How inputs reach the device: already there; copied by the host thread from ordinary memory; from page-locked memory
/// in front of the step; from page-locked memory while the step before runs.
enum class InputCopy : std::uint8_t { none, pageable, pinned, overlapped };

/// What to run on what, fully resolved. The workload is handed in as a graph: this folder knows no zoo and no files.
struct SimulationOptions {
  bool training = false;
  graph::Precision precision = graph::Precision::fp16;
  graph::Optimizer optimizer = graph::Optimizer::adam;
  kernel::Framework framework = kernel::Framework::eager;
  cost::EngineKind engine = cost::EngineKind::analytic;
  cycle::SampleOptions sampling;  ///< Of the cycle engine.
  bool sparsity = false;
  Layout layout = Layout::automatic;
  graph::Recompute recompute = graph::Recompute::none;
  std::int64_t accumulation = 1;      ///< Passes of forward and backward per optimizer step; `samples` are all of them.
  bool per_tensor_optimizer = false;  ///< A launch per tensor and operation instead of fused multi-tensor kernels.
  InputCopy input_copy = InputCopy::none;
  double input_rate = 0;          ///< Samples per second that the input pipeline delivers; 0: no limit.
  bool include_optimizer = true;  ///< Training steps of some measured tables stop after backward.
  bool include_loss = true;
  double samples = 1;            ///< Samples per step.
  double tokens_per_sample = 0;  ///< 0: not a token model.
  double kv_cache_elements = 0;  ///< Elements cached at this step, all samples together.
  double host_scale = 1;         ///< Host and launch costs times this: what a faster host would give.
};

/// Engine, library rules and memo of one GPU; reusable over many predictions, also from several threads.
class Simulator {
 public:
  explicit Simulator(std::shared_ptr<const arch::ResolvedGpu> gpu,
                     cost::EngineKind engine = cost::EngineKind::analytic);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  const arch::ResolvedGpu& gpu() const;
  /// `forward` is the forward graph in fp32; passes run on a copy. Throws UnsupportedError as the passes and lowering
  /// do.
  report::Prediction predict(graph::OpGraph forward, const SimulationOptions& asked) const;
  /// The device memory of that step, as predict() reports it, without its time.
  report::MemoryUse memory(graph::OpGraph forward, const SimulationOptions& options) const;
  /// The step of `prediction` under every power limit that the board takes, its own last. The prediction must have been
  /// made by a simulator without a cap.
  std::vector<report::CapPoint> power_caps(const report::Prediction& prediction,
                                           const SimulationOptions& options) const;
  /// The cycle engine with these options.
  const cycle::CycleEngine& cycle_engine(cycle::SampleOptions sampling) const;
  /// Time of one launch on this GPU.
  kernel::KernelCost cost(const kernel::Launch& launch) const;
  const kernel::LibraryChoice& library() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws UnsupportedError when the GPU cannot multiply in this precision, saying what it has:
/// "v100-sxm2-16gb has no BF16 tensor cores: it multiplies in fp64, fp32, fp16 (tensor cores), int8 (DP4A)".
/// Returns a warning to show, or empty ("int8 runs on DP4A, not on tensor cores").
std::string check_precision(const arch::GpuSpec& gpu, graph::Precision precision);

/// The same for 2:4 sparse weights: throws where the GPU has no sparse path, warns where it has none for this type.
std::string check_sparsity(const arch::GpuSpec& gpu, graph::Precision precision);
/// By type: where the GPU multiplies 2:4 sparse weights.
graph::SparsePaths sparse_paths(const arch::GpuSpec& gpu);
/// Weight-only quantisation and sparsity serve finished weights, one at a time: throws UnsupportedError otherwise.
void check_inference_only(bool training, graph::Precision precision, bool sparsity);

/// The type that matrix products multiply in: mixed_fp16 gives fp16.
DataType multiply_type(graph::Precision precision);

}  // namespace voltaic
