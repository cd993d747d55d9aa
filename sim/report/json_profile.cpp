// SPDX-License-Identifier: MIT
#include "sim/report/detail/json_writer.hpp"
#include "sim/report/kernel_profile.hpp"

namespace voltaic::report {
namespace {

void write_extent(JsonWriter& w, std::string_view name, const std::array<std::int64_t, 3>& extent) {
  w.key(name);
  w.begin_array();
  for (const std::int64_t n : extent) w.value(n);
  w.end_array();
}

void write_metrics(JsonWriter& w, const cycle::Metrics& m) {
  w.key("metrics");
  w.begin_object();
  for (const auto& metric : cycle::metric_list(m)) w.member(metric.name, metric.value);
  w.end_object();
  w.key("stalls");
  w.begin_object();
  for (std::size_t i = 0; i < cycle::kStalls; ++i) {
    w.member(cycle::to_string(static_cast<cycle::Stall>(i)), m.stalls[i]);
  }
  w.end_object();
  w.key("instructions");
  w.begin_object();
  for (std::size_t i = 0; i < cycle::kOps; ++i) {
    if (m.executed[i] > 0) w.member(cycle::to_string(static_cast<cycle::Op>(i)), m.executed[i]);
  }
  w.end_object();
}

void write_findings(JsonWriter& w, const cycle::Metrics& m) {
  w.key("findings");
  w.begin_object();
  for (std::size_t i = 0; i < cycle::kSections; ++i) {
    const auto section = static_cast<cycle::Section>(i);
    const std::string text = finding(m, section);
    if (!text.empty()) w.member(cycle::to_string(section), text);
  }
  w.end_object();
}

void write_parts(JsonWriter& w, const std::vector<ProfilePart>& parts) {
  w.key("parts");
  w.begin_array();
  for (const auto& p : parts) {
    w.begin_object();
    w.member("name", p.name);
    w.member("times", p.times);
    w.member("cycles", p.cycles);
    w.member("share", p.share);
    w.end_object();
  }
  w.end_array();
}

void write_changes(JsonWriter& w, const std::vector<Sensitivity>& changes) {
  w.key("changes");
  w.begin_array();
  for (const auto& c : changes) {
    w.begin_object();
    w.member("path", c.path);
    w.member("change", c.change);
    w.member("time_ratio", c.time_ratio);
    w.end_object();
  }
  w.end_array();
}

}  // namespace

void write_profiles(JsonWriter& w, const std::vector<KernelProfile>& profiles) {
  w.begin_array();
  for (const auto& p : profiles) {
    w.begin_object();
    w.member("name", p.name);
    w.member("gpu", p.gpu);
    w.member("count", p.count);
    write_extent(w, "grid", p.grid);
    write_extent(w, "block", {p.block, 1, 1});
    w.member("time_s", p.duration.value);
    w.member("cycles", p.cycles);
    w.member("clock_hz", p.clock.value);
    write_metrics(w, p.metrics);
    write_findings(w, p.metrics);
    write_parts(w, p.parts);
    write_changes(w, p.changes);
    w.end_object();
  }
  w.end_array();
}

}  // namespace voltaic::report
