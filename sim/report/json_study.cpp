// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "arch/units/error.hpp"
#include "sim/report/detail/json_parts.hpp"

namespace voltaic::report {
namespace {

void write_compare_row(JsonWriter& w, const CompareRow& r) {
  w.begin_object();
  w.member("label", r.label);
  w.key("request");
  write_settings(w, r.request);
  w.member("time_s", r.time.value);
  w.key("interval_s");
  write_interval(w, r.interval);
  w.member("speedup", r.speedup);
  w.member("samples_per_s", r.samples_per_s);
  w.member("memory_bytes", r.memory_bytes);
  w.member("fits", r.fits);
  w.member("energy_j", r.energy_j.value);
  w.member("average_power_w", r.average_power_w.value);
  w.member("reason", r.reason);
  w.end_object();
}

/// What a class of layers and a single layer have in common: a value per row, and the reason.
template <class Layer>
void write_sides(JsonWriter& w, const Layer& c) {
  w.key("time_s");
  w.begin_array();
  for (const Seconds t : c.time) w.value(t.value);
  w.end_array();
  w.key("speedup");
  w.begin_array();
  for (const double s : c.speedup) w.value(s);
  w.end_array();
  w.key("bound");
  w.begin_array();
  for (const auto& b : c.bound) w.value(b);
  w.end_array();
  w.member("reason", c.reason);
}

void write_layer_class(JsonWriter& w, const LayerClass& c) {
  w.begin_object();
  w.member("name", c.name);
  write_sides(w, c);
  w.end_object();
}

void write_compared_layer(JsonWriter& w, const ComparedLayer& l) {
  w.begin_object();
  w.member("name", l.name);
  w.member("op", l.op);
  w.member("phase", graph::to_string(l.phase));
  w.member("count", l.count);
  w.member("shape", l.shape);
  write_sides(w, l);
  w.end_object();
}

void write_point(JsonWriter& w, const SweepPoint& p) {
  w.begin_object();
  w.key("set");
  write_settings(w, p.set);
  if (!p.error.empty()) {
    for (const char* name : {"time_s", "throughput", "memory_bytes", "fits", "energy_j", "average_power_w", "cost_usd"})
      w.member_null(name);
    w.member("error", p.error);
  } else {
    w.member("time_s", p.time.value);
    w.key("throughput");
    w.begin_object();
    w.member("samples_per_s", p.samples_per_s);
    w.member("tokens_per_s", p.tokens_per_s);
    w.end_object();
    w.member("memory_bytes", p.memory_bytes);
    w.member("fits", p.fits);
    w.member("energy_j", p.energy_j.value);
    w.member("average_power_w", p.average_power_w.value);
    w.member("cost_usd", p.cost_usd.value);
    w.member_null("error");
  }
  w.end_object();
}

/// Replays parsed JSON into the writer, so that foreign text takes the form of the rest.
void replay(JsonWriter& w, const nlohmann::ordered_json& j) {
  if (j.is_object()) {
    w.begin_object();
    for (const auto& [key, value] : j.items()) {
      w.key(key);
      replay(w, value);
    }
    w.end_object();
  } else if (j.is_array()) {
    w.begin_array();
    for (const auto& value : j) replay(w, value);
    w.end_array();
  } else if (j.is_string()) {
    w.value(j.get_ref<const std::string&>());
  } else if (j.is_boolean()) {
    w.value(j.get<bool>());
  } else if (j.is_number_float()) {
    w.value(j.get<double>());
  } else if (j.is_number_unsigned() || j.is_number_integer()) {
    w.plain(j.dump());
  } else {
    w.null();
  }
}

}  // namespace

std::string comparison_json(const Comparison& comparison, const Envelope& envelope) {
  JsonWriter w;
  begin_document(w, envelope);
  w.begin_object();
  w.key("rows");
  w.begin_array();
  for (const auto& row : comparison.rows) write_compare_row(w, row);
  w.end_array();
  w.key("layer_classes");
  w.begin_array();
  for (const auto& c : comparison.layer_classes) write_layer_class(w, c);
  w.end_array();
  w.key("layers");
  w.begin_array();
  for (const auto& l : comparison.layers) write_compared_layer(w, l);
  w.end_array();
  w.end_object();
  return end_document(w);
}

std::string sweep_json(std::span<const SweepPoint> points, const Envelope& envelope) {
  JsonWriter w;
  begin_document(w, envelope);
  w.begin_object();
  w.key("points");
  w.begin_array();
  for (const auto& p : points) write_point(w, p);
  w.end_array();
  w.end_object();
  return end_document(w);
}

std::string sweep_point_json(const SweepPoint& point) {
  JsonWriter w(0);
  write_point(w, point);
  return w.take();
}

std::string workload_json(const WorkloadView& v, const Envelope& envelope) {
  JsonWriter w;
  begin_document(w, envelope);
  w.begin_object();
  w.member("name", v.name);
  w.member("kind", v.kind);
  w.member("parameters", v.parameters);
  w.member("parameters_active_per_token", v.parameters_active_per_token);
  w.member("mac", v.mac);
  w.member("flop", v.flop);
  w.member("kv_cache_bytes_per_token", v.kv_cache_bytes_per_token);
  w.key("layers");
  w.begin_array();
  for (const auto& l : v.layers) {
    w.begin_object();
    w.member("id", l.id);
    w.member("op", l.op);
    w.member("output_shape", l.output_shape);
    w.member("parameters", l.parameters);
    w.member("mac", l.mac);
    w.member("flop", l.flop);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return end_document(w);
}

std::string document_json(const Envelope& envelope, std::string_view result) {
  const auto parsed = nlohmann::ordered_json::parse(result, nullptr, false);
  ensure(!parsed.is_discarded(), "a result that is not JSON");
  JsonWriter w;
  begin_document(w, envelope);
  replay(w, parsed);
  return end_document(w);
}

std::string_view schema_text(std::string_view command) {
  const std::string file = std::string(command) + ".schema.json";
  for (const auto& f : embedded_schemas()) {
    if (f.name == file) return f.text;
  }
  return {};
}

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  constexpr std::string_view kSuffix = ".schema.json";
  for (const auto& f : embedded_schemas()) names.emplace_back(f.name.substr(0, f.name.size() - kSuffix.size()));
  return names;
}

}  // namespace voltaic::report
