// SPDX-License-Identifier: MIT
#include "validation/fit/stack_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "sim/cost/gemm_tensor.hpp"
#include "sim/kernel/attention_library.hpp"
#include "validation/fit/plan.hpp"

namespace voltaic::validation {
namespace {

struct Entry {
  LawKind kind;
  std::string_view name;  ///< Below the law's section.
  double lower, upper, width;
};

constexpr auto kProduct = LawKind::product;
constexpr auto kPrompt = LawKind::attention_prompt;
constexpr auto kDecode = LawKind::attention_decode;
constexpr auto kServing = LawKind::serving;
constexpr auto kExperts = LawKind::experts;

/// Bounds are what the physics allows, widths (of the logarithm) how far one would believe another board's value to be
/// off. Shares of a peak end at 1; what ships above it (bytes that a cache passes on) stays allowed.
constexpr Entry kPlan[] = {
    {kProduct, "floor_s", 2e-7, 1e-4, 0.2},
    {kProduct, "issue_efficiency", 0.3, 1, 0.1},
    {kProduct, "half_fill_warps", 1e-3, 4, 0.5},
    {kProduct, "l2_bytes_per_cycle_per_sm", 2, 256, 0.2},
    {kProduct, "l2_bytes_per_cycle_one_sm", 4, 512, 0.3},
    {kProduct, "latency_cycles", 100, 4000, 0.3},
    {kProduct, "barrier_cycles", 2, 4000, 0.4},
    {kProduct, "prologue_cycles", 20, 20000, 0.4},
    {kProduct, "fill_exposed", 0.01, 1, 0.3},
    {kProduct, "store_bytes_per_cycle_per_sm", 0.5, 128, 0.3},
    {kProduct, "store_bytes_per_cycle_one_sm", 1, 512, 0.4},
    {kProduct, "epilogue_exposed", 0.02, 1, 0.3},
    {kProduct, "bandwidth_share", 0.3, 1, 0.1},
    {kProduct, "ramp_s", 1e-8, 1e-4, 0.5},
    {kProduct, "l2_share", 0.02, 1, 0.4},
    {kProduct, "reduce_s", 1e-7, 1e-4, 0.4},
    {kProduct, "reduce_rate", 0.1, 100, 0.4},
    {kProduct, "wave_fraction", 0.02, 1, 0.3},
    {kProduct, "convert_ops_per_weight", 0.01, 50, 0.4},
    {kProduct, "pitch_loss", 0.01, 10, 0.4},
    {kProduct, "gemv.start_s", 1e-8, 1e-4, 0.4},
    {kProduct, "gemv.ops_per_multiply_add", 1e-3, 50, 0.4},
    {kProduct, "gemv.ops_per_weight", 1e-3, 50, 0.4},
    {kProduct, "gemv.cycles_per_1024_k", 1, 1e5, 0.4},
    {kProduct, "gemv.bandwidth_share", 0.3, 1, 0.1},
    // Tiles of queries: a CTA's share of the peak alone and in company, its latency, the caches.
    {kPrompt, "prompt.eff_alone", 0.05, 1, 0.15},
    {kPrompt, "prompt.eff_full", 0.05, 1, 0.15},
    {kPrompt, "prompt.stream_rows", 0.1, 500, 0.4},
    {kPrompt, "prompt.softmax_dims", 0.1, 500, 0.4},
    {kPrompt, "prompt.wait_s", 1e-8, 1e-4, 0.3},
    {kPrompt, "prompt.cta_work_s", 1e-9, 1e-4, 0.4},
    {kPrompt, "prompt.bandwidth_share", 0.1, 1, 0.1},
    {kPrompt, "prompt.resident_share", 0.02, 2, 0.4},
    {kPrompt, "prompt.split.eff_alone", 0.05, 1, 0.15},
    {kPrompt, "prompt.split.wait_s", 1e-8, 1e-4, 0.4},
    {kPrompt, "prompt.split.cta_work_s", 1e-9, 1e-4, 0.4},
    {kPrompt, "prompt.merge_s", 1e-8, 1e-4, 0.4},
    {kPrompt, "prompt.merge_bytes_per_cycle", 0.1, 256, 0.4},
    {kPrompt, "append.round_s", 1e-8, 1e-4, 0.4},
    {kPrompt, "append.token_s", 1e-13, 1e-6, 0.5},
    {kPrompt, "append.token_kv_head_s", 1e-13, 1e-6, 0.5},
    {kPrompt, "append.token_head_s", 1e-13, 1e-6, 0.5},
    {kPrompt, "append.bandwidth_share", 0.1, 1, 0.2},
    {kPrompt, "append.query_share", 0.01, 2, 0.5},
    {kPrompt, "backward.eff_alone", 0.05, 1, 0.15},
    {kPrompt, "backward.softmax_dims", 0.1, 500, 0.4},
    {kPrompt, "backward.wait_s", 1e-8, 1e-4, 0.3},
    {kPrompt, "backward.bandwidth_share", 0.1, 1, 0.1},
    // One query row per sequence: a CTA's latency and keys, the bytes of the cache, the merge of its splits.
    {kDecode, "decode.fixed_s", 1e-8, 1e-4, 0.3},
    {kDecode, "decode.group_s", 1e-9, 1e-4, 0.4},
    {kDecode, "decode.transpose_s", 1e-8, 1e-4, 0.4},
    {kDecode, "decode.transpose_bytes_per_cycle", 0.05, 256, 0.4},
    {kDecode, "decode.merge_s", 1e-8, 1e-4, 0.4},
    {kDecode, "decode.merge_per_split_s", 1e-10, 1e-5, 0.4},
    {kDecode, "decode.merge_bytes_per_cycle", 0.1, 256, 0.4},
    {kDecode, "decode.key_s", 1e-10, 1e-6, 0.3},
    {kDecode, "decode.next_key_s", 1e-10, 1e-6, 0.4},
    {kDecode, "decode.wait_s", 1e-10, 1e-4, 0.4},
    {kDecode, "decode.cta_s", 1e-9, 1e-4, 0.4},
    {kDecode, "decode.split.key_s", 1e-10, 1e-6, 0.3},
    {kDecode, "decode.split.wait_s", 1e-9, 1e-4, 0.4},
    {kDecode, "decode.split.cta_s", 1e-9, 1e-4, 0.4},
    {kDecode, "decode.pair_rate", 0.5, 2, 0.15},
    {kDecode, "decode.bandwidth_share", 0.1, 1, 0.1},
    {kDecode, "decode.l2_bytes_per_cycle", 1, 256, 0.3},
    {kDecode, "decode.resident_from", 0.01, 4, 0.4},
    {kDecode, "decode.resident_to", 0.02, 8, 0.4},
    // Vector kernels.
    {kServing, "fixed_cycles", 10, 1e5, 0.3},
    {kServing, "l2_share", 0.05, 2, 0.3},
    {kServing, "all_hit_share", 0.01, 4, 0.4},
    {kServing, "all_miss_share", 0.05, 10, 0.4},
    {kServing, "row_cycles", 10, 1e5, 0.4},
    {kServing, "step_cycles", 10, 1e5, 0.4},
    {kServing, "warp_cycles", 0.1, 1e3, 0.4},
    {kServing, "warp_miss_cycles", 0.1, 1e3, 0.5},
    {kServing, "element_slots", 0.1, 1e3, 0.4},
    // Experts.
    {kExperts, "floor_s", 1e-6, 1e-3, 0.3},
    {kExperts, "slot_s", 1e-14, 1e-8, 0.5},
    {kExperts, "expert_s", 1e-12, 1e-5, 0.5},
    {kExperts, "vector_share", 0.02, 2, 0.3},
    {kExperts, "narrow_efficiency", 0.01, 1, 0.2},
    {kExperts, "wide_efficiency", 0.02, 1, 0.2},
    {kExperts, "tuned_efficiency", 0.02, 1, 0.2},
    {kExperts, "narrow_stream", 0.1, 1, 0.15},
    {kExperts, "wide_stream", 0.1, 1, 0.15},
    {kExperts, "narrow_latency", 0.01, 1e4, 0.5},
    {kExperts, "wide_latency", 0.01, 1e4, 0.5},
    {kExperts, "spill", 0.01, 10, 0.5},
    {kExperts, "spill_spread", 0.01, 10, 0.5},
    {kExperts, "spill_l2", 0.1, 50, 0.4},
    {kExperts, "panel", 0.01, 50, 0.5},
    {kExperts, "prologue_cycles", 10, 1e5, 0.4},
    {kExperts, "unaligned", 0.1, 20, 0.4},
};

/// Of every law: what the protocol adds. The stack's host or its graphs.
constexpr Entry kProtocol[] = {
    {LawKind::other, "floor_s", 1e-7, 1e-3, 0.4},         {LawKind::other, "launch_s", 1e-9, 1e-3, 0.4},
    {LawKind::other, "per_sequence_s", 1e-11, 1e-6, 0.4}, {LawKind::other, "per_sequence_large_s", 1e-11, 1e-6, 0.4},
    {LawKind::other, "row_s", 1e-12, 1e-4, 0.5},          {LawKind::other, "sweep_s", 1e-12, 1e-4, 0.5},
    {LawKind::other, "sweep_latency_s", 1e-9, 1e-4, 0.5},
};

/// Where the value that holds at a place is written: with its release, its stack, its board, or for all.
std::string home_of(const std::string& path, const StackPlace& place, const arch::CalibrationDocument& document) {
  const std::string on_board = fmt::format("boards.{}.{}", place.name, path);
  for (const std::string& session : {place.protocol.release, place.protocol.stack}) {
    if (session.empty()) continue;
    std::string in_session = fmt::format("sessions.{}.{}", arch::calibration_key(session), path);
    std::string both = fmt::format("boards.{}.{}", place.name, in_session);
    if (document.has(both)) return both;
    if (document.has(in_session)) return in_session;
  }
  return document.has(on_board) ? on_board : path;
}

FitParameter parameter(const Entry& e, std::string path, double prior) {
  FitParameter p;
  p.unit = unit_of(e.name);
  p.path = std::move(path);
  p.prior = prior;
  p.lower = std::min(e.lower, prior);
  p.upper = std::max(e.upper, prior);
  p.width = e.width;
  p.logarithmic = true;
  return p;
}

bool is_spread_alone(const arch::ParameterTree& entry) {
  const auto keys = entry.keys("");
  return keys.size() == 1 && keys.front() == "measured_over_predicted";
}

StackLaw law_of_launch(const kernel::Launch& launch, const arch::GpuSpec& gpu, const cost::TensorModel* tensor) {
  if (const auto* k = std::get_if<kernel::GemmKernel>(&launch.detail)) {
    if (!k->tile.tensor_cores || tensor == nullptr) return {};
    return {kProduct, tensor->names()[tensor->law_index(k->problem)]};
  }
  if (const auto* k = std::get_if<kernel::AttentionKernel>(&launch.detail)) {
    const auto library = kernel::attention_library(*k, gpu);
    return {k->decode ? kDecode : kPrompt, std::string(kernel::attention_rules(library).name)};
  }
  if (const auto* k = std::get_if<kernel::VectorKernel>(&launch.detail)) {
    return {kServing, std::string(kernel::to_string(k->kind))};
  }
  if (const auto* k = std::get_if<kernel::ExpertKernel>(&launch.detail)) return {kExperts, k->stack};
  return {};
}

}  // namespace

std::string to_string(const StackLaw& law) {
  switch (law.kind) {
    case kProduct: return "products " + law.name;
    case kPrompt: return "prompts " + law.name;
    case kDecode: return "decoding " + law.name;
    case kServing: return "vectors " + law.name;
    case kExperts: return "experts " + law.name;
    default: return "other kernels";
  }
}

std::string section_of(const StackLaw& law) {
  switch (law.kind) {
    case kProduct: return "gemm_tensor.laws." + law.name;
    case kPrompt:
    case kDecode: return "attention." + law.name;
    case kServing: return "serving.kinds." + law.name;
    case kExperts: return "moe.stacks." + law.name;
    default: return "";
  }
}

const kernel::Launch* main_launch(const StackFitRow& row) {
  const auto is_main = [](const kernel::Launch& launch) { return launch.family != "gemm_reduce"; };
  const auto at = std::find_if(row.launches.rbegin(), row.launches.rend(), is_main);
  return at == row.launches.rend() ? nullptr : &*at;
}

std::vector<StackLaw> laws_of(const StackTimes& times, const arch::CalibrationDocument& document,
                              const std::vector<StackFitRow>& rows) {
  struct Machine {
    std::unique_ptr<cost::StackCall> call;
    std::unique_ptr<cost::TensorModel> tensor;
    arch::ParameterTree tree;
  };
  std::map<std::size_t, Machine> machines;
  std::vector<StackLaw> out;
  for (const StackFitRow& row : rows) {
    auto& m = machines[row.place];
    if (!m.call) {
      m.call = times.call(row.place, document);
      m.tree = m.call->gpu().calibration;
      if (m.tree.has("gemm_tensor")) m.tensor = std::make_unique<cost::TensorModel>(m.call->gpu());
    }
    const kernel::Launch* main = main_launch(row);
    const StackLaw law = main == nullptr ? StackLaw{} : law_of_launch(*main, m.call->gpu().spec, m.tensor.get());
    const std::string section = section_of(law);
    out.push_back(!section.empty() && m.tree.has(section) ? law : StackLaw{});
  }
  return out;
}

std::string protocol_entry(const arch::ParameterTree& tree, const cost::CallProtocol& protocol, std::string_view call) {
  for (const std::string_view name : {call, std::string_view("default")}) {
    for (const std::string& section : {protocol.stack, std::string(cost::to_string(protocol.timing))}) {
      if (section.empty()) continue;
      std::string path = fmt::format("protocols.{}.{}", arch::calibration_key(section), name);
      if (tree.has(path) && !is_spread_alone(tree.at(path))) return path;
    }
  }
  return "";
}

std::vector<FitParameter> stack_plan(const StackLaw& law, const StackTimes& times,
                                     const arch::CalibrationDocument& document, const std::vector<StackFitRow>& rows) {
  std::set<std::pair<std::size_t, std::string>> calls;
  for (const auto& row : rows) calls.emplace(row.place, row.row->call);
  std::vector<FitParameter> out;
  const auto add = [&](const Entry& e, const std::string& head, std::size_t place, const arch::ParameterTree& tree) {
    const std::string path = fmt::format("{}.{}", head, e.name);
    if (!tree.has(path)) return;
    const double prior = tree.number(path);
    if (!(prior > 0)) return;
    const std::string home = home_of(path, times.places()[place], document);
    const auto known = [&](const FitParameter& p) { return p.path == home; };
    if (std::none_of(out.begin(), out.end(), known)) out.push_back(parameter(e, home, prior));
  };
  for (const auto& [place, call] : calls) {
    const auto tree = times.tree(place, document);
    for (const Entry& e : kPlan) {
      if (e.kind == law.kind) add(e, section_of(law), place, tree);
    }
    const std::string protocol = protocol_entry(tree, times.places()[place].protocol, call);
    if (protocol.empty()) continue;
    for (const Entry& e : kProtocol) add(e, protocol, place, tree);
  }
  return out;
}

}  // namespace voltaic::validation
