// SPDX-License-Identifier: MIT
#include "validation/compare/stack_protocol.hpp"

#include <array>
#include <string>
#include <utility>

namespace voltaic::validation {
namespace {

using cost::CallTiming;
using cost::OperandContents;
using cost::OperandState;

/// Facts about a source as its publishers state them; operand contents of replayed graphs as their rates betray: above
/// 1 TFLOP equal kernels reach 289 TFLOP/s on A100 with contents that hardly change, 246 with random ones.
struct Fact {
  std::string_view prefix;  ///< Of the source's tag; the first that fits holds.
  std::string_view stack;   ///< Member of calibration section "protocols".
  CallTiming timing;
  OperandContents contents;
  OperandState operands;
  bool column_major = false, appends = false;
};
constexpr auto kRandom = OperandContents::random;
constexpr auto kConstant = OperandContents::constant;
constexpr auto kRotated = OperandState::rotated;
constexpr auto kReused = OperandState::reused;
/// Calls of vLLM 0.22 show no time of a cache write: with and without one they fit equally well.
constexpr std::array<Fact, 14> kFacts{{
    {"aic-sglang", "aic-sglang", CallTiming::graph_replay, kRandom, kRotated, false, true},
    {"aic-vllm-0.14", "aic-vllm", CallTiming::graph_replay, kConstant, kRotated, false, true},
    {"aic-vllm-0.22", "aic-vllm", CallTiming::graph_replay, kRandom, kRotated, false, false},
    {"aic-vllm-0.24", "aic-vllm", CallTiming::graph_replay, kConstant, kRotated, false, true},
    {"aic-vllm", "aic-vllm", CallTiming::graph_replay, kRandom, kRotated, false, true},
    {"aic-trtllm", "aic-trtllm", CallTiming::graph_replay, kRandom, kRotated, false, true},
    {"vidur", "vidur", CallTiming::kernel_trace, kRandom, kReused},
    {"llmservingsim", "llmservingsim", CallTiming::kernel_trace, kRandom, kReused},
    {"deepbench", "deepbench", CallTiming::event_average, kRandom, kReused, true},
    {"llmcompass", "llmcompass", CallTiming::host_clock, kRandom, kReused},
    {"azure-bench-guide", "azure-bench-guide", CallTiming::sustained, kRandom, kReused},
    {"fa2-chart", "flash-charts", CallTiming::event_average, kRandom, kReused},
    {"fa3-chart", "flash-charts", CallTiming::event_average, kRandom, kReused},
    {"nvidia-cuda11-chart", "nvidia-chart", CallTiming::event_average, kRandom, kReused},
}};

/// What tables write under `method` where nothing is known of their source.
constexpr std::pair<std::string_view, CallTiming> kMethods[] = {
    {"graph_avg", CallTiming::graph_replay},  {"kernel_trace", CallTiming::kernel_trace},
    {"event_avg", CallTiming::event_average}, {"avg_many", CallTiming::event_average},
    {"wallclock", CallTiming::host_clock},    {"sustained", CallTiming::sustained},
};

}  // namespace

std::optional<StackProtocol> protocol_of(std::string_view source, std::string_view method) {
  StackProtocol out;
  for (const Fact& f : kFacts) {
    if (!source.starts_with(f.prefix)) continue;
    out.call = {std::string(f.stack), std::string(source), f.timing, f.contents, f.operands};
    out.column_major = f.column_major;
    out.appends = f.appends;
    return out;
  }
  for (const auto& [word, timing] : kMethods) {
    if (!method.starts_with(word)) continue;
    out.call.timing = timing;
    out.call.operands = timing == CallTiming::graph_replay ? kRotated : kReused;
    return out;
  }
  return std::nullopt;
}

}  // namespace voltaic::validation
