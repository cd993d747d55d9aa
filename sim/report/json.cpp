// SPDX-License-Identifier: MIT
#include "sim/report/json.hpp"

#include "sim/report/detail/json_parts.hpp"
#include "sim/report/detail/layer_groups.hpp"

namespace voltaic::report {
namespace {

void write_times(JsonWriter& w, const Prediction& p) {
  w.key("time_s");
  w.begin_object();
  w.member("total", p.total.value);
  w.member("forward", p.forward.value);
  w.member("backward", p.backward.value);
  w.member("optimizer", p.optimizer.value);
  w.end_object();
  w.key("share_of_total");
  w.begin_object();
  w.member("kernels", p.share_kernels);
  w.member("communication_exposed", p.share_communication_exposed);
  w.member("host_exposed", p.share_host_exposed);
  w.member("idle", p.share_idle);
  w.end_object();
  w.key("interval_s");
  write_interval(w, p.interval);
}

void write_rates(JsonWriter& w, const Prediction& p) {
  w.key("throughput");
  w.begin_object();
  w.member("samples_per_s", p.samples_per_s);
  w.member("tokens_per_s", p.tokens_per_s);
  w.end_object();
  w.member("flop", p.flop);
  w.member("mac", p.mac);
  w.member("other_flop", p.other_flop);
  w.key("model_flop_utilization");
  w.begin_object();
  w.member("value", p.model_flop_utilization);
  w.member("peak_flop_per_s", p.peak.value);
  w.member("peak_name", p.peak_name);
  w.end_object();
}

void write_generation(JsonWriter& w, const Generation& g) {
  w.key("generation");
  w.begin_object();
  w.member("prompt_tokens", g.prompt_tokens);
  w.member("generated_tokens", g.generated_tokens);
  w.member("time_to_first_token_s", g.time_to_first_token.value);
  w.key("time_per_output_token_s");
  w.begin_object();
  w.member("mean", g.mean.value);
  w.member("first", g.first.value);
  w.member("last", g.last.value);
  w.end_object();
  w.member("decode_tokens_per_s", g.decode_tokens_per_s);
  w.member("output_tokens_per_s", g.output_tokens_per_s);
  w.end_object();
}

/// Figures that may be unknown: null, with the reason in `null_reasons` under the same name.
void write_optionals(JsonWriter& w, const Prediction& p) {
  const std::pair<const char*, const Optional*> figures[] = {{"energy_j", &p.energy_j},
                                                             {"average_power_w", &p.average_power_w},
                                                             {"cost_usd", &p.cost_usd},
                                                             {"co2_g", &p.co2_g}};
  for (const auto& [name, figure] : figures) w.member(name, figure->value);
  w.key("null_reasons");
  w.begin_object();
  for (const auto& [name, figure] : figures) {
    if (!figure->value) w.member(name, figure->reason);
  }
  w.end_object();
}

void write_bounds(JsonWriter& w, const Prediction& p) {
  w.key("bound");
  w.begin_object();
  for (std::size_t b = 0; b < kernel::kBounds; ++b) w.member(kernel::kBoundNames[b], p.bound[b]);
  w.member("launch", p.bound[kernel::kBounds]);
  w.member("communication", p.bound[kernel::kBounds + 1]);
  w.end_object();
}

void write_grid(JsonWriter& w, const kernel::Launch& launch) {
  w.key("grid");
  w.begin_array();
  for (const std::int64_t g : launch.grid) w.value(g);
  w.end_array();
  w.key("block");
  w.begin_array();
  w.value(std::int64_t{launch.cta.threads});
  w.value(std::int64_t{1});
  w.value(std::int64_t{1});
  w.end_array();
}

constexpr std::array<std::string_view, kernel::kBounds> kLegNames{"tensor_s", "fma_s",   "dram_s",   "l2_s",
                                                                  "shared_s", "issue_s", "latency_s"};

void write_legs(JsonWriter& w, const kernel::KernelCost& cost) {
  w.key("legs");
  w.begin_object();
  for (std::size_t b = 0; b < kernel::kBounds; ++b) {
    w.member(kLegNames[b], cost.legs[b].value);
  }
  w.end_object();
  w.member("bound", kernel::to_string(cost.bound()));
  w.member("roofline_s", cost.roofline.value);
  w.key("utilization");
  w.begin_object();
  for (std::size_t b = 0; b < kernel::kBounds; ++b) {
    const bool resource = static_cast<kernel::Bound>(b) != kernel::Bound::latency;
    if (resource) w.member(kernel::kBoundNames[b], cost.time.value > 0 ? cost.legs[b] / cost.time : 0.0);
  }
  w.end_object();
}

void write_kernel(JsonWriter& w, const graph::Node& node, const KernelRow& k) {
  w.begin_object();
  w.member("name", k.launch.name);
  w.member("node", node.id);
  w.member("op", graph::to_string(node.op));
  w.member("library", k.launch.library);
  w.member("math", to_string(k.launch.math));
  write_grid(w, k.launch);
  w.member("waves", k.cost.waves);
  w.member("ctas_per_sm", std::int64_t{k.cost.ctas_per_sm});
  w.member("occupancy", k.cost.occupancy);
  w.member("time_s", k.cost.time.value);
  w.member("energy_j", k.cost.energy.value);
  w.member("cycles", k.cost.cycles().value);
  w.member("clock_hz", k.cost.clock.value);
  w.member("mac", k.launch.work.mac);
  w.member("flop", 2 * k.launch.work.mac);
  w.member("other_flop", k.launch.work.other_flop);
  w.member("dram_bytes", k.cost.dram_traffic.value);
  w.member("l2_bytes", k.cost.l2_traffic.value);
  w.member("shared_bytes", k.cost.shared_traffic.value);
  write_legs(w, k.cost);
  w.end_object();
}

void write_layers(JsonWriter& w, const Prediction& p) {
  const std::vector<std::uint32_t> row_of = rows_by_node(p);
  w.key("layers");
  w.begin_array();
  for (const auto& layer : p.layers) {
    const std::string phase(graph::to_string(layer.phase));
    w.begin_object();
    w.member("id", layer.phase == graph::Phase::forward ? layer.id : layer.id + "/" + phase);
    w.member("name", layer.id);
    w.member("op", layer.op);
    w.member("phase", phase);
    w.member("time_s", layer.time.value);
    w.member("energy_j", layer.energy.value);
    w.member("mac", layer.mac);
    w.member("flop", layer.flop);
    w.member("other_flop", layer.other_flop);
    if (p.generation || layer.repeats != 1) w.member("repeats", layer.repeats);
    w.key("kernels");
    w.begin_array();
    for (const std::uint32_t id : layer.nodes) {
      for (const auto& k : p.distinct[p.nodes[row_of[id]].distinct].kernels) write_kernel(w, p.graph.node(id), k);
    }
    w.end_array();
    w.end_object();
  }
  w.end_array();
}

void write_unmodelled(JsonWriter& w, const Prediction& p) {
  w.key("unmodelled");
  w.begin_array();
  for (const auto& u : p.unmodelled) {
    w.begin_object();
    w.member("op", u.op);
    w.member("count", u.count);
    w.member("reason", u.reason);
    w.member("bytes", u.bytes);
    w.end_object();
  }
  w.end_array();
}

void write_sensitivities(JsonWriter& w, const Prediction& p) {
  w.key("sensitivities");
  w.begin_array();
  for (const auto& s : p.sensitivities) {
    w.begin_object();
    w.member("path", s.path);
    w.member("change", s.change);
    w.member("time_ratio", s.time_ratio);
    w.end_object();
  }
  w.end_array();
}

/// The step under each power limit, and the one that takes the least energy.
void write_power_caps(JsonWriter& w, const Prediction& p) {
  w.key("power_caps");
  w.begin_array();
  for (const auto& c : p.power_caps) {
    w.begin_object();
    w.member("cap_w", c.cap.value);
    w.member("time_s", c.time.value);
    w.member("energy_j", c.energy.value);
    w.end_object();
  }
  w.end_array();
  const CapPoint* best = least_energy(p.power_caps);
  w.member("energy_optimal_cap_w", best == nullptr ? std::nullopt : std::optional(best->cap.value));
}

/// Of the cycle engine: where warps' cycles go over all kernels, and each kernel as a profiler shows it.
void write_stalls_and_profiles(JsonWriter& w, const Prediction& p) {
  w.key("stalls");
  w.begin_object();
  for (std::size_t i = 0; i < cycle::kStalls; ++i) {
    w.member(cycle::to_string(static_cast<cycle::Stall>(i)), p.stalls[i]);
  }
  w.end_object();
  w.key("profiles");
  write_profiles(w, p.profiles);
}

}  // namespace

Envelope envelope_of(const Prediction& p, std::string_view command, std::string_view tool_version) {
  Envelope e;
  e.command = command;
  e.tool_version = tool_version;
  e.calibration_id = p.calibration_id;
  if (!p.input_path.empty()) e.inputs.push_back({p.input_path, p.input_sha256});
  e.request = p.request;
  e.assumptions = p.assumptions;
  e.warnings = p.warnings;
  return e;
}

std::string prediction_json(const Prediction& p, std::string_view command, std::string_view tool_version) {
  JsonWriter w;
  begin_document(w, envelope_of(p, command, tool_version));
  w.begin_object();
  write_times(w, p);
  write_rates(w, p);
  if (p.generation) write_generation(w, *p.generation);
  w.key("memory_bytes");
  write_memory(w, p.memory);
  write_optionals(w, p);
  write_bounds(w, p);
  write_layers(w, p);
  write_unmodelled(w, p);
  if (command == "explain") {
    write_sensitivities(w, p);
    write_power_caps(w, p);
    if (!p.profiles.empty()) write_stalls_and_profiles(w, p);
  }
  w.end_object();
  return end_document(w);
}

}  // namespace voltaic::report
