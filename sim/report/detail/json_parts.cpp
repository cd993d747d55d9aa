// SPDX-License-Identifier: MIT
#include "sim/report/detail/json_parts.hpp"

#include <set>

namespace voltaic::report {
namespace {

/// "predict" and "explain" answer with a prediction, the others with a document of their own.
std::string schema_name(const std::string& command) {
  return command == "predict" ? "voltaic.prediction/1.0" : "voltaic." + command + "/1.0";
}

void write_calibration(JsonWriter& w, const std::string& id) {
  w.key("calibration");
  if (id.empty()) {
    w.null();
    return;
  }
  const auto blank = id.rfind(' ');
  w.begin_object();
  w.member("id", blank == std::string::npos ? id : id.substr(0, blank));
  if (blank == std::string::npos) {
    w.member_null("date");
  } else {
    w.member("date", id.substr(blank + 1));
  }
  w.end_object();
}

void write_texts(JsonWriter& w, std::string_view name, const std::vector<std::string>& texts) {
  w.key(name);
  w.begin_array();
  for (const auto& t : texts) w.value(t);
  w.end_array();
}

}  // namespace

/// One name given twice keeps its first value: JSON objects have each key once.
void write_settings(JsonWriter& w, const Settings& settings) {
  std::set<std::string_view> seen;
  w.begin_object();
  for (const auto& [name, value] : settings) {
    if (!seen.insert(name).second) continue;
    w.key(name);
    w.plain(value);
  }
  w.end_object();
}

void write_interval(JsonWriter& w, const Interval& interval) {
  w.begin_object();
  w.member("low", interval.low.value);
  w.member("high", interval.high.value);
  w.member("confidence", interval.confidence);
  w.member("evidence", interval.evidence);
  w.end_object();
}

void write_memory(JsonWriter& w, const MemoryUse& use) {
  w.begin_object();
  w.member("weights", use.weights);
  w.member("gradients", use.gradients);
  w.member("optimizer", use.optimizer_state);
  w.member("activations", use.activations);
  w.member("kv_cache", use.kv_cache);
  w.member("workspace", use.workspace);
  w.member("allocator", use.allocator);
  w.member("context", use.context);
  w.member("total", use.total());
  w.member("capacity", use.capacity);
  w.member("fits", use.fits());
  w.end_object();
}

void begin_document(JsonWriter& w, const Envelope& e) {
  w.begin_object();
  w.member("schema", schema_name(e.command));
  w.member("tool_version", e.tool_version);
  write_calibration(w, e.calibration_id);
  w.member("command", e.command);
  w.key("inputs");
  w.begin_array();
  for (const auto& input : e.inputs) {
    w.begin_object();
    w.member("path", input.path);
    w.member("sha256", input.sha256);
    w.end_object();
  }
  w.end_array();
  w.key("request");
  write_settings(w, e.request);
  write_texts(w, "assumptions", e.assumptions);
  write_texts(w, "warnings", e.warnings);
  w.key("result");
}

std::string end_document(JsonWriter& w) {
  w.end_object();
  return w.take() + '\n';
}

}  // namespace voltaic::report
