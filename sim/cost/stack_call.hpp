// SPDX-License-Identifier: MIT
// The protocols of kernel tables that were measured inside serving stacks and benchmark suites: many calls in a row,
// replayed graphs, traces of kernels, a host clock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::cost {

/// What was between the two readings of a clock; the name is the member of calibration section "protocols".
enum class CallTiming : std::uint8_t {
  graph_replay,   ///< Replays of a recorded graph: kernels and the gaps between its nodes.
  kernel_trace,   ///< Durations of kernels as a tracer records them: no launch.
  event_average,  ///< Events around many eager calls back to back.
  host_clock,     ///< The host's clock, synchronised after each call.
  sustained,      ///< Events around many calls after minutes of warm-up: clocks have settled.
};
std::string_view to_string(CallTiming timing);

/// What the operands hold. Multiplying what never changes takes less power, so the power limit leaves more clock.
enum class OperandContents : std::uint8_t { random, constant };

/// Whether a call finds its operands where the call before left them.
enum class OperandState : std::uint8_t {
  rotated,  ///< Among copies, so that weights are seldom in L2.
  reused,   ///< The same buffers call after call.
};

struct CallProtocol {
  std::string stack;    ///< Who timed: "aic-vllm"; numbers of its own stand under "protocols.STACK".
  std::string release;  ///< "aic-vllm-0.14.0": libraries of its own stand under "sessions.RELEASE".
  CallTiming timing = CallTiming::graph_replay;
  OperandContents contents = OperandContents::random;
  OperandState operands = OperandState::rotated;
};

/// One call under a protocol:
///     T = smooth maximum(floor, launch + gap (kernels - 1) + kernels + per sequence)
/// with numbers of "protocols", looked up under the stack, then under the timing, by the call's name, then "default".
/// What a stack prepares per sequence of a decoding step it does in the same call.
class StackCall {
 public:
  /// Makes an engine for the board in the state in which the stack measured.
  using MakeEngine = std::function<std::unique_ptr<kernel::CostModel>(const arch::ResolvedGpu&)>;
  /// `make`: another engine than the analytic one.
  StackCall(const arch::ResolvedGpu& board, CallProtocol protocol, const MakeEngine& make = {});

  struct Timing {
    Seconds time;
    Seconds low, high;  ///< 90 % interval: quantiles of measured over predicted where they are known, else the half
                        ///< width of the longest kernel's family; the table's time grid included.
    Seconds kernel;     ///< Of the kernels alone.
    Seconds floor;      ///< What the protocol takes at least.
    kernel::KernelCost main;  ///< Cost of the longest kernel.
  };
  /// `call`: "gemm", "gemm_int8", "prefill", "decode", "conv_bwd_data", "softmax", "moe", ...
  Timing time(std::span<const kernel::Launch> launches, std::string_view call) const;

  /// Mean power of the board while such calls follow each other.
  Watts lasting_power(std::span<const kernel::Launch> launches) const;

  /// The board in the state in which the stack measured.
  const arch::ResolvedGpu& gpu() const { return gpu_; }
  const kernel::LibraryChoice& library() const { return *library_; }
  const CallProtocol& protocol() const { return protocol_; }

 private:
  struct Numbers {
    double floor_s = 0, launch_s = 0, gap_s = 0, exponent = 16;
    double per_sequence_s = 0, per_sequence_large_s = 0;  ///< Decoding; the second for large batches.
    double grid_s = 0;                                    ///< Times are multiples of this.
    /// A kernel before a product that finds the scale of each row of activations: one CTA per row, all its threads once
    /// per `sweep_elements`.
    double row_s = 0, sweep_s = 0, sweep_latency_s = 0, sweep_elements = 0;
    bool quantiles_alone = false;  ///< All else is what would hold without this entry.
    bool known = false;
    double low = 1, high = 1;  ///< Measured over predicted, 5 % and 95 % quantile.
  };
  static Numbers read(const arch::ParameterTree& tree);
  void read_section(const std::string& name);
  void complete_quantiles();
  const Numbers* find(std::string_view call, bool with_times) const;
  const Numbers& numbers(std::string_view call) const;
  double scaling_time(const Numbers& numbers, std::span<const kernel::Launch> launches) const;
  kernel::KernelCost price(const kernel::Launch& launch) const;
  double half_width(std::string_view family) const;

  const CallProtocol protocol_;
  const arch::ResolvedGpu gpu_;
  const std::unique_ptr<kernel::CostModel> engine_;
  const std::unique_ptr<kernel::LibraryChoice> library_;
  std::vector<std::map<std::string, Numbers, std::less<>>> sections_;  ///< The stack's own first.
  std::map<std::string, double, std::less<>> half_widths_;             ///< By launch family.
};

}  // namespace voltaic::cost
